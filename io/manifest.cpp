#include "io/manifest.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "io/codec.h"
#include "io/sources.h"
#include "io/tier.h"

namespace sluice::io {

using scheduler::Hash128;
using Kind = TreeEntry::Kind;

template <>
inline constexpr uint64_t kEnumLast<Kind> = static_cast<uint64_t>(Kind::kLink);
template <>
inline constexpr auto kMembers<TreeEntry> =
    std::tuple{&TreeEntry::path, &TreeEntry::kind, &TreeEntry::executable, &TreeEntry::bytes,
               &TreeEntry::target};

namespace {

namespace fs = std::filesystem;

constexpr const char* kHashHeader = "sluice tree 1";
constexpr int64_t kBlockBytes = 4096;

std::string_view parent_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

bool is_directory(const Manifest& manifest, std::string_view path) {
  const auto found = std::lower_bound(
      manifest.entries.begin(), manifest.entries.end(), path,
      [](const TreeEntry& entry, std::string_view text) { return entry.path < text; });
  return found != manifest.entries.end() && found->path == path && found->kind == Kind::kDirectory;
}

// Follows the target by its text. Going up again is allowed out of real directories only: out of a
// link it would lead elsewhere than the text says.
bool stays_inside(const Manifest& manifest, const TreeEntry& link) {
  std::string_view rest = link.target;
  if (rest.empty() || rest.front() == '/') return false;
  std::string at(parent_of(link.path));
  while (!rest.empty()) {
    const size_t slash = std::min(rest.find('/'), rest.size());
    const std::string_view part = rest.substr(0, slash);
    rest.remove_prefix(std::min(slash + 1, rest.size()));
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      at += (at.empty() ? "" : "/") + std::string(part);
    } else if (is_directory(manifest, at)) {
      at.resize(parent_of(at).size());
    } else {
      return false;
    }
  }
  return true;
}

Status check_links(const Manifest& manifest, const std::string& root) {
  for (const TreeEntry& entry : manifest.entries) {
    if (entry.kind != Kind::kLink || stays_inside(manifest, entry)) continue;
    return Error{"'" + one_line_name(root + "/" + entry.path) + "' is a link to '" +
                 one_line_name(entry.target) + "'; a directory keeps only relative links that " +
                 "lead to something in '" + one_line_name(root) +
                 "': copy what it points to, or make the link with ln -sr"};
  }
  return Done{};
}

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};

// One walk over a tree; what is not yet listed waits on a stack, so depth costs no recursion.
class Scanner {
 public:
  Scanner(const fs::path& root, TreeTimes* times) : root_(root), times_(times) {}

  Expected<Manifest> run() {
    struct stat info {};
    if (::lstat(root_.c_str(), &info) != 0) return system_error("look at", root_, errno);
    note_time(info);
    folders_.emplace_back();
    while (!folders_.empty()) {
      const std::string folder = std::move(folders_.back());
      folders_.pop_back();
      const Status listed = list(folder);
      if (!listed) return listed.error();
    }
    std::sort(manifest_.entries.begin(), manifest_.entries.end(),
              [](const TreeEntry& a, const TreeEntry& b) { return a.path < b.path; });
    const Status links = check_links(manifest_, root_.filename().string());
    if (!links) return links.error();
    return std::move(manifest_);
  }

 private:
  Status list(const std::string& folder) {
    const fs::path path = folder.empty() ? root_ : root_ / folder;
    Expected<FileDescriptor> opened = open_file(path, O_RDONLY | O_DIRECTORY);
    if (!opened) return opened.error();
    const std::unique_ptr<DIR, CloseFolder> stream(::fdopendir(opened->get()));
    if (!stream) return system_error("list", path, errno);
    (void)opened->release();  // the stream closes it
    while (true) {
      errno = 0;
      const dirent* found = ::readdir(stream.get());
      if (found == nullptr) break;
      const std::string_view name = found->d_name;
      if (name == "." || name == "..") continue;
      const Status added = add(::dirfd(stream.get()), folder, found->d_name);
      if (!added) return added;
    }
    return errno == 0 ? Status(Done{}) : Status(system_error("list", path, errno));
  }

  Status add(int folder_fd, const std::string& folder, const char* name) {
    TreeEntry entry;
    entry.path = folder.empty() ? name : folder + "/" + name;
    struct stat info {};
    if (::fstatat(folder_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
      return system_error("look at", root_ / entry.path, errno);
    }
    note_time(info);
    if (S_ISDIR(info.st_mode)) {
      folders_.push_back(entry.path);
    } else if (S_ISLNK(info.st_mode)) {
      entry.kind = Kind::kLink;
      std::array<char, PATH_MAX> target{};
      const ssize_t length = ::readlinkat(folder_fd, name, target.data(), target.size());
      if (length < 0) return system_error("read the link", root_ / entry.path, errno);
      entry.target.assign(target.data(), static_cast<size_t>(length));
    } else if (S_ISREG(info.st_mode)) {
      entry.kind = Kind::kFile;
      entry.executable = (info.st_mode & 0111U) != 0;
      entry.bytes = info.st_size;
      manifest_.bytes += info.st_size;
    } else {
      return Error{"'" + one_line_name((root_.filename() / entry.path).string()) + "' is " +
                   kind_of_file(root_ / entry.path) +
                   "; a directory output holds files, directories and links: remove it before "
                   "the task ends"};
    }
    manifest_.entries.push_back(std::move(entry));
    return Done{};
  }

  void note_time(const struct stat& info) {
    if (times_ == nullptr) return;
    const int64_t written_ms = info.st_mtim.tv_sec * 1000 + info.st_mtim.tv_nsec / 1'000'000;
    times_->newest_ms = std::max(times_->newest_ms, written_ms);
  }

  const fs::path& root_;
  TreeTimes* times_;
  std::vector<std::string> folders_;  // found, not listed yet
  Manifest manifest_;
};

bool is_safe_name(std::string_view path) {
  if (path.find('\0') != std::string_view::npos) return false;
  while (true) {
    const size_t slash = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == path.size()) return true;
    path.remove_prefix(slash + 1);
  }
}

Status check_entry(const Manifest& manifest, size_t i) {
  const TreeEntry& entry = manifest.entries[i];
  const bool fits = entry.bytes >= 0 &&
                    entry.bytes <= std::numeric_limits<int64_t>::max() - manifest.bytes &&
                    (entry.bytes == 0 || entry.kind == Kind::kFile);
  const bool in_order = i == 0 || manifest.entries[i - 1].path < entry.path;
  const std::string_view parent = parent_of(entry.path);
  if (fits && in_order && is_safe_name(entry.path) &&
      (parent.empty() || is_directory(manifest, parent))) {
    return Done{};
  }
  return Error{"the list of a directory's files is damaged at '" + one_line_name(entry.path) + "'"};
}

}  // namespace

Expected<Manifest> scan_tree(const fs::path& root, TreeTimes* times) {
  return Scanner(root, times).run();
}

Expected<Hash128> hash_tree(const fs::path& root, const Manifest& manifest,
                            const std::function<void()>& progress) {
  Bytes bytes;
  Writer writer(bytes);
  writer.value(std::string(kHashHeader));
  writer.unsigned_integer(manifest.entries.size());
  for (const TreeEntry& entry : manifest.entries) {
    writer.value(entry);
    if (entry.kind != Kind::kFile) continue;
    const Expected<Hash128> content = hash_large_file(root / entry.path, progress);
    if (!content) return content.error();
    writer.value(*content);
  }
  return hash_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

Expected<Hash128> hash_object(const fs::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode)) return hash_file(path);
  const Expected<Manifest> manifest = scan_tree(path);
  if (!manifest) return manifest.error();
  return hash_tree(path, *manifest);
}

Bytes encode_manifest(const Manifest& manifest) {
  Bytes bytes;
  Writer(bytes).value(manifest.entries);
  return bytes;
}

Expected<Manifest> decode_manifest(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  Manifest manifest;
  reader.value(manifest.entries);
  const Status read = reader.finish("the list of a directory's files");
  if (!read) return read.error();
  for (size_t i = 0; i < manifest.entries.size(); ++i) {
    const Status good = check_entry(manifest, i);
    if (!good) return good.error();
    manifest.bytes += manifest.entries[i].bytes;
  }
  const Status links = check_links(manifest, ".");
  if (!links) return links.error();
  return manifest;
}

int64_t occupied_bytes(const Manifest& manifest) {
  int64_t bytes = kBlockBytes;
  for (const TreeEntry& entry : manifest.entries) {
    bytes += kBlockBytes + (entry.bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  }
  return bytes;
}

}  // namespace sluice::io
