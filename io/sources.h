// Content ids of source files: XXH3-128 of the bytes, remembered by (path, size, mtime_ns, inode)
// across submissions. One thread. Test: tests/io/sources_test.cpp
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "scheduler/expected.h"
#include "scheduler/types.h"

namespace sluice::io {

// By what a file is told to be the one that was read.
struct SourceStamp {
  int64_t size = 0;
  int64_t mtime_ns = 0;
  uint64_t inode = 0;
  bool operator==(const SourceStamp&) const = default;
};
using SourceStamps = std::map<std::string, SourceStamp>;  // by path
// None: it is not there, or cannot be looked at.
[[nodiscard]] std::optional<SourceStamp> look_at_source(const std::filesystem::path& path);

class SourceIds {
 public:
  virtual ~SourceIds() = default;
  // An Error names the file and why it cannot be read (missing, a directory, no permission,
  // dangling link).
  [[nodiscard]] virtual Expected<scheduler::Hash128> content_id(
      const std::filesystem::path& path) = 0;
};

// Reads files (streamed, 1 MiB at a time); `cache_file` may be empty or absent, then nothing is
// remembered. A damaged cache is ignored and rebuilt. save() writes it to a temporary name and
// renames.
class FileSourceIds final : public SourceIds {
 public:
  explicit FileSourceIds(std::filesystem::path cache_file = {});
  [[nodiscard]] Expected<scheduler::Hash128> content_id(const std::filesystem::path& path) override;
  Status save() const;
  // Of the files that were asked for, as they were then.
  [[nodiscard]] SourceStamps take_stamps() { return std::move(stamps_); }

 private:
  struct Entry {
    int64_t size = 0;
    int64_t mtime_ns = 0;
    uint64_t inode = 0;
    scheduler::Hash128 id;
  };
  std::filesystem::path cache_file_;
  std::map<std::string, Entry> entries_;
  SourceStamps stamps_;
};

// XXH3-128 (libxxhash) of a string or of a file's bytes.
[[nodiscard]] scheduler::Hash128 hash_text(std::string_view text);
[[nodiscard]] Expected<scheduler::Hash128> hash_file(const std::filesystem::path& path);
// The same; `progress`, if any, is called for each MiB.
[[nodiscard]] Expected<scheduler::Hash128> hash_large_file(const std::filesystem::path& path,
                                                           const std::function<void()>& progress);
[[nodiscard]] std::string to_hex(scheduler::Hash128 hash);  // 32 digits
[[nodiscard]] Expected<scheduler::Hash128> from_hex(std::string_view text);

}  // namespace sluice::io
