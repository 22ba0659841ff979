// The journal without building its records: for queries that must stay quick at 10^6 instances.
// Which segments of a run directory count and how far (shared with io/journal.h's reader, so that
// both always believe the same bytes), a walk over the lines of those, and a cursor over the
// members of one line. Every line's sum is checked; the first bad one ends its segment. Reads a
// segment in pieces, never as a whole. Free functions and values, any thread. Test:
// tests/io/journal_scan_test.cpp
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/journal.h"
#include "scheduler/expected.h"

namespace sluice::io {

constexpr uint64_t kWholeSegment = std::numeric_limits<uint64_t>::max();

struct SegmentHead {
  uint32_t epoch = 0;
  std::string name;
  uint64_t bytes = 0;
  std::optional<record::Run> run;  // its first record, if it could be read
};
struct SegmentLink {
  size_t segment = 0;              // index into the heads
  uint64_t limit = kWholeSegment;  // bytes of it that count
};

[[nodiscard]] uint32_t segment_epoch(std::string_view file_name);  // 0: not a segment
// Whether a folder with these names in it is that of a run: it has a segment, or a lease, which a
// run has before its first segment.
[[nodiscard]] bool is_run_directory(const std::vector<std::string>& names);
[[nodiscard]] std::optional<record::Run> first_run_record(std::string_view content);
// `heads` sorted by epoch. The segments that count, oldest first: the newest one that says which
// run it belongs to, the one that it continues, and so on. Segments between them never got that
// far. An Error: one was written by a later version of sluice.
[[nodiscard]] Expected<std::vector<SegmentLink>> chain_of(
    const std::filesystem::path& run_directory, const std::vector<SegmentHead>& heads,
    std::vector<std::string>& messages);

// Whether the line (without its newline) is whole: its last member is the sum of what is before it.
Status check_record_sum(std::string_view line);
[[nodiscard]] std::string cut_message(const std::string& segment, uint64_t byte, size_t kept,
                                      uint64_t ignored, const std::string& why);
[[nodiscard]] std::string short_message(const std::string& segment, uint64_t bytes, uint64_t read);

// Walks over the members of one record. Valid as long as the line.
class MemberCursor {
 public:
  explicit MemberCursor(std::string_view line) : line_(line), at_(1) {}
  bool next();                                                   // false: no more
  [[nodiscard]] std::string_view name() const { return name_; }  // without "_hex"
  // A text between its quotes, as written; digits; an array with its brackets.
  [[nodiscard]] std::string_view raw() const { return value_; }
  // True if raw() is the text itself: nothing in it is escaped.
  [[nodiscard]] bool plain() const { return !escaped_ && !hex_; }
  [[nodiscard]] std::string text() const;
  [[nodiscard]] int64_t number() const;  // 0 if it is none

 private:
  [[nodiscard]] size_t text_end(size_t begin);
  std::string_view line_;
  size_t at_ = 0;
  std::string_view name_;
  std::string_view value_;
  bool escaped_ = false;
  bool hex_ = false;
};

// What a walk tells; lines are valid during the call only.
class LineVisitor {
 public:
  virtual ~LineVisitor() = default;
  virtual void begin_segment(const record::Run& run) = 0;
  // `kind` as in "t"; `end`: length of the segment with this line.
  virtual void take(std::string_view kind, std::string_view line, uint64_t end) = 0;
};
struct ScanEnd {
  uint32_t epoch = 0;          // of the newest segment; 0: no journal
  uint64_t newest_length = 0;  // bytes of it that were good
  std::vector<std::string> messages;
};
[[nodiscard]] Expected<ScanEnd> scan_journal(const std::filesystem::path& run_directory,
                                             LineVisitor& visitor);

}  // namespace sluice::io
