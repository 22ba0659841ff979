#include "engine/live_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string_view>
#include <tuple>

#include "engine/launch_protocol.h"
#include "io/file_descriptor.h"
#include "io/sources.h"

namespace sluice::engine {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLauncherName = "sluice-launch";
constexpr std::string_view kMemoryFile = "/memfd:";  // what /proc calls them
constexpr std::string_view kDeleted = " (deleted)";
constexpr size_t kRunDigits = 16;

bool is_launcher(const fs::path& process) {
  std::ifstream in(process / "comm");
  std::string name;
  std::getline(in, name);
  return name == kLauncherName;
}

// <attempt>.out
bool parse_rest(std::string_view rest, LiveStream& stream) {
  const auto [end, error] =
      std::from_chars(rest.data(), rest.data() + rest.size(), stream.attempt.value);
  const std::string_view suffix(end, static_cast<size_t>(rest.data() + rest.size() - end));
  stream.err = suffix == ".err";
  return error == std::errc() && (stream.err || suffix == ".out");
}

void add_streams(const fs::path& process, std::string_view prefix,
                 std::vector<LiveStream>& streams) {
  std::error_code code;
  fs::directory_iterator entry(process / "fd", code);
  for (; !code && entry != fs::directory_iterator(); entry.increment(code)) {
    std::error_code ignored;
    const std::string link = fs::read_symlink(entry->path(), ignored);
    std::string_view name = link;
    if (!name.starts_with(kMemoryFile)) continue;
    name.remove_prefix(kMemoryFile.size());
    if (name.ends_with(kDeleted)) name.remove_suffix(kDeleted.size());
    if (!name.starts_with(prefix)) continue;
    LiveStream stream;
    stream.file = entry->path();
    if (parse_rest(name.substr(prefix.size()), stream)) streams.push_back(std::move(stream));
  }
}

}  // namespace

std::string live_stream_prefix(const std::string& run_directory) {
  std::error_code ignored;
  fs::path path = fs::weakly_canonical(run_directory, ignored);
  if (!path.has_filename()) path = path.parent_path();  // "here/" is "here"
  return "sluice." + io::to_hex(io::hash_text(path.string())).substr(0, kRunDigits) + ".";
}

std::string live_stream_name(const std::string& prefix, scheduler::AttemptId attempt, bool err) {
  return prefix + std::to_string(attempt.value) + (err ? ".err" : ".out");
}

std::vector<LiveStream> find_live_streams(const std::string& run_directory) {
  std::vector<LiveStream> streams;
  const std::string prefix = live_stream_prefix(run_directory);
  std::error_code code;
  fs::directory_iterator entry("/proc", code);
  for (; !code && entry != fs::directory_iterator(); entry.increment(code)) {
    const std::string name = entry->path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (is_launcher(entry->path())) add_streams(entry->path(), prefix, streams);
  }
  std::sort(streams.begin(), streams.end(), [](const LiveStream& a, const LiveStream& b) {
    return std::tie(a.attempt, a.err) < std::tie(b.attempt, b.err);
  });
  return streams;
}

std::string read_live_stream(const LiveStream& stream, int64_t offset) {
  const io::FileDescriptor file(::open(stream.file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (!file.open() || ::fstat(file.get(), &info) != 0) return "";
  // A full file is overwritten in its second half: what was read there may be newer than it seems.
  const int64_t end = info.st_size < kStreamKeptBytes ? info.st_size : kStreamKeptBytes / 2;
  if (end <= offset) return "";
  std::string bytes(static_cast<size_t>(end - offset), '\0');
  const ssize_t got = ::pread(file.get(), bytes.data(), bytes.size(), offset);
  bytes.resize(static_cast<size_t>(std::max<ssize_t>(0, got)));
  return bytes;
}

}  // namespace sluice::engine
