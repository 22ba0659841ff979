#include "io/log_pack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "io/fault.h"
#include "io/tier.h"

namespace sluice::io {

using scheduler::AttemptId;

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kIndexSuffix = ".index";
constexpr const char* kPackSuffix = ".log";

Status append_bytes(const LogPackWriter::Part& part, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count =
        uninterrupted([&] { return ::write(part.fd.get(), bytes.data(), bytes.size()); });
    if (count < 0) return system_error("write", part.path, errno);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return Done{};
}

// Appends the kept bytes of a stream; says how many there were.
Expected<int64_t> append_stream(const LogPackWriter::Part& part, const LogStream& stream) {
  if (stream.file.empty()) {
    const Status appended = append_bytes(part, stream.text);
    if (!appended) return appended.error();
    return static_cast<int64_t>(stream.text.size());
  }
  const Expected<FileDescriptor> file = open_file(stream.file, O_RDONLY);
  if (!file) return file.error();
  int64_t total = 0;
  std::vector<char> buffer(size_t{128} << 10U);
  while (true) {
    const ssize_t count =
        uninterrupted([&] { return ::read(file->get(), buffer.data(), buffer.size()); });
    if (count < 0) return system_error("read", stream.file, errno);
    if (count == 0) return total;
    const Status appended = append_bytes(part, {buffer.data(), static_cast<size_t>(count)});
    if (!appended) return appended.error();
    total += count;
  }
}

std::string index_line(const LogEntry& entry) {
  const json line = {
      {"task", entry.task},
      {"item", entry.item},
      {"attempt", entry.attempt.value},
      {"worker", entry.worker},
      {"outcome", entry.outcome},
      {"offset", entry.offset},
      {"out", {entry.out_bytes, entry.out_written_bytes, entry.out_dropped_bytes}},
      {"err", {entry.err_bytes, entry.err_written_bytes, entry.err_dropped_bytes}},
  };
  return line.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

bool read_index_line(const std::string& text, LogEntry& entry) {
  const json line = json::parse(text, nullptr, false);
  if (!line.is_object()) return false;
  try {
    std::array<int64_t, 3> out{};
    std::array<int64_t, 3> err{};
    line.at("task").get_to(entry.task);
    line.at("item").get_to(entry.item);
    line.at("attempt").get_to(entry.attempt.value);
    line.at("worker").get_to(entry.worker);
    line.at("outcome").get_to(entry.outcome);
    line.at("offset").get_to(entry.offset);
    line.at("out").get_to(out);
    line.at("err").get_to(err);
    std::tie(entry.out_bytes, entry.out_written_bytes, entry.out_dropped_bytes) =
        std::tuple_cat(out);
    std::tie(entry.err_bytes, entry.err_written_bytes, entry.err_dropped_bytes) =
        std::tuple_cat(err);
  } catch (const json::exception&) {
    return false;  // not a line of ours
  }
  return entry.offset >= 0 && entry.out_bytes >= 0 && entry.err_bytes >= 0;
}

// Entries behind the first `length` bytes; moves `length` behind the last whole line. The file is
// opened even if its size seems to be the same: on NFS only that asks the server.
Status read_index(const fs::path& index, int64_t& length, std::vector<LogEntry>& entries) {
  const Expected<FileDescriptor> file = open_file(index, O_RDONLY);
  if (!file && file.error().code == ENOENT) return Done{};  // `clean` removes files as a whole
  if (!file) return file.error();
  const off_t end = ::lseek(file->get(), 0, SEEK_END);
  if (end < 0) return system_error("read", index, errno);
  std::string text(static_cast<size_t>(std::max<int64_t>(0, end - length)), '\0');
  const Status read = read_at(file->get(), std::as_writable_bytes(std::span(text)), length, index);
  if (!read) return read;
  fs::path pack = index;
  pack.replace_extension(kPackSuffix);
  size_t begin = 0;
  for (size_t newline = 0; (newline = text.find('\n', begin)) != std::string::npos;) {
    LogEntry entry;
    if (read_index_line(text.substr(begin, newline - begin), entry)) {
      entry.pack = pack;
      entries.push_back(std::move(entry));
    }
    begin = newline + 1;
  }
  length += static_cast<int64_t>(begin);
  return Done{};
}

}  // namespace

Expected<LogPackWriter> LogPackWriter::create(const fs::path& logs, uint32_t epoch,
                                              uint32_t worker) {
  std::error_code code;
  fs::create_directories(logs, code);
  if (code) return system_error("make the folder", logs, code.value());
  const fs::path base = logs / (std::to_string(epoch) + "." + std::to_string(worker));
  LogPackWriter writer;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND;
  for (const auto& [part, suffix] :
       {std::pair{&writer.pack_, kPackSuffix}, std::pair{&writer.index_, kIndexSuffix}}) {
    part->path = base.string() + suffix;
    Expected<FileDescriptor> file = open_file(part->path, kFlags, 0666);
    if (!file) return file.error();
    part->fd = std::move(*file);
  }
  return writer;
}

// On an error (a full disk) both files are cut back, so that the next entry finds whole ones.
Status LogPackWriter::append(LogEntry entry, const LogStream& out, const LogStream& err) {
  // Where they really end: an earlier error may have left something that could not be cut off.
  const off_t pack_length = ::lseek(pack_.fd.get(), 0, SEEK_END);
  const off_t index_length = ::lseek(index_.fd.get(), 0, SEEK_END);
  const auto undo = [&](const Error& error) {
    const auto cut = [](const Part& part, off_t length) {
      return uninterrupted([&] { return ::ftruncate(part.fd.get(), length); }) == 0;
    };
    (void)cut(pack_, pack_length);
    index_torn_ = !cut(index_, index_length);
    return error;
  };
  entry.offset = pack_length;
  const Expected<int64_t> out_bytes = append_stream(pack_, out);
  if (!out_bytes) return undo(out_bytes.error());
  const Expected<int64_t> err_bytes = append_stream(pack_, err);
  if (!err_bytes) return undo(err_bytes.error());
  entry.out_bytes = *out_bytes;
  entry.out_written_bytes = out.written_bytes;
  entry.out_dropped_bytes = out.dropped_bytes;
  entry.err_bytes = *err_bytes;
  entry.err_written_bytes = err.written_bytes;
  entry.err_dropped_bytes = err.dropped_bytes;
  SLUICE_FAULT_POINT("log.packed");
  // What could not be cut off is a line of its own, which readers pass over.
  const Status indexed = append_bytes(index_, (index_torn_ ? "\n" : "") + index_line(entry));
  if (!indexed) return undo(indexed.error());
  index_torn_ = false;
  SLUICE_FAULT_POINT("log.indexed");
  return Done{};
}

LogIndexReader::LogIndexReader(fs::path logs) : logs_(std::move(logs)) {}

Expected<std::vector<LogEntry>> LogIndexReader::read_new() {
  std::vector<LogEntry> entries;
  std::error_code code;
  fs::directory_iterator file(logs_, code);
  if (code == std::errc::no_such_file_or_directory) return entries;  // nothing has run yet
  std::vector<fs::path> indexes;
  for (; !code && file != fs::directory_iterator(); file.increment(code)) {
    if (file->path().extension() == kIndexSuffix) indexes.push_back(file->path());
  }
  if (code) return system_error("read", logs_, code.value());
  // Lengths move only when all could be read: then the next call gives what this one does not.
  auto lengths = lengths_;
  for (const fs::path& index : indexes) {
    const Status read = read_index(index, lengths[index], entries);
    if (!read) return read.error();
  }
  lengths_ = std::move(lengths);
  std::sort(entries.begin(), entries.end(), [](const LogEntry& a, const LogEntry& b) {
    return std::tie(a.attempt, a.worker) < std::tie(b.attempt, b.worker);
  });
  return entries;
}

Expected<std::vector<LogEntry>> read_log_index(const fs::path& logs) {
  return LogIndexReader(logs).read_new();
}

Expected<std::string> read_log(const LogEntry& entry, bool err) {
  const int64_t offset = err ? entry.offset + entry.out_bytes : entry.offset;
  const int64_t bytes = err ? entry.err_bytes : entry.out_bytes;
  const Expected<FileDescriptor> file = open_file(entry.pack, O_RDONLY);
  if (!file) return file.error();
  struct stat info {};
  if (::fstat(file->get(), &info) != 0) return system_error("read", entry.pack, errno);
  if (info.st_size < offset + bytes) {
    return Error{"'" + entry.pack.string() + "' ends before byte " +
                 std::to_string(offset + bytes) + ", where the output of " + entry.task +
                 (entry.item.empty() ? "" : "[" + entry.item + "]") + " should end"};
  }
  std::string text(static_cast<size_t>(bytes), '\0');
  const Status read =
      read_at(file->get(), std::as_writable_bytes(std::span(text)), offset, entry.pack);
  if (!read) return read.error();
  return text;
}

}  // namespace sluice::io
