#include "io/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "io/file_descriptor.h"

namespace sluice::io {

namespace {

using std::filesystem::path;

Error system_error(const std::string& what, const path& file, int code) {
  std::string message =
      "cannot " + what + " '" + file.string() + "': " + std::generic_category().message(code);
  if (code == ENOSPC || code == EDQUOT) {
    message += "; free some space (or quota) in that file system, then run the same command again";
  }
  return {message, code};
}

FileDescriptor open_file(const path& file, int flags) {
  constexpr mode_t kMode = 0666;  // less the umask
  int fd = -1;
  do {
    fd = ::open(file.c_str(), flags | O_CLOEXEC, kMode);
  } while (fd < 0 && errno == EINTR);
  return FileDescriptor(fd);
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// A new name is durable once its folder is.
Status sync_folder_of(const path& file) {
  const path folder = file.has_parent_path() ? file.parent_path() : path(".");
  const FileDescriptor descriptor = open_file(folder, O_RDONLY | O_DIRECTORY);
  if (!descriptor.open()) return system_error("open the folder", folder, errno);
  // Some file systems cannot sync a folder (EINVAL): they order names by themselves.
  if (::fsync(descriptor.get()) != 0 && errno != EINVAL) {
    return system_error("sync the folder", folder, errno);
  }
  return Done{};
}

class RealFile final : public File {
 public:
  RealFile(FileDescriptor descriptor, path name)
      : descriptor_(std::move(descriptor)), path_(std::move(name)) {}

  Status append(std::string_view bytes) override {
    if (!write_all(descriptor_.get(), bytes)) return system_error("append to", path_, errno);
    return Done{};
  }
  Status sync() override {
    if (::fdatasync(descriptor_.get()) != 0) return system_error("sync", path_, errno);
    return Done{};
  }
  Status truncate(uint64_t length) override {
    if (::ftruncate(descriptor_.get(), static_cast<off_t>(length)) != 0) {
      return system_error("truncate", path_, errno);
    }
    return Done{};
  }

 private:
  FileDescriptor descriptor_;
  path path_;
};

class RealFiles final : public Files {
 public:
  Expected<std::unique_ptr<File>> open(const path& file, Open how) override {
    const int create = how == Open::kCreateNew ? O_CREAT | O_EXCL : O_CREAT;
    FileDescriptor descriptor = open_file(file, O_WRONLY | O_APPEND | create);
    if (!descriptor.open()) return system_error("create", file, errno);
    const Status synced = sync_folder_of(file);
    if (!synced) return synced.error();
    return std::unique_ptr<File>(std::make_unique<RealFile>(std::move(descriptor), file));
  }

  Expected<std::string> read(const path& file) override {
    const FileDescriptor descriptor = open_file(file, O_RDONLY);
    if (!descriptor.open()) return system_error("open", file, errno);
    struct stat information {};
    if (::fstat(descriptor.get(), &information) != 0) return system_error("read", file, errno);
    std::string content(static_cast<size_t>(information.st_size), '\0');
    size_t length = 0;
    while (true) {
      if (length == content.size()) content.resize(length + 4096);  // it may be growing
      const ssize_t got =
          ::read(descriptor.get(), content.data() + length, content.size() - length);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return system_error("read", file, errno);
      if (got == 0) break;
      length += static_cast<size_t>(got);
    }
    content.resize(length);
    return content;
  }

  Status replace(const path& file, std::string_view content) override {
    path temporary = file;
    temporary += ".tmp." + std::to_string(::getpid());
    const Status written = write_temporary(temporary, content);
    if (!written) {
      ::unlink(temporary.c_str());
      return written;
    }
    return move_into_place(temporary, file);
  }

  Status rename(const path& from, const path& to) override {
    std::error_code code;
    if (to.has_parent_path()) std::filesystem::create_directories(to.parent_path(), code);
    if (code) return system_error("make the folder of", to, code.value());
    const Status moved = move_into_place(from, to);
    if (moved || !is_in_the_way(moved.error().code)) return moved;
    const path old = from.string() + ".old";
    if (::rename(to.c_str(), old.c_str()) != 0) return moved;
    const Status replaced = move_into_place(from, to);
    return replaced ? remove_directory(old) : replaced;
  }

  Status remove(const path& file) override {
    if (::unlink(file.c_str()) == 0 || errno == ENOENT) return Done{};
    if (errno != EISDIR) return system_error("remove", file, errno);
    return remove_directory(file);
  }

  Status link(const path& from, const path& to) override {
    if (::link(from.c_str(), to.c_str()) != 0) {
      return system_error("link '" + from.string() + "' to", to, errno);
    }
    return sync_folder_of(to);
  }

  Expected<uint64_t> size(const path& file) override {
    struct stat information {};
    if (::lstat(file.c_str(), &information) != 0) return system_error("look at", file, errno);
    if (!S_ISREG(information.st_mode)) {
      return Error{"'" + file.string() + "' is not a regular file; move it away", EINVAL};
    }
    return static_cast<uint64_t>(information.st_size);
  }

  Expected<std::vector<std::string>> list(const path& folder) override {
    std::error_code code;
    std::filesystem::directory_iterator entry(folder, code);
    if (code == std::errc::no_such_file_or_directory) return std::vector<std::string>{};
    std::vector<std::string> names;
    for (; !code && entry != std::filesystem::directory_iterator(); entry.increment(code)) {
      names.push_back(entry->path().filename().string());
    }
    if (code) return system_error("list the folder", folder, code.value());
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  static Status write_temporary(const path& temporary, std::string_view content) {
    const FileDescriptor descriptor = open_file(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    if (!descriptor.open()) return system_error("create", temporary, errno);
    if (!write_all(descriptor.get(), content) || ::fsync(descriptor.get()) != 0) {
      return system_error("write", temporary, errno);
    }
    return Done{};
  }

  static Status remove_directory(const path& folder) {
    std::error_code code;
    std::filesystem::remove_all(folder, code);
    return code ? Status(system_error("remove", folder, code.value())) : Status(Done{});
  }

  // rename(2) only replaces like by like, and of directories only empty ones.
  static bool is_in_the_way(int code) {
    return code == ENOTEMPTY || code == EEXIST || code == ENOTDIR || code == EISDIR;
  }

  static Status move_into_place(const path& from, const path& to) {
    if (::rename(from.c_str(), to.c_str()) != 0) {
      return system_error("rename '" + from.string() + "' to", to, errno);
    }
    return sync_folder_of(to);
  }
};

}  // namespace

Files& real_files() {
  static RealFiles files;
  return files;
}

}  // namespace sluice::io
