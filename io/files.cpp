#include "io/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "io/file_descriptor.h"
#include "io/tier.h"

namespace sluice::io {

namespace {

using std::filesystem::path;

Error error_of(const std::string& what, const path& file, int code) {
  std::string message =
      "cannot " + what + " '" + file.string() + "': " + std::generic_category().message(code);
  if (code == ENOSPC || code == EDQUOT) {
    message += "; free some space (or quota) in that file system, then run the same command again";
  }
  if (code == EFBIG) message += "; raise the limit on the size of files (ulimit -f)";
  if (code == EMFILE) message += "; raise the limit on open files (ulimit -n)";
  return {message, code};
}

FileDescriptor open_plain(const path& file, int flags) {
  constexpr mode_t kMode = 0666;  // less the umask
  return FileDescriptor(
      uninterrupted([&] { return ::open(file.c_str(), flags | O_CLOEXEC, kMode); }));
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = uninterrupted([&] { return ::write(fd, bytes.data(), bytes.size()); });
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// A new name is durable once its folder is.
Status sync_folder_of(const path& file) {
  return sync_folder(file.has_parent_path() ? file.parent_path() : path("."));
}

class RealFile final : public File {
 public:
  RealFile(FileDescriptor descriptor, path name)
      : descriptor_(std::move(descriptor)), path_(std::move(name)) {}

  Status append(std::string_view bytes) override {
    if (!write_all(descriptor_.get(), bytes)) return error_of("append to", path_, errno);
    return Done{};
  }
  Status sync() override {
    const int synced = uninterrupted([&] { return ::fdatasync(descriptor_.get()); });
    if (synced != 0) return error_of("sync", path_, errno);
    return Done{};
  }
  Status truncate(uint64_t length) override {
    const auto end = static_cast<off_t>(length);
    const int cut = uninterrupted([&] { return ::ftruncate(descriptor_.get(), end); });
    if (cut != 0) return error_of("truncate", path_, errno);
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
    FileDescriptor descriptor = open_plain(file, O_WRONLY | O_APPEND | create);
    if (!descriptor.open()) return error_of("create", file, errno);
    const Status synced = sync_folder_of(file);
    if (!synced) return synced.error();
    return std::unique_ptr<File>(std::make_unique<RealFile>(std::move(descriptor), file));
  }

  Expected<std::string> read(const path& file) override {
    const FileDescriptor descriptor = open_plain(file, O_RDONLY);
    if (!descriptor.open()) return error_of("open", file, errno);
    struct stat information {};
    if (::fstat(descriptor.get(), &information) != 0) return error_of("read", file, errno);
    // More than it has: the end is seen without another look, and it may be growing.
    constexpr size_t kMore = 4096;
    std::string content(static_cast<size_t>(information.st_size) + kMore, '\0');
    size_t length = 0;
    while (true) {
      if (length == content.size()) content.resize(length + kMore);
      const ssize_t got = uninterrupted([&] {
        return ::read(descriptor.get(), content.data() + length, content.size() - length);
      });
      if (got < 0) return error_of("read", file, errno);
      if (got == 0) break;
      length += static_cast<size_t>(got);
    }
    content.resize(length);
    return content;
  }

  Status replace(const path& file, std::string_view content) override {
    path temporary = file;
    temporary += ".tmp." + std::to_string(::getpid());
    Status done = write_temporary(temporary, content);
    if (done) done = rename_to(temporary, file);
    if (done) return sync_folder_of(file);
    ::unlink(temporary.c_str());
    return done;
  }

  Status rename(const path& from, const path& to) override {
    const Status made = to.has_parent_path() ? make_durable_folders(to.parent_path()) : Done{};
    if (!made) return made;
    Status moved = rename_to(from, to);
    if (!moved && is_in_the_way(moved.error().code)) moved = rename_over(from, to);
    return moved ? sync_folder_of(to) : moved;
  }

  Status remove(const path& file) override {
    if (::unlink(file.c_str()) == 0 || errno == ENOENT) return Done{};
    if (errno != EISDIR) return error_of("remove", file, errno);
    return remove_directory(file);
  }

  Status link(const path& from, const path& to) override {
    if (::link(from.c_str(), to.c_str()) != 0) {
      return error_of("link '" + from.string() + "' to", to, errno);
    }
    return sync_folder_of(to);
  }

  Expected<uint64_t> size(const path& file) override {
    struct stat information {};
    if (::lstat(file.c_str(), &information) != 0) return error_of("look at", file, errno);
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
    if (code) return error_of("list the folder", folder, code.value());
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  static Status write_temporary(const path& temporary, std::string_view content) {
    const FileDescriptor descriptor = open_plain(temporary, O_WRONLY | O_CREAT | O_TRUNC);
    if (!descriptor.open()) return error_of("create", temporary, errno);
    if (!write_all(descriptor.get(), content)) return error_of("write", temporary, errno);
    const int synced = uninterrupted([&] { return ::fsync(descriptor.get()); });
    return synced == 0 ? Status(Done{}) : Status(error_of("sync", temporary, errno));
  }

  static Status remove_directory(const path& folder) {
    std::error_code code;
    std::filesystem::remove_all(folder, code);
    return code ? Status(error_of("remove", folder, code.value())) : Status(Done{});
  }

  // rename(2) only replaces like by like, and of directories only empty ones.
  static bool is_in_the_way(int code) {
    return code == ENOTEMPTY || code == EEXIST || code == ENOTDIR || code == EISDIR;
  }

  static Status rename_to(const path& from, const path& to) {
    if (::rename(from.c_str(), to.c_str()) == 0) return Done{};
    return error_of("rename '" + from.string() + "' to", to, errno);
  }

  // What is in the way is moved aside first, and back if it cannot be replaced. What is left of it
  // in the end only takes space.
  static Status rename_over(const path& from, const path& to) {
    const path old = from.string() + ".old";
    const Status free = remove_directory(old);
    if (!free) return free;
    const Status aside = rename_to(to, old);
    if (!aside) return aside;
    Status replaced = rename_to(from, to);
    if (replaced) {
      (void)remove_directory(old);
    } else {
      (void)rename_to(old, to);
    }
    return replaced;
  }
};

}  // namespace

Files& real_files() {
  static RealFiles files;
  return files;
}

}  // namespace sluice::io
