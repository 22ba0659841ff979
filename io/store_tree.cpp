// Directories among the objects of a store (declared in io/store.h).
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "io/store.h"
#include "io/tier.h"
#include "io/tree_files.h"

namespace sluice::io {

using scheduler::ObjectId;

namespace {

namespace fs = std::filesystem;

constexpr size_t kServedEntriesMax = 500'000;  // of all lists of files that are kept for peers

// A directory can only replace an empty one.
Status rename_over(const fs::path& from, const fs::path& to) {
  const Status removed = remove_tree(to);
  if (!removed) return removed;
  if (::rename(from.c_str(), to.c_str()) == 0) return Done{};
  return system_error("rename to '" + to.string() + "'", from, errno);
}

}  // namespace

// Moved before it is read-only: then its owner could not move it any more.
Status Store::seal_directory(const fs::path& from, ObjectId object, Object& entry) {
  const Expected<Manifest> manifest = scan_tree(from);
  if (!manifest) return manifest.error();
  const Status opened = open_tree(from, *manifest);
  if (!opened) return opened;
  const fs::path sealed = path_of(object, entry.on_disk);
  const Status moved = rename_over(from, sealed);
  if (!moved) return moved;
  const Status done = seal_tree(sealed, *manifest);
  if (!done) {
    (void)remove_tree(sealed);
    return done;
  }
  entry.bytes = manifest->bytes;
  entry.occupied_bytes = occupied_bytes(*manifest);
  return Done{};
}

Status Store::save_directory(const fs::path& from, const fs::path& temporary) const {
  const Expected<Manifest> manifest = scan_tree(from);
  if (!manifest) return manifest.error();
  return copy_tree(from, temporary, *manifest, Sync::kFileAndFolder);
}

// What the peer holds is sealed, so its files may be shared one by one.
Status Store::take_directory(ObjectId object, const fs::path& peer_object, Object& entry) {
  const Expected<Manifest> manifest = scan_tree(peer_object);
  if (!manifest) return manifest.error();
  const fs::path path = path_of(object, entry.on_disk);
  const Status removed = remove_tree(path);
  if (!removed) return removed;
  entry.is_directory = true;
  entry.bytes = manifest->bytes;
  entry.occupied_bytes = occupied_bytes(*manifest);
  return link_tree(peer_object, path, *manifest);
}

void Store::begin_directory(ObjectId object, const ObjectForm& form, Object& entry) {
  entry.is_directory = true;
  entry.arriving_tree = std::make_unique<TreeWriter>(arriving_path(object, entry.on_disk),
                                                     form.manifest_bytes, form.total_bytes);
}

Status Store::finish_directory(ObjectId object, Object& entry) {
  const fs::path path = path_of(object, entry.on_disk);
  const Status moved = rename_over(arriving_path(object, entry.on_disk), path);
  if (!moved) return moved;
  const Manifest& manifest = entry.arriving_tree->manifest();
  const Status sealed = seal_tree(path, manifest);
  if (!sealed) {
    (void)remove_tree(path);
    return sealed;
  }
  Object there;
  there.on_disk = entry.on_disk;
  there.is_directory = true;
  there.bytes = manifest.bytes;
  there.occupied_bytes = occupied_bytes(manifest);
  there.mode = entry.mode;
  add(object, std::move(there));
  return Done{};
}

// The walk over a directory is not repeated for each piece of it: the latest lists are kept.
Expected<TreeReader*> Store::serve_directory(ObjectId object, const Object& held) {
  const auto known = std::find_if(served_.begin(), served_.end(),
                                  [object](const auto& served) { return served.first == object; });
  if (known != served_.end()) {
    std::rotate(served_.begin(), known, known + 1);
    return &served_.front().second;
  }
  Expected<TreeReader> reader = TreeReader::open(path_of(object, held.on_disk));
  if (!reader) return reader.error();
  served_.emplace_front(object, std::move(*reader));
  size_t entries = 0;
  size_t kept = 0;
  for (; kept < served_.size(); ++kept) {
    entries += served_[kept].second.entry_count();
    if (kept > 0 && entries > kServedEntriesMax) break;
  }
  while (served_.size() > kept) served_.pop_back();
  return &served_.front().second;
}

}  // namespace sluice::io
