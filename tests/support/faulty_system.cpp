#include "tests/support/faulty_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>

namespace sluice::test {

namespace {

namespace fs = std::filesystem;

// What is known of a file or folder by its identity: the system gives the number of an inode again
// after its removal, so it has one of ours.
using Identity = uint64_t;
struct Entry {
  Identity identity = 0;
  fs::file_type type = fs::file_type::none;
  std::string target;  // of a link
};
using Names = std::map<std::string, Entry>;

struct Disk {
  fs::path folder;
  Fault fault;
  bool armed = false;
  bool crashed = false;
  uint64_t count = 0;
  std::string hit_call;
  std::set<int> failing_writes;  // descriptors: half is written, the rest fails
  std::map<ino_t, Identity> identities;
  Identity last_identity = 0;
  std::map<Identity, std::string> bytes;  // of files, as synced
  std::map<Identity, Names> names;        // of folders, as synced
};

std::mutex mutex;
std::optional<Disk> disk;            // guarded by mutex
std::atomic<bool> watching = false;  // whether there is a disk
thread_local bool is_ours = false;   // calls of this file are not looked at

class Ours {
 public:
  Ours() : before_(is_ours) { is_ours = true; }
  ~Ours() { is_ours = before_; }
  Ours(const Ours&) = delete;
  Ours& operator=(const Ours&) = delete;

 private:
  bool before_;
};

std::string read_all(const fs::path& file) {
  std::string text;
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  std::array<char, 65536> buffer{};
  for (ssize_t got = 0; (got = ::read(fd, buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  ::close(fd);
  return text;
}

Identity identity_of(const fs::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return 0;
  Identity& identity = disk->identities[info.st_ino];
  if (identity == 0) identity = ++disk->last_identity;
  return identity;
}

Names names_in(const fs::path& folder) {
  Names names;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code)) {
    Entry& there = names[entry.path().filename()];
    there.identity = identity_of(entry.path());
    there.type = entry.symlink_status(code).type();
    if (there.type == fs::file_type::symlink) there.target = fs::read_symlink(entry.path(), code);
  }
  return names;
}

void note_synced(const fs::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return;
  // A descriptor's path below /proc is a link: what it stands for has the identity.
  Identity& identity = disk->identities[info.st_ino];
  if (identity == 0) identity = ++disk->last_identity;
  if (S_ISDIR(info.st_mode)) {
    Names names = names_in(path);  // may move `identity`
    disk->names[disk->identities[info.st_ino]] = std::move(names);
  } else {
    disk->bytes[identity] = read_all(path);
  }
}

void note_all_synced(const fs::path& folder) {
  note_synced(folder);
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_symlink()) note_synced(entry.path());
  }
}

// A new inode may have the number of one that is gone.
void note_made(const fs::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0) disk->identities[info.st_ino] = ++disk->last_identity;
}

bool is_below(std::string_view path) {
  const std::string& folder = disk->folder.native();
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

std::string path_of_descriptor(int fd) {
  std::array<char, 4096> text{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), text.data(), text.size());
  return {text.data(), static_cast<size_t>(std::max<ssize_t>(0, length))};
}

std::string path_of_name(int folder_fd, const char* path) {
  if (path[0] == '/' || folder_fd == AT_FDCWD) return path;
  return path_of_descriptor(folder_fd) + "/" + path;
}

enum Traits : uint8_t {
  kChanges = 1,        // of what is on the disk
  kInterruptible = 2,  // EINTR is possible
  kTransfers = 4,      // of a number of bytes, of which it may do fewer
  kNeedsRoom = 8,      // ENOSPC is possible
};

// What is to become of a call.
struct Verdict {
  int error = 0;      // not 0: it fails
  size_t length = 0;  // of a transfer
};

bool can_go_wrong(const Fault& fault, unsigned traits, size_t length) {
  switch (fault.kind) {
    case Fault::Kind::kError:
      return fault.error != ENOSPC || (traits & kNeedsRoom) != 0;
    case Fault::Kind::kInterrupted:
      return (traits & kInterruptible) != 0;
    case Fault::Kind::kShort:
      return (traits & kTransfers) != 0 && length > 1;
    case Fault::Kind::kCrash:
      return (traits & kChanges) != 0;
  }
  return false;
}

Verdict judge(const char* name, const std::string& path, unsigned traits, size_t length, int fd) {
  Verdict verdict{0, length};
  if (!disk->armed || !is_below(path)) return verdict;
  if (disk->crashed) return {(traits & kChanges) != 0 ? EIO : 0, length};
  if ((traits & kTransfers) != 0 && disk->failing_writes.erase(fd) > 0) {
    return {disk->fault.error, length};
  }
  if (!can_go_wrong(disk->fault, traits, length)) return verdict;
  if (++disk->count != disk->fault.nth) return verdict;
  disk->hit_call = std::string(name) + " " + path;
  const bool is_write = (traits & kTransfers) != 0 && (traits & kChanges) != 0;
  switch (disk->fault.kind) {
    case Fault::Kind::kError:
      if (!is_write || length < 2) return {disk->fault.error, length};
      disk->failing_writes.insert(fd);
      return {0, length / 2};
    case Fault::Kind::kInterrupted:
      return {EINTR, length};
    case Fault::Kind::kShort:
      return {0, length / 2};
    case Fault::Kind::kCrash:
      disk->crashed = true;
      return {EIO, length};
  }
  return verdict;
}

// Asks what is to become of a call, makes it with the length that is left, then lets `after` note
// what it did.
template <class Path, class Make, class After>
ssize_t pass(const char* name, const Path& path, unsigned traits, size_t length, int fd,
             const Make& make, const After& after) {
  if (!watching || is_ours) return make(length);
  const Ours ours;
  const std::lock_guard lock(mutex);
  if (!disk) return make(length);
  const std::string text = path();
  const Verdict verdict = judge(name, text, traits, length, fd);
  if (verdict.error != 0) {
    errno = verdict.error;
    return -1;
  }
  const ssize_t result = make(verdict.length);
  const int code = errno;
  if (result >= 0 && is_below(text)) after(text);
  errno = code;
  return result;
}

template <class Make, class After>
ssize_t pass_name(const char* name, int folder_fd, const char* path, unsigned traits,
                  const Make& make, const After& after) {
  return pass(
      name, [&] { return path_of_name(folder_fd, path); }, traits, 0, -1,
      [&](size_t) -> ssize_t { return make(); }, after);
}

template <class Make>
ssize_t pass_bytes(const char* name, int fd, unsigned traits, size_t length, const Make& make) {
  return pass(
      name, [&] { return path_of_descriptor(fd); }, traits, length, fd, make,
      [](const std::string&) {});
}

const auto nothing = [](const std::string&) {};

int open_at(int folder_fd, const char* path, int flags, mode_t mode) {
  const bool creates = (flags & O_CREAT) != 0;
  bool is_new = false;
  // Folders are mostly opened by the C++ library, which does not expect to be interrupted.
  const unsigned interruptible = (flags & O_DIRECTORY) == 0 ? unsigned{kInterruptible} : 0U;
  return static_cast<int>(pass_name(
      "open", folder_fd, path, interruptible | (creates ? unsigned{kChanges | kNeedsRoom} : 0U),
      [&]() -> ssize_t {
        is_new = creates && ::faccessat(folder_fd, path, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
        return ::syscall(SYS_openat, folder_fd, path, flags, mode);
      },
      [&](const std::string& at) {
        if (is_new) note_made(at);
      }));
}

int sync(const char* name, int fd, long number) {
  return static_cast<int>(pass(
      name, [&] { return path_of_descriptor(fd); }, kChanges | kInterruptible | kNeedsRoom, 0, fd,
      [&](size_t) -> ssize_t { return ::syscall(number, fd); },
      [&](const std::string&) { note_synced("/proc/self/fd/" + std::to_string(fd)); }));
}

// -- what a crash leaves

void lay_out(const fs::path& into, const Names& names, const fs::path& now,
             const std::map<Identity, fs::path>& where, bool only_synced_names,
             bool only_synced_bytes) {
  fs::create_directories(into);
  for (const auto& [name, entry] : names) {
    const auto there = where.find(entry.identity);
    const fs::path current = there == where.end() ? now / name : there->second;
    if (entry.type == fs::file_type::directory) {
      const Names below = only_synced_names ? disk->names[entry.identity] : names_in(current);
      lay_out(into / name, below, current, where, only_synced_names, only_synced_bytes);
    } else if (entry.type == fs::file_type::symlink) {
      fs::create_symlink(entry.target, into / name);
    } else {
      const bool synced = only_synced_bytes || there == where.end();
      const std::string text = synced ? disk->bytes[entry.identity] : read_all(current);
      const int fd = ::open((into / name).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
      (void)!::write(fd, text.data(), text.size());
      ::close(fd);
    }
  }
}

}  // namespace

FaultySystem::FaultySystem(fs::path folder) {
  const std::lock_guard lock(mutex);
  disk.emplace();
  disk->folder = std::move(folder);
  watching = true;
}

FaultySystem::~FaultySystem() {
  const std::lock_guard lock(mutex);
  watching = false;
  disk.reset();
}

void FaultySystem::arm(Fault fault) {
  const Ours ours;
  const std::lock_guard lock(mutex);
  disk->fault = fault;
  disk->count = 0;
  disk->crashed = false;
  disk->hit_call.clear();
  disk->failing_writes.clear();
  disk->bytes.clear();
  disk->names.clear();
  note_all_synced(disk->folder);
  disk->armed = true;
}

void FaultySystem::disarm() {
  const std::lock_guard lock(mutex);
  disk->armed = false;
}

bool FaultySystem::hit() const { return !hit_call().empty(); }

std::string FaultySystem::hit_call() const {
  const std::lock_guard lock(mutex);
  return disk->hit_call;
}

void FaultySystem::lay_out_crash(const fs::path& into, bool only_synced_names,
                                 bool only_synced_bytes) const {
  const Ours ours;
  const std::lock_guard lock(mutex);
  std::map<Identity, fs::path> where;
  for (const auto& entry : fs::recursive_directory_iterator(disk->folder)) {
    where[identity_of(entry.path())] = entry.path();
  }
  const Identity root = identity_of(disk->folder);
  const Names names = only_synced_names ? disk->names[root] : names_in(disk->folder);
  lay_out(into, names, disk->folder, where, only_synced_names, only_synced_bytes);
}

}  // namespace sluice::test

// -- the functions that take the place of the C library's

using sluice::test::kChanges;
using sluice::test::kInterruptible;
using sluice::test::kNeedsRoom;
using sluice::test::kTransfers;
using sluice::test::nothing;

extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return sluice::test::open_at(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return sluice::test::open_at(folder, path, flags, mode);
}

ssize_t read(int fd, void* bytes, size_t length) {
  return sluice::test::pass_bytes(
      "read", fd, kTransfers | kInterruptible, length,
      [&](size_t now) -> ssize_t { return ::syscall(SYS_read, fd, bytes, now); });
}

ssize_t pread(int fd, void* bytes, size_t length, off_t offset) {
  return sluice::test::pass_bytes(
      "pread", fd, kTransfers | kInterruptible, length,
      [&](size_t now) -> ssize_t { return ::syscall(SYS_pread64, fd, bytes, now, offset); });
}

ssize_t write(int fd, const void* bytes, size_t length) {
  return sluice::test::pass_bytes(
      "write", fd, kChanges | kTransfers | kInterruptible | kNeedsRoom, length,
      [&](size_t now) -> ssize_t { return ::syscall(SYS_write, fd, bytes, now); });
}

ssize_t pwrite(int fd, const void* bytes, size_t length, off_t offset) {
  return sluice::test::pass_bytes(
      "pwrite", fd, kChanges | kTransfers | kInterruptible | kNeedsRoom, length,
      [&](size_t now) -> ssize_t { return ::syscall(SYS_pwrite64, fd, bytes, now, offset); });
}

ssize_t copy_file_range(int from, off64_t* from_offset, int to, off64_t* to_offset, size_t length,
                        unsigned flags) {
  return sluice::test::pass_bytes(
      "copy_file_range", to, kChanges | kTransfers | kInterruptible | kNeedsRoom, length,
      [&](size_t now) -> ssize_t {
        // Half of what is asked for is more than most files have.
        if (now < length) now = 2;
        return ::syscall(SYS_copy_file_range, from, from_offset, to, to_offset, now, flags);
      });
}

int fsync(int fd) { return sluice::test::sync("fsync", fd, SYS_fsync); }
int fdatasync(int fd) { return sluice::test::sync("fdatasync", fd, SYS_fdatasync); }

int ftruncate(int fd, off_t length) noexcept {
  return static_cast<int>(sluice::test::pass_bytes(
      "ftruncate", fd, kChanges | kInterruptible, 0,
      [&](size_t) -> ssize_t { return ::syscall(SYS_ftruncate, fd, length); }));
}

int fchmod(int fd, mode_t mode) noexcept {
  return static_cast<int>(
      sluice::test::pass_bytes("fchmod", fd, kChanges, 0,
                               [&](size_t) -> ssize_t { return ::syscall(SYS_fchmod, fd, mode); }));
}

int rename(const char* from, const char* to) noexcept {
  return static_cast<int>(sluice::test::pass_name(
      "rename", AT_FDCWD, to, kChanges | kNeedsRoom,
      [&]() -> ssize_t { return ::syscall(SYS_rename, from, to); }, nothing));
}

int link(const char* from, const char* to) noexcept {
  return static_cast<int>(sluice::test::pass_name(
      "link", AT_FDCWD, to, kChanges | kNeedsRoom,
      [&]() -> ssize_t { return ::syscall(SYS_link, from, to); }, nothing));
}

int unlink(const char* path) noexcept {
  return static_cast<int>(sluice::test::pass_name(
      "unlink", AT_FDCWD, path, kChanges, [&]() -> ssize_t { return ::syscall(SYS_unlink, path); },
      nothing));
}

int unlinkat(int folder, const char* path, int flags) noexcept {
  return static_cast<int>(sluice::test::pass_name(
      "unlinkat", folder, path, kChanges,
      [&]() -> ssize_t { return ::syscall(SYS_unlinkat, folder, path, flags); }, nothing));
}

int rmdir(const char* path) noexcept {
  return static_cast<int>(sluice::test::pass_name(
      "rmdir", AT_FDCWD, path, kChanges, [&]() -> ssize_t { return ::syscall(SYS_rmdir, path); },
      nothing));
}

int remove(const char* path) noexcept {
  return ::unlink(path) == 0 ? 0 : (errno == EISDIR ? ::rmdir(path) : -1);
}

int mkdir(const char* path, mode_t mode) noexcept {
  return static_cast<int>(sluice::test::pass_name(
      "mkdir", AT_FDCWD, path, kChanges | kNeedsRoom,
      [&]() -> ssize_t { return ::syscall(SYS_mkdir, path, mode); },
      [](const std::string& at) { sluice::test::note_made(at); }));
}

int symlink(const char* target, const char* path) noexcept {
  return static_cast<int>(sluice::test::pass_name(
      "symlink", AT_FDCWD, path, kChanges | kNeedsRoom,
      [&]() -> ssize_t { return ::syscall(SYS_symlink, target, path); },
      [](const std::string& at) { sluice::test::note_made(at); }));
}

int chmod(const char* path, mode_t mode) noexcept {
  return static_cast<int>(sluice::test::pass_name(
      "chmod", AT_FDCWD, path, kChanges,
      [&]() -> ssize_t { return ::syscall(SYS_chmod, path, mode); }, nothing));
}

}  // extern "C"
