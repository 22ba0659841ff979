#include "io/tree_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace sluice::io {

namespace {

namespace fs = std::filesystem;
using Kind = TreeEntry::Kind;

constexpr mode_t kSealedDirectory = 0555;
constexpr const char* kCopy = ".sluice-copy";

mode_t sealed_mode(const TreeEntry& entry) { return entry.executable ? 0555 : 0444; }

Status make_read_only(const fs::path& path, mode_t mode) {
  if (::chmod(path.c_str(), mode) == 0) return Done{};
  return system_error("make read-only", path, errno);
}

// Its bytes under one name, so that nobody can write them.
Status seal_file(const fs::path& path, const TreeEntry& entry) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return system_error("look at", path, errno);
  if (info.st_nlink == 1) return make_read_only(path, sealed_mode(entry));
  const fs::path copy = path.string() + kCopy;
  Status done = copy_file(path, copy, sealed_mode(entry), Sync::kNo);
  if (!done) return done;
  done = make_read_only(copy, sealed_mode(entry));  // whatever umask made of it
  if (!done) return done;
  if (::rename(copy.c_str(), path.c_str()) == 0) return Done{};
  return system_error("rename to '" + path.string() + "'", copy, errno);
}

// Last of all: a read-only directory takes no more changes.
Status seal_directories(const fs::path& root, const Manifest& manifest) {
  for (const TreeEntry& entry : manifest.entries) {
    if (entry.kind != Kind::kDirectory) continue;
    const Status sealed = make_read_only(root / entry.path, kSealedDirectory);
    if (!sealed) return sealed;
  }
  return make_read_only(root, kSealedDirectory);
}

Status link_file(const fs::path& from, const fs::path& to, const TreeEntry& entry) {
  if (::link(from.c_str(), to.c_str()) == 0) return Done{};
  if (errno == ENOENT) return system_error("link", from, ENOENT);
  const Status copied = copy_file(from, to, sealed_mode(entry), Sync::kNo);
  return copied ? make_read_only(to, sealed_mode(entry)) : copied;
}

Status make_directory(const fs::path& path, mode_t mode) {
  if (::mkdir(path.c_str(), mode) == 0) return Done{};
  return system_error("make the folder", path, errno);
}

// Directories and links below `root`, in the manifest's order: parents first.
Status make_folders(const fs::path& root, const Manifest& manifest, mode_t mode) {
  Status made = Done{};
  for (const TreeEntry& entry : manifest.entries) {
    if (!made) return made;
    if (entry.kind == Kind::kDirectory) made = make_directory(root / entry.path, mode);
    if (entry.kind == Kind::kLink) made = make_link(entry.target, root / entry.path);
  }
  return made;
}

template <class Place>
Status place_files(const fs::path& from, const fs::path& to, const Manifest& manifest,
                   const Place& place) {
  for (const TreeEntry& entry : manifest.entries) {
    if (entry.kind != Kind::kFile) continue;
    const Status placed = place(from / entry.path, to / entry.path, entry);
    if (!placed) return placed;
  }
  return Done{};
}

Status sync_file(const fs::path& path) {
  const Expected<FileDescriptor> file = open_file(path, O_RDONLY);
  if (!file) return file.error();
  return io::sync_file(file->get(), path);
}

// All bytes are written before the first wait, so that the system can order them as it likes.
Status sync_tree(const fs::path& root, const Manifest& manifest) {
  Status synced = sync_folder(root);
  for (const TreeEntry& entry : manifest.entries) {
    if (!synced) return synced;
    if (entry.kind == Kind::kFile) synced = sync_file(root / entry.path);
    if (entry.kind == Kind::kDirectory) synced = sync_folder(root / entry.path);
  }
  return synced ? sync_folder(root.parent_path()) : synced;
}

Status or_remove(const Status& status, const fs::path& what) {
  if (!status) (void)remove_tree(what);
  return status;
}

}  // namespace

Status open_tree(const fs::path& root, const Manifest& manifest) {
  constexpr mode_t kOwners = 0700;
  const auto open = [](const fs::path& path) -> Status {
    if (::chmod(path.c_str(), kOwners) == 0) return Done{};
    return system_error("make writable", path, errno);
  };
  Status done = open(root);
  for (const TreeEntry& entry : manifest.entries) {
    if (done && entry.kind == Kind::kDirectory) done = open(root / entry.path);
  }
  return done;
}

Status seal_tree(const fs::path& root, const Manifest& manifest) {
  for (const TreeEntry& entry : manifest.entries) {
    if (entry.kind != Kind::kFile) continue;
    const Status sealed = seal_file(root / entry.path, entry);
    if (!sealed) return sealed;
  }
  return seal_directories(root, manifest);
}

Status link_tree(const fs::path& from, const fs::path& to, const Manifest& manifest) {
  Status done = make_directory(to, 0700);
  if (!done) return done;
  done = make_folders(to, manifest, 0700);
  if (done) done = place_files(from, to, manifest, link_file);
  if (done) done = seal_directories(to, manifest);
  return or_remove(done, to);
}

Status copy_tree(const fs::path& from, const fs::path& to, const Manifest& manifest, Sync sync) {
  Status done = make_directory(to, 0777);
  if (!done) return done;
  done = make_folders(to, manifest, 0777);
  if (done) {
    done = place_files(from, to, manifest,
                       [](const fs::path& source, const fs::path& copy, const TreeEntry& entry) {
                         return copy_file(source, copy, sealed_mode(entry), Sync::kNo);
                       });
  }
  if (done && sync == Sync::kFileAndFolder) done = sync_tree(to, manifest);
  return or_remove(done, to);
}

Status make_skeleton(const fs::path& root, const Manifest& manifest) {
  Status done = make_directory(root, 0700);
  if (!done) return done;
  done = make_folders(root, manifest, 0700);
  for (const TreeEntry& entry : manifest.entries) {
    if (!done) break;
    if (entry.kind == Kind::kFile && entry.bytes == 0) done = write_file(root / entry.path, "");
  }
  return or_remove(done, root);
}

}  // namespace sluice::io
