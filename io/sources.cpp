#include "io/sources.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <system_error>
#include <utility>
#include <vector>

namespace sluice::io {

namespace {

using scheduler::Hash128;

constexpr size_t kReadBytes = size_t{1} << 20U;
constexpr size_t kHexDigits = 32;
constexpr std::string_view kCacheHeader = "sluice-sources 1";
// A file changed so recently may change again without a new time stamp, so it is not remembered.
constexpr int64_t kRacyNs = 2'000'000'000;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

Hash128 from_xxh(XXH128_hash_t hash) { return {hash.high64, hash.low64}; }

Error unreadable(const std::filesystem::path& path, int code) {
  const std::string name = "'" + path.string() + "'";
  if (code == ENOENT) {
    struct stat link {};
    if (::lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode)) {
      std::array<char, 4096> target{};
      const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
      return {name + " is a link to '" +
                  std::string(target.data(), length > 0 ? static_cast<size_t>(length) : 0) +
                  "', which does not exist",
              code};
    }
    return {name + " does not exist", code};
  }
  return {"cannot read " + name + ": " + std::generic_category().message(code), code};
}

// Opens a regular file and tells its size, time and inode.
Expected<int> open_regular(const std::filesystem::path& path, struct stat& info) {
  // O_NONBLOCK: opening a named pipe must not hang.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return unreadable(path, errno);
  }
  if (::fstat(fd, &info) != 0) {
    const int code = errno;
    ::close(fd);
    return unreadable(path, code);
  }
  if (S_ISREG(info.st_mode)) {
    return fd;
  }
  ::close(fd);
  if (S_ISDIR(info.st_mode)) {
    return Error{"'" + path.string() + "' is a directory, a file is needed", EISDIR};
  }
  return Error{"'" + path.string() + "' is not a regular file", EINVAL};
}

Expected<Hash128> hash_descriptor(int fd, const std::filesystem::path& path,
                                  const std::function<void()>& progress = {}) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  std::vector<char> buffer(kReadBytes);
  for (;;) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      return unreadable(path, errno);
    }
    if (count == 0) {
      return from_xxh(XXH3_128bits_digest(state.get()));
    }
    XXH3_128bits_update(state.get(), buffer.data(), static_cast<size_t>(count));
    if (progress) {
      progress();
    }
  }
}

int64_t nanoseconds_of(const timespec& time) {
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string read_all(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return in ? text.str() : std::string();
}

}  // namespace

Hash128 hash_text(std::string_view text) {
  return from_xxh(XXH3_128bits(text.data(), text.size()));
}

Expected<Hash128> hash_file(const std::filesystem::path& path) { return hash_large_file(path, {}); }

Expected<Hash128> hash_large_file(const std::filesystem::path& path,
                                  const std::function<void()>& progress) {
  struct stat info {};
  const Expected<int> fd = open_regular(path, info);
  if (!fd) {
    return fd.error();
  }
  const Descriptor descriptor(*fd);
  return hash_descriptor(descriptor.get(), path, progress);
}

std::string to_hex(Hash128 hash) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text(kHexDigits, '0');
  for (size_t i = 0; i < kHexDigits / 2; ++i) {
    const auto shift = static_cast<unsigned>(60 - 4 * i);
    text[i] = kDigits[(hash.high >> shift) & 0xFU];
    text[kHexDigits / 2 + i] = kDigits[(hash.low >> shift) & 0xFU];
  }
  return text;
}

Expected<Hash128> from_hex(std::string_view text) {
  const auto half = [](std::string_view digits, uint64_t& value) {
    const auto [end, code] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    return code == std::errc() && end == digits.data() + digits.size();
  };
  Hash128 hash;
  if (text.size() != kHexDigits || !half(text.substr(0, kHexDigits / 2), hash.high) ||
      !half(text.substr(kHexDigits / 2), hash.low)) {
    return Error{"'" + std::string(text) + "' is not a content id: 32 hexadecimal digits needed"};
  }
  return hash;
}

// The cache is text: header, hash of the rest, then a line per file, `id size mtime_ns inode path`.
// Paths with a newline are not remembered.
std::optional<SourceStamp> look_at_source(const std::filesystem::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return std::nullopt;
  }
  return SourceStamp{info.st_size, nanoseconds_of(info.st_mtim), info.st_ino};
}

FileSourceIds::FileSourceIds(std::filesystem::path cache_file)
    : cache_file_(std::move(cache_file)) {
  if (cache_file_.empty()) {
    return;
  }
  const std::string text = read_all(cache_file_);
  const size_t body_begin = kCacheHeader.size() + 1 + kHexDigits + 1;
  if (text.size() < body_begin || text.compare(0, kCacheHeader.size(), kCacheHeader) != 0) {
    return;
  }
  const std::string body = text.substr(body_begin);
  if (text.compare(kCacheHeader.size() + 1, kHexDigits, to_hex(hash_text(body))) != 0) {
    return;
  }
  std::istringstream lines(body);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string id;
    std::string path;
    Entry entry;
    fields >> id >> entry.size >> entry.mtime_ns >> entry.inode;
    fields.ignore(1);
    std::getline(fields, path);
    if (const Expected<Hash128> hash = from_hex(id); hash && !path.empty()) {
      entry.id = *hash;
      entries_[path] = entry;
    }
  }
}

Expected<Hash128> FileSourceIds::content_id(const std::filesystem::path& path) {
  struct stat info {};
  const Expected<int> fd = open_regular(path, info);
  if (!fd) {
    return fd.error();
  }
  const Descriptor descriptor(*fd);
  Entry entry;
  entry.size = info.st_size;
  entry.mtime_ns = nanoseconds_of(info.st_mtim);
  entry.inode = info.st_ino;
  stamps_[path.string()] = {entry.size, entry.mtime_ns, entry.inode};
  const auto known = entries_.find(path.string());
  if (known != entries_.end() && known->second.size == entry.size &&
      known->second.mtime_ns == entry.mtime_ns && known->second.inode == entry.inode) {
    return known->second.id;
  }
  Expected<Hash128> id = hash_descriptor(descriptor.get(), path);
  if (!id) {
    return id;
  }
  entry.id = *id;
  if (entry.mtime_ns + kRacyNs < now_ns()) {
    entries_[path.string()] = entry;
  } else {
    entries_.erase(path.string());
  }
  return id;
}

Status FileSourceIds::save() const {
  if (cache_file_.empty()) {
    return Done{};
  }
  std::ostringstream body;
  for (const auto& [path, entry] : entries_) {
    if (path.find('\n') == std::string::npos) {
      body << to_hex(entry.id) << ' ' << entry.size << ' ' << entry.mtime_ns << ' ' << entry.inode
           << ' ' << path << '\n';
    }
  }
  const std::filesystem::path temporary = cache_file_.string() + ".tmp";
  {
    std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
    out << kCacheHeader << '\n' << to_hex(hash_text(body.str())) << '\n' << body.str();
    out.close();
    if (!out) {
      return Error{"cannot write '" + temporary.string() +
                   "': check that its folder exists and has space"};
    }
  }
  std::error_code code;
  std::filesystem::rename(temporary, cache_file_, code);
  if (code) {
    return Error{"cannot rename '" + temporary.string() + "': " + code.message(), code.value()};
  }
  return Done{};
}

}  // namespace sluice::io
