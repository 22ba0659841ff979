#include "io/tier.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

#include "io/fault.h"

namespace sluice::io {

namespace {

namespace fs = std::filesystem;

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F;
}

Status write_all(int fd, const char* data, size_t size, const fs::path& file) {
  while (size > 0) {
    const ssize_t count = uninterrupted([&] { return ::write(fd, data, size); });
    if (count < 0) return system_error("write", file, errno);
    data += count;
    size -= static_cast<size_t>(count);
  }
  return Done{};
}

Status copy_by_reading(int from, int to, const fs::path& from_path, const fs::path& to_path) {
  std::vector<char> buffer(size_t{128} << 10U);
  while (true) {
    const ssize_t count = uninterrupted([&] { return ::read(from, buffer.data(), buffer.size()); });
    if (count < 0) return system_error("read", from_path, errno);
    if (count == 0) return Done{};
    const Status written = write_all(to, buffer.data(), static_cast<size_t>(count), to_path);
    if (!written) return written;
  }
}

// The kernel copies where it can; it refuses between some file systems, on some kernels only after
// the first piece, so reading and writing goes on from wherever the offsets are.
Status copy_bytes(int from, int to, const fs::path& from_path, const fs::path& to_path) {
  constexpr size_t kPieceBytes = size_t{64} << 20U;
  while (true) {
    const ssize_t count = uninterrupted(
        [&] { return ::copy_file_range(from, nullptr, to, nullptr, kPieceBytes, 0); });
    if (count > 0) continue;
    if (count < 0 && (errno == ENOSPC || errno == EDQUOT)) {
      return system_error("write", to_path, errno);
    }
    // 0 is the end, but also what a few file systems say for "cannot": reading finds out.
    return copy_by_reading(from, to, from_path, to_path);
  }
}

Status copy_into(int from, const fs::path& from_path, const fs::path& to, mode_t mode, Sync sync) {
  Expected<FileDescriptor> out = open_file(to, O_WRONLY | O_CREAT | O_TRUNC, mode);
  if (!out) return out.error();
  const Status copied = copy_bytes(from, out->get(), from_path, to);
  if (!copied) return copied;
  if (sync == Sync::kNo) return Done{};
  SLUICE_FAULT_POINT("publish.copied");
  const Status synced = sync_file(out->get(), to);
  if (synced) SLUICE_FAULT_POINT("publish.synced");
  return synced;
}

// Directories that the user made unwritable cannot be emptied by others than root.
void make_directories_writable(const fs::path& path) {
  std::error_code ignored;
  fs::permissions(path, fs::perms::owner_all, fs::perm_options::add, ignored);
  fs::recursive_directory_iterator entry(path, ignored);
  const fs::recursive_directory_iterator end;
  while (!ignored && entry != end) {
    std::error_code failed;
    if (entry->symlink_status(failed).type() == fs::file_type::directory) {
      fs::permissions(entry->path(), fs::perms::owner_all, fs::perm_options::add, failed);
    }
    entry.increment(ignored);
  }
}

}  // namespace

Error system_error(std::string_view verb, const fs::path& path, int code) {
  std::string text = "cannot " + std::string(verb) + " '" + path.string() +
                     "': " + std::generic_category().message(code);
  if (code == ENOSPC) text += "; free space on that file system and run again";
  if (code == EFBIG) text += "; raise the limit on the size of files (ulimit -f)";
  if (code == EMFILE) text += "; raise the limit on open files (ulimit -n)";
  if (code == EDQUOT) text += "; free some of your quota on that file system and run again";
  return {std::move(text), code};
}

Status make_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return Done{};
  if (errno != ENOENT) return system_error("make the folder", folder, errno);
  std::error_code code;
  fs::create_directories(folder.parent_path(), code);
  if (code) return system_error("make the folder", folder.parent_path(), code.value());
  if (::mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return Done{};
  return system_error("make the folder", folder, errno);
}

Status make_durable_folders(const fs::path& folder) {
  struct stat info {};
  if (::stat(folder.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) return Done{};
    return system_error("make the folder", folder, ENOTDIR);
  }
  if (errno != ENOENT) return system_error("look at", folder, errno);
  const fs::path parent = folder.has_parent_path() ? folder.parent_path() : fs::path(".");
  if (parent != folder) {
    const Status made = make_durable_folders(parent);
    if (!made) return made;
  }
  if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
    return system_error("make the folder", folder, errno);
  }
  return sync_folder(parent);
}

Status make_new_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) == 0) return Done{};
  return system_error("make the folder", folder, errno);
}

Status write_file(const fs::path& file, std::string_view content, mode_t mode) {
  const Expected<FileDescriptor> out = open_file(file, O_WRONLY | O_CREAT | O_TRUNC, mode);
  if (!out) return out.error();
  return write_all(out->get(), content.data(), content.size(), file);
}

Status make_link(const std::string& target, const fs::path& link) {
  if (::symlink(target.c_str(), link.c_str()) == 0) return Done{};
  return system_error("make the link", link, errno);
}

Expected<FileDescriptor> open_file(const fs::path& file, int flags, mode_t mode) {
  constexpr int kAlways = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const int fd = uninterrupted([&] { return ::open(file.c_str(), flags | kAlways, mode); });
  if (fd >= 0) return FileDescriptor(fd);
  return system_error((flags & O_CREAT) != 0 ? "create" : "open", file, errno);
}

Status write_at(int fd, std::span<const std::byte> bytes, int64_t offset, const fs::path& file) {
  while (!bytes.empty()) {
    const ssize_t count =
        uninterrupted([&] { return ::pwrite(fd, bytes.data(), bytes.size(), offset); });
    if (count < 0) return system_error("write", file, errno);
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += count;
  }
  return Done{};
}

Status read_at(int fd, std::span<std::byte> bytes, int64_t offset, const fs::path& file) {
  while (!bytes.empty()) {
    const ssize_t count =
        uninterrupted([&] { return ::pread(fd, bytes.data(), bytes.size(), offset); });
    if (count < 0) return system_error("read", file, errno);
    if (count == 0) return Error{"'" + file.string() + "' is shorter than when it was sealed", EIO};
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += count;
  }
  return Done{};
}

Status copy_file(const fs::path& from, const fs::path& to, mode_t mode, Sync sync) {
  const Expected<FileDescriptor> in = open_file(from, O_RDONLY);
  if (!in) return in.error();
  Status copied = copy_into(in->get(), from, to, mode, sync);
  if (copied && sync == Sync::kFileAndFolder) copied = sync_folder(to.parent_path());
  if (!copied) ::unlink(to.c_str());
  return copied;
}

Status sync_file(int fd, const fs::path& file) {
  if (uninterrupted([&] { return ::fsync(fd); }) == 0) return Done{};
  return system_error("sync", file, errno);
}

Status sync_folder(const fs::path& folder) {
  // The folder may be a link: that of the run directory is the user's.
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  const FileDescriptor in(uninterrupted([&] { return ::open(folder.c_str(), kFlags); }));
  if (!in.open()) return system_error("open the folder", folder, errno);
  // EINVAL: a file system without directory fsync, where there is nothing to wait for.
  const int synced = uninterrupted([&] { return ::fsync(in.get()); });
  return synced == 0 || errno == EINVAL ? Status(Done{})
                                        : Status(system_error("sync the folder", folder, errno));
}

Status remove_tree(const fs::path& path) {
  std::error_code code;
  fs::remove_all(path, code);
  if (!code) return Done{};
  make_directories_writable(path);
  fs::remove_all(path, code);
  if (!code) return Done{};
  return system_error("remove", path, code.value());
}

std::string kind_of_file(const fs::path& path) {
  std::error_code code;
  const fs::file_status status = fs::symlink_status(path, code);
  switch (status.type()) {
    case fs::file_type::regular:
      return "a regular file";
    case fs::file_type::directory:
      return "a directory";
    case fs::file_type::symlink:
      return "a symbolic link to '" + fs::read_symlink(path, code).string() + "'";
    case fs::file_type::fifo:
      return "a named pipe";
    case fs::file_type::socket:
      return "a socket";
    case fs::file_type::block:
    case fs::file_type::character:
      return "a device";
    default:
      return "nothing";
  }
}

FileStamp file_stamp(const fs::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  return {info.st_size, info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec, info.st_ino};
}

std::string what_a_folder_holds(const fs::path& folder) {
  constexpr size_t kNamesMax = 10;
  std::vector<std::string> names;
  std::error_code code;
  fs::directory_iterator entry(folder, code);
  if (code == std::errc::no_such_file_or_directory) {
    return "that directory is gone: something removed or moved it";
  }
  while (!code && entry != fs::directory_iterator()) {
    names.push_back(one_line_name(entry->path().filename().string()));
    entry.increment(code);
  }
  if (names.empty()) return "it is empty";
  std::sort(names.begin(), names.end());
  std::string text = "it holds: ";
  for (size_t i = 0; i < std::min(names.size(), kNamesMax); ++i) {
    text += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kNamesMax) {
    text += " and " + std::to_string(names.size() - kNamesMax) + " more";
  }
  return text;
}

std::string one_line_name(std::string_view name) {
  if (std::none_of(name.begin(), name.end(), is_control)) return std::string(name);
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : name) {
    if (!is_control(c) && c != '%') {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += kDigits[byte >> 4U];
    encoded += kDigits[byte & 0xFU];
  }
  return encoded;
}

}  // namespace sluice::io
