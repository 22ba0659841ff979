#include "io/journal_scan.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

#include "io/tier.h"

namespace sluice::io {

namespace {

constexpr int kVersion = 1;
constexpr std::string_view kSumMember = ",\"sum\":\"";
constexpr size_t kSumDigits = 16;
constexpr size_t kSumBytes = kSumMember.size() + kSumDigits + 2;  // with "}
constexpr size_t kReadBytes = size_t{1} << 20U;
constexpr std::string_view kHexSuffix = "_hex";

template <class T>
bool parse_number(std::string_view text, T& number, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc{} && end == text.data() + text.size();
}

std::string hex64(uint64_t v) {
  std::array<char, kSumDigits> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), v, 16).ptr;
  const auto length = static_cast<size_t>(end - digits.data());
  return std::string(kSumDigits - length, '0') + std::string(digits.data(), length);
}

// {"t":"<kind>"…
std::string_view kind_of(std::string_view line) {
  constexpr std::string_view kBegin = "{\"t\":\"";
  if (!line.starts_with(kBegin)) return {};
  line.remove_prefix(kBegin.size());
  return line.substr(0, line.find('"'));
}

// Lines of a file, a buffer at a time.
class LineReader {
 public:
  LineReader(FileDescriptor file, std::filesystem::path path, uint64_t limit)
      : file_(std::move(file)), path_(std::move(path)), left_(limit) {}

  // The next line without its newline. False at the end, and then rest() is what has no newline.
  Expected<bool> next(std::string_view& line) {
    while (true) {
      const size_t newline = find_newline();
      if (newline != std::string::npos) {
        line = std::string_view(buffer_).substr(begin_, newline - begin_);
        consumed_ += line.size() + 1;
        begin_ = searched_ = newline + 1;
        return true;
      }
      const Expected<bool> more = fill();
      if (!more || !*more) return more;
    }
  }
  [[nodiscard]] uint64_t consumed() const { return consumed_; }
  [[nodiscard]] uint64_t rest() const { return end_ - begin_; }

 private:
  size_t find_newline() {
    const void* found = std::memchr(buffer_.data() + searched_, '\n', end_ - searched_);
    searched_ = end_;
    return found == nullptr ? std::string::npos
                            : static_cast<size_t>(static_cast<const char*>(found) - buffer_.data());
  }
  Expected<bool> fill() {
    if (begin_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      searched_ -= begin_;
      begin_ = 0;
    }
    if (buffer_.size() - end_ < kReadBytes) buffer_.resize(end_ + kReadBytes);
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(kReadBytes, left_));
    ssize_t count = 0;
    do {
      count = wanted == 0 ? 0 : ::read(file_.get(), buffer_.data() + end_, wanted);
    } while (count < 0 && errno == EINTR);
    if (count < 0) return system_error("read", path_, errno);
    end_ += static_cast<size_t>(count);
    left_ -= static_cast<uint64_t>(count);
    return count > 0;
  }

  FileDescriptor file_;
  std::filesystem::path path_;
  uint64_t left_;
  std::string buffer_;
  size_t begin_ = 0, end_ = 0, searched_ = 0;
  uint64_t consumed_ = 0;
};

Expected<LineReader> open_lines(const std::filesystem::path& file, uint64_t limit) {
  Expected<FileDescriptor> opened = open_file(file, O_RDONLY);
  if (!opened) return opened.error();
  return LineReader(std::move(*opened), file, limit);
}

Expected<std::vector<SegmentHead>> read_heads(const std::filesystem::path& folder) {
  const auto names = real_files().list(folder);
  if (!names) return names.error();
  std::vector<SegmentHead> heads;
  for (const std::string& name : *names) {
    const uint32_t epoch = segment_epoch(name);
    if (epoch == 0) continue;
    const auto bytes = real_files().size(folder / name);
    if (!bytes) return bytes.error();
    auto lines = open_lines(folder / name, *bytes);
    if (!lines) return lines.error();
    std::string_view line;
    const Expected<bool> found = lines->next(line);
    if (!found) return found.error();
    heads.push_back({epoch, name, *bytes, {}});
    if (*found) heads.back().run = first_run_record(std::string(line) + "\n");
  }
  std::sort(heads.begin(), heads.end(),
            [](const SegmentHead& a, const SegmentHead& b) { return a.epoch < b.epoch; });
  return heads;
}

Status scan_segment(const std::filesystem::path& folder, const SegmentHead& head, uint64_t limit,
                    LineVisitor& visitor, ScanEnd& end) {
  auto lines = open_lines(folder / head.name, limit);
  if (!lines) return lines.error();
  visitor.begin_segment(*head.run);
  end.epoch = head.epoch;
  end.newest_length = 0;
  std::string_view line;
  for (size_t records = 0;; ++records) {
    const Expected<bool> more = lines->next(line);
    if (!more) return more.error();
    Status whole = Done{};
    if (*more) whole = check_record_sum(line);
    if (!*more && lines->rest() > 0) whole = Error{"it is torn: its line has no end"};
    if (!whole) {
      const uint64_t size = std::min(limit, std::max(head.bytes, lines->consumed()));
      end.messages.push_back(cut_message(head.name, end.newest_length, records,
                                         size - end.newest_length, whole.error().message));
      return Done{};
    }
    if (!*more) break;
    end.newest_length = lines->consumed();
    visitor.take(kind_of(line), line, end.newest_length);
  }
  if (end.newest_length < limit && limit != kWholeSegment) {
    end.messages.push_back(short_message(head.name, end.newest_length, limit));
  }
  return Done{};
}

}  // namespace

uint32_t segment_epoch(std::string_view file_name) {
  constexpr std::string_view kPrefix = "journal.";
  constexpr std::string_view kSuffix = ".jsonl";
  uint32_t epoch = 0;
  if (!file_name.starts_with(kPrefix) || !file_name.ends_with(kSuffix) ||
      file_name.size() <= kPrefix.size() + kSuffix.size()) {
    return 0;
  }
  file_name.remove_prefix(kPrefix.size());
  file_name.remove_suffix(kSuffix.size());
  return parse_number(file_name, epoch) ? epoch : 0;
}

bool is_run_directory(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return segment_epoch(name) != 0 || name.starts_with("lease.");
  });
}

std::optional<record::Run> first_run_record(std::string_view content) {
  const size_t newline = content.find('\n');
  if (newline == std::string_view::npos) return {};
  auto first = decode_record(content.substr(0, newline));
  if (!first.ok() || !std::holds_alternative<record::Run>(*first)) return {};
  return std::get<record::Run>(std::move(*first));
}

Expected<std::vector<SegmentLink>> chain_of(const std::filesystem::path& run_directory,
                                            const std::vector<SegmentHead>& heads,
                                            std::vector<std::string>& messages) {
  std::vector<SegmentLink> chain;
  uint32_t wanted = 0;  // 0: the next that is there
  uint64_t limit = kWholeSegment;
  for (size_t i = heads.size(); i-- > 0;) {
    const SegmentHead& head = heads[i];
    if (wanted != 0 && head.epoch != wanted) continue;
    if (head.run) {
      if (head.run->version > kVersion) {
        return Error{"'" + (run_directory / head.name).string() + "' has version " +
                     std::to_string(head.run->version) + ", this program reads up to version " +
                     std::to_string(kVersion) + "; use the newer sluice that wrote it"};
      }
      chain.push_back({i, limit});
      wanted = head.run->previous_epoch;
      limit = head.run->previous_length;
      continue;
    }
    if (head.bytes > 0 && limit != 0) {
      messages.push_back(cut_message(head.name, 0, 0, head.bytes,
                                     "it is not the run record that was expected there"));
    }
    // Nobody knows what it continued: all of the older ones, then.
    wanted = 0;
    limit = kWholeSegment;
  }
  std::reverse(chain.begin(), chain.end());
  return chain;
}

Status check_record_sum(std::string_view line) {
  if (line.size() < kSumBytes || !line.ends_with("\"}") ||
      line.substr(line.size() - kSumBytes, kSumMember.size()) != kSumMember) {
    return Error{"it does not end with its sum"};
  }
  const std::string_view digits = line.substr(line.size() - 2 - kSumDigits, kSumDigits);
  const uint64_t expected = XXH3_64bits(line.data(), line.size() - kSumBytes);
  uint64_t found = 0;
  if (!parse_number(digits, found, 16)) return Error{"its sum is not 16 hex digits"};
  if (found == expected) return Done{};
  return Error{"its sum is " + std::string(digits) + ", expected " + hex64(expected)};
}

std::string cut_message(const std::string& segment, uint64_t byte, size_t kept, uint64_t ignored,
                        const std::string& why) {
  return segment + ": the record at byte " + std::to_string(byte) + " cannot be used: " + why +
         "; " + std::to_string(kept) + " records before it are kept, the last " +
         std::to_string(ignored) + " bytes are ignored, and what they recorded is worked out again";
}

std::string short_message(const std::string& segment, uint64_t bytes, uint64_t read) {
  return segment + ": ends at byte " + std::to_string(bytes) +
         ", but the segment that continued it had read " + std::to_string(read) +
         "; what is missing is worked out again";
}

// -- one line
// -----------------------------------------------------------------------------------------------------

// Where the text that begins at `begin` ends: at its quote.
size_t MemberCursor::text_end(size_t begin) {
  for (size_t at = begin; at < line_.size(); ++at) {
    if (line_[at] == '"') return at;
    if (line_[at] == '\\') {
      escaped_ = true;
      ++at;
    }
  }
  return line_.size();
}

// Our own records: no blanks, members in any order, values one level deep (arrays of objects).
bool MemberCursor::next() {
  if (at_ < line_.size() && line_[at_] == ',') ++at_;
  if (at_ >= line_.size() || line_[at_] != '"') return false;
  const size_t name_end = text_end(at_ + 1);
  name_ = line_.substr(at_ + 1, name_end - at_ - 1);
  hex_ = name_.ends_with(kHexSuffix);
  if (hex_) name_.remove_suffix(kHexSuffix.size());
  escaped_ = false;
  size_t begin = name_end + 2;  // ":
  if (begin >= line_.size()) return false;
  if (line_[begin] == '"') {
    const size_t end = text_end(++begin);
    value_ = line_.substr(begin, end - begin);
    at_ = end + 1;
    return true;
  }
  size_t end = begin;
  int depth = 0;
  for (; end < line_.size(); ++end) {
    const char c = line_[end];
    if (c == '"') {
      end = text_end(end + 1);
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (depth == 0 && (c == ',' || c == '}')) {
      break;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  value_ = line_.substr(begin, std::min(end, line_.size()) - begin);
  at_ = end;
  return true;
}

std::string MemberCursor::text() const {
  if (plain()) return std::string(value_);
  if (hex_) {
    std::string bytes;
    for (size_t i = 0; i + 1 < value_.size(); i += 2) {
      unsigned char byte = 0;
      if (!parse_number(value_.substr(i, 2), byte, 16)) return "";
      bytes += static_cast<char>(byte);
    }
    return bytes;
  }
  const auto parsed = nlohmann::json::parse("\"" + std::string(value_) + "\"", nullptr, false);
  return parsed.is_string() ? parsed.get<std::string>() : "";
}

int64_t MemberCursor::number() const {
  int64_t value = 0;
  return parse_number(value_, value) ? value : 0;
}

Expected<ScanEnd> scan_journal(const std::filesystem::path& run_directory, LineVisitor& visitor) {
  const auto heads = read_heads(run_directory);
  if (!heads) return heads.error();
  ScanEnd end;
  const auto chain = chain_of(run_directory, *heads, end.messages);
  if (!chain) return chain.error();
  for (const SegmentLink& link : *chain) {
    const SegmentHead& head = (*heads)[link.segment];
    const Status scanned = scan_segment(run_directory, head, link.limit, visitor, end);
    if (!scanned) return scanned.error();
  }
  return end;
}

}  // namespace sluice::io
