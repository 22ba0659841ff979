#include "io/store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "io/checker.h"
#include "io/fault.h"
#include "io/sources.h"
#include "io/tier.h"

namespace sluice::io {

using scheduler::AttemptId;
using scheduler::ObjectId;
using scheduler::OutputKind;

namespace {

namespace fs = std::filesystem;

constexpr const char* kArriving = ".part";
constexpr int64_t kRoomBytes = int64_t{64} << 20U;
constexpr const char* kMemoryBelowDisk = "memory";  // when there is no node memory to use

uint32_t sealed_mode(mode_t mode) { return (mode & 0111U) != 0 ? 0555U : 0444U; }

// A folder in /dev/shm or /tmp may be someone else's trap: it must be ours and closed to others.
Status make_tier(const fs::path& folder) {
  const Status made = make_folder(folder);
  if (!made) return made;
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) return system_error("look at", folder, errno);
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 0077U) != 0) {
    return Error{"'" + folder.string() + "' is " + kind_of_file(folder) + " of user " +
                     std::to_string(info.st_uid) +
                     "; expected a directory of ours that no one else may enter: remove it",
                 EPERM};
  }
  for (const char* part : {"o", "a", "t"}) {
    const Status inner = make_folder(folder / part);
    if (!inner) return inner;
  }
  return Done{};
}

Status rename_file(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return Done{};
  return system_error("rename to '" + to.string() + "'", from, errno);
}

// The bytes become the object. A file with a second name could still be changed through it, so
// that one is copied.
Status move_sealed(const fs::path& from, const fs::path& to, const struct stat& info) {
  const uint32_t mode = sealed_mode(info.st_mode);
  if (info.st_nlink == 1) {
    if (::chmod(from.c_str(), mode) != 0) return system_error("make read-only", from, errno);
    SLUICE_FAULT_POINT("seal.read_only");
    return rename_file(from, to);
  }
  const fs::path arriving = to.string() + kArriving;
  const Status copied = copy_file(from, arriving, mode, Sync::kNo);
  if (!copied) return copied;
  const Status moved = rename_file(arriving, to);
  if (!moved) ::unlink(arriving.c_str());
  return moved;
}

// The disk folder of a peer on this node: its base is ours, its name follows from the first tier's.
fs::path disk_of_peer(const fs::path& peer_memory, const fs::path& own_disk) {
  if (peer_memory.filename() == kMemoryBelowDisk) return peer_memory.parent_path();
  return own_disk.parent_path() / (peer_memory.filename().string() + ".disk");
}

std::string task_of(const AttemptSpec& spec) { return spec.label.substr(0, spec.label.find('[')); }

// `path`: where the output must be.
Status look_at_output(const fs::path& path, const AttemptOutput& output, struct stat& info) {
  const bool is_directory = output.kind == OutputKind::kDir;
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) return system_error("look at", path, errno);
    return Error{"output '" + output.name + "' was not written: no " +
                 (is_directory ? "directory" : "file") + " '" + output.file_name +
                 "' in the attempt's directory; " + what_a_folder_holds(path.parent_path())};
  }
  if (is_directory ? !S_ISDIR(info.st_mode) : !S_ISREG(info.st_mode)) {
    return Error{"output '" + output.name + "': " + wrong_kind_of_output(path, output.kind)};
  }
  return Done{};
}

}  // namespace

Expected<Store> Store::create(const StorePlace& place, int64_t memory_budget_bytes) {
  Store store;
  store.place_ = place;
  store.memory_budget_bytes_ = memory_budget_bytes;
  const Status disk = make_tier(place.disk);
  if (!disk) return disk.error();
  if (make_tier(place.memory)) return store;
  store.place_.memory = place.disk / kMemoryBelowDisk;
  const Status below = make_tier(store.place_.memory);
  if (!below) return below.error();
  return store;
}

fs::path Store::path_of(ObjectId object, bool on_disk) const {
  return tier(on_disk) / "o" / std::to_string(object.value);
}

fs::path Store::attempt_folder(AttemptId attempt, bool on_disk) const {
  return tier(on_disk) / "a" / std::to_string(attempt.value);
}

Expected<fs::path> Store::take_temporary() {
  if (!temporaries_.empty()) {
    fs::path spare = std::move(temporaries_.back());
    temporaries_.pop_back();
    return spare;
  }
  fs::path folder = place_.disk / "t" / std::to_string(temporaries_made_++);
  const Status made = make_new_folder(folder);
  if (!made) return made.error();
  return folder;
}

Status Store::give_back_temporary(const fs::path& folder) {
  struct stat info {};
  std::error_code code;
  const bool as_made = ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
                       (info.st_mode & 07777U) == 0700U && fs::is_empty(folder, code) && !code;
  if (!as_made) return remove_tree(folder);
  temporaries_.push_back(folder);
  return Done{};
}

fs::path Store::arriving_path(ObjectId object, bool on_disk) const {
  return path_of(object, on_disk).string() + kArriving;
}

fs::path Store::working_directory(AttemptId attempt) const {
  const auto found = attempts_.find(attempt);
  return attempt_folder(attempt, found != attempts_.end() && found->second.on_disk) / "w";
}

bool Store::prefer_disk(int64_t more_bytes) const {
  if (memory_bytes() + more_bytes > memory_budget_bytes_) return true;
  struct statvfs system {};
  if (::statvfs(place_.memory.c_str(), &system) != 0) return true;
  // Others fill node memory, too. What is not known to be small needs some room to be written in.
  const int64_t room = std::min(memory_budget_bytes_ / 4, kRoomBytes);
  return static_cast<int64_t>(system.f_bavail * system.f_frsize) < std::max(more_bytes, room);
}

int64_t Store::bytes_of_attempts() const {
  int64_t bytes = 0;
  for (const auto& [id, attempt] : attempts_) {
    if (!attempt.on_disk) bytes += attempt.view_bytes + attempt.expected_bytes;
  }
  return bytes;
}

int64_t Store::expected_bytes(const AttemptSpec& spec) const {
  const auto known = output_bytes_.find(task_of(spec));
  return known == output_bytes_.end() ? 0 : known->second;
}

const Store::Object* Store::find_sealed(ObjectId object) const {
  const auto found = objects_.find(object);
  return found == objects_.end() || found->second.arrives() ? nullptr : &found->second;
}

Expected<Store::Object*> Store::find_arriving(ObjectId object) {
  const auto found = objects_.find(object);
  if (found != objects_.end() && found->second.arrives()) return &found->second;
  return Error{"object " + std::to_string(object.value) + " is not arriving"};
}

void Store::add(ObjectId object, Object entry) {
  forget(object);
  if (!entry.on_disk) memory_bytes_->fetch_add(entry.occupied_bytes);
  objects_.emplace(object, std::move(entry));
}

void Store::forget(ObjectId object) {
  const auto found = objects_.find(object);
  if (found == objects_.end()) return;
  if (!found->second.on_disk) memory_bytes_->fetch_sub(found->second.occupied_bytes);
  objects_.erase(found);
  std::erase_if(served_, [object](const auto& served) { return served.first == object; });
}

// -- attempts

Expected<StagedAttempt> Store::stage(AttemptId attempt, const AttemptSpec& spec,
                                     const std::vector<std::string>& input_paths) {
  const int64_t expected = expected_bytes(spec);
  const auto begun = attempts_.find(attempt);
  const bool has_views = begun != attempts_.end() && begun->second.has_views;
  const bool on_disk =
      has_views ? begun->second.on_disk : prefer_disk(bytes_of_attempts() + expected);
  Expected<StagedAttempt> staged = stage_in(attempt, spec, input_paths, on_disk);
  if (!staged && !on_disk && !has_views && staged.error().code == ENOSPC) {
    const Status cleaned = clean(attempt);
    if (!cleaned) return cleaned.error();
    staged = stage_in(attempt, spec, input_paths, true);
  }
  if (staged) attempts_[attempt].expected_bytes = expected;
  return staged;
}

Expected<fs::path> Store::make_view_folder(AttemptId attempt, const AttemptSpec& spec,
                                           int64_t view_bytes) {
  const bool on_disk = prefer_disk(bytes_of_attempts() + expected_bytes(spec) + view_bytes);
  Attempt& entry = attempts_[attempt];
  entry.on_disk = on_disk;
  entry.has_views = true;
  entry.view_bytes = view_bytes;
  entry.expected_bytes = expected_bytes(spec);
  const fs::path folder = attempt_folder(attempt, on_disk);
  for (const fs::path& path : {folder, folder / "v"}) {
    const Status made = make_new_folder(path);
    if (!made) return made.error();
  }
  return folder / "v";
}

fs::path Store::output_path(AttemptId attempt, const AttemptSpec& spec, size_t i) const {
  return working_directory(attempt) / spec.outputs[i].file_name;
}

Status Store::look_at_outputs(AttemptId attempt, const AttemptSpec& spec) const {
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    struct stat info {};
    const Status there = look_at_output(output_path(attempt, spec, i), spec.outputs[i], info);
    if (!there) return there;
  }
  return Done{};
}

Expected<SealedOutput> Store::seal(AttemptId attempt, const AttemptSpec& spec, size_t i) {
  const AttemptOutput& output = spec.outputs[i];
  const fs::path path = output_path(attempt, spec, i);
  const bool is_directory = output.kind == OutputKind::kDir;
  struct stat info {};
  const Status there = look_at_output(path, output, info);
  if (!there) return there.error();
  const auto staged = attempts_.find(attempt);
  SLUICE_ASSERT(staged != attempts_.end(), attempt);
  Object object;
  object.on_disk = staged->second.on_disk;
  object.is_directory = is_directory;
  object.bytes = object.occupied_bytes = info.st_size;
  object.mode = sealed_mode(info.st_mode);
  const fs::path sealed = path_of(output.object, object.on_disk);
  const Status moved =
      is_directory ? seal_directory(path, output.object, object) : move_sealed(path, sealed, info);
  if (!moved) return moved.error();
  const int64_t bytes = object.bytes;
  object.stamp = file_stamp(sealed);
  count_sealed(attempt, spec, object.occupied_bytes);
  add(output.object, std::move(object));
  return SealedOutput{sealed, bytes};
}

void Store::count_sealed(AttemptId attempt, const AttemptSpec& spec, int64_t bytes) {
  Attempt& staged = attempts_.at(attempt);
  staged.expected_bytes = std::max<int64_t>(0, staged.expected_bytes - bytes);
  staged.sealed_bytes += bytes;
  int64_t& most = output_bytes_[task_of(spec)];
  most = std::max(most, staged.sealed_bytes);
}

Status Store::clean(AttemptId attempt) { return remove(release(attempt)); }

Store::Leftover Store::release(AttemptId attempt) {
  const auto found = attempts_.find(attempt);
  if (found == attempts_.end()) return {};
  Leftover leftover{attempt_folder(attempt, found->second.on_disk),
                    std::move(found->second.temporary)};
  attempts_.erase(found);
  return leftover;
}

Status Store::remove(const Leftover& leftover) {
  if (leftover.folder.empty()) return Done{};
  // Many leave nothing behind: then there is nothing to look for either.
  Status removed = Done{};
  if (::rmdir((leftover.folder / "w").c_str()) != 0 || ::rmdir(leftover.folder.c_str()) != 0) {
    removed = remove_tree(leftover.folder);
  }
  if (leftover.temporary.empty()) return removed;  // staging failed before there was one
  const Status emptied = give_back_temporary(leftover.temporary);
  return removed ? emptied : removed;
}

// -- objects

fs::path Store::object_path(ObjectId object) const {
  const Object* held = find_sealed(object);
  return held == nullptr ? fs::path() : path_of(object, held->on_disk);
}

bool Store::holds(ObjectId object) const { return find_sealed(object) != nullptr; }

Status Store::link_from(ObjectId object, const fs::path& peer_store_memory) {
  if (holds(object)) return Done{};
  abandon_receive(object);
  const std::string name = std::to_string(object.value);
  const Status from_memory = take_from(object, peer_store_memory / "o" / name, false);
  if (from_memory || from_memory.error().code != ENOENT) return from_memory;
  return take_from(object, disk_of_peer(peer_store_memory, place_.disk) / "o" / name, true);
}

Status Store::take_from(ObjectId object, const fs::path& peer_object, bool on_disk) {
  struct stat info {};
  if (::lstat(peer_object.c_str(), &info) != 0) return system_error("open", peer_object, errno);
  Object taken;
  taken.on_disk = on_disk;
  taken.bytes = taken.occupied_bytes = info.st_size;
  taken.mode = sealed_mode(info.st_mode);
  Status done = Done{};
  if (S_ISDIR(info.st_mode)) {
    done = take_directory(object, peer_object, taken);
  } else if (::link(peer_object.c_str(), path_of(object, on_disk).c_str()) != 0) {
    if (errno == ENOENT) return system_error("link", peer_object, ENOENT);
    taken.on_disk = prefer_disk(taken.bytes);
    const fs::path arriving = arriving_path(object, taken.on_disk);
    done = copy_file(peer_object, arriving, taken.mode, Sync::kNo);
    if (done) done = rename_file(arriving, path_of(object, taken.on_disk));
    if (!done) ::unlink(arriving.c_str());
  }
  if (!done) return done;
  taken.stamp = file_stamp(path_of(object, taken.on_disk));
  add(object, std::move(taken));
  return done;
}

Store::NewFile Store::place_for(ObjectId object, int64_t bytes_max) const {
  const bool on_disk = prefer_disk(bytes_max);
  return {on_disk, arriving_path(object, on_disk)};
}

Status Store::adopt(ObjectId object, const NewFile& made) {
  struct stat info {};
  if (::lstat(made.path.c_str(), &info) != 0) return system_error("look at", made.path, errno);
  Object entry;
  entry.on_disk = made.on_disk;
  entry.bytes = entry.occupied_bytes = info.st_size;
  const fs::path to = path_of(object, made.on_disk);
  const Status moved = rename_file(made.path, to);
  if (!moved) return moved;
  entry.stamp = file_stamp(to);
  add(object, std::move(entry));
  return Done{};
}

Status Store::begin_receive(ObjectId object, const ObjectForm& form) {
  if (objects_.contains(object)) {
    return Error{"object " + std::to_string(object.value) + " is here or arriving already", EEXIST};
  }
  if (form.manifest_bytes < 0 || form.total_bytes < form.manifest_bytes) {
    return Error{"object " + std::to_string(object.value) + " cannot have " +
                 std::to_string(form.total_bytes) + " bytes"};
  }
  Object entry;
  entry.on_disk = prefer_disk(form.total_bytes);
  entry.bytes = entry.occupied_bytes = form.total_bytes;
  entry.mode = sealed_mode(form.mode);
  if (form.manifest_bytes > 0) {
    begin_directory(object, form, entry);
  } else {
    Expected<FileDescriptor> file =
        open_file(arriving_path(object, entry.on_disk), O_WRONLY | O_CREAT | O_TRUNC);
    if (!file) return file.error();
    entry.arriving = std::move(*file);
  }
  add(object, std::move(entry));
  return Done{};
}

Status Store::write_piece(ObjectId object, int64_t offset, std::span<const std::byte> bytes) {
  const Expected<Object*> found = find_arriving(object);
  if (!found) return found.error();
  Object& entry = **found;
  const auto size = static_cast<int64_t>(bytes.size());
  if (offset < 0 || size > entry.bytes || offset > entry.bytes - size) {
    return Error{"object " + std::to_string(object.value) + " has " + std::to_string(entry.bytes) +
                 " bytes; a piece came with " + std::to_string(size) + " bytes at " +
                 std::to_string(offset)};
  }
  const Status written = entry.is_directory ? entry.arriving_tree->write(offset, bytes)
                                            : write_at(entry.arriving.get(), bytes, offset,
                                                       arriving_path(object, entry.on_disk));
  if (written) entry.arrived_bytes += size;
  return written;
}

Status Store::finish_receive(ObjectId object) {
  const Expected<Object*> found = find_arriving(object);
  if (!found) return found.error();
  Object& entry = **found;
  if (entry.arrived_bytes != entry.bytes) {
    return Error{"object " + std::to_string(object.value) + " has " + std::to_string(entry.bytes) +
                 " bytes, but " + std::to_string(entry.arrived_bytes) + " arrived"};
  }
  if (entry.is_directory) return finish_directory(object, entry);
  const fs::path arriving = arriving_path(object, entry.on_disk);
  if (::fchmod(entry.arriving.get(), entry.mode) != 0) {
    return system_error("make read-only", arriving, errno);
  }
  const Status renamed = rename_file(arriving, path_of(object, entry.on_disk));
  if (!renamed) return renamed;
  entry.arriving.reset();
  entry.stamp = file_stamp(path_of(object, entry.on_disk));
  return renamed;
}

void Store::remember_content(ObjectId object, scheduler::Hash128 content) {
  const auto found = objects_.find(object);
  if (found != objects_.end()) found->second.content = content;
}

bool Store::as_sealed(ObjectId object) {
  const Object* held = find_sealed(object);
  if (held == nullptr) return false;
  const fs::path path = path_of(object, held->on_disk);
  if (held->is_directory) return ::access(path.c_str(), F_OK) == 0;
  const FileStamp found = file_stamp(path);
  if (found == held->stamp) return true;
  if (found.bytes != held->stamp.bytes || !held->content.known()) return false;
  const Expected<scheduler::Hash128> content = hash_file(path);
  if (!content || *content != held->content) return false;
  objects_.at(object).stamp = found;  // only touched
  return true;
}

void Store::abandon_receive(ObjectId object) {
  const Expected<Object*> found = find_arriving(object);
  if (!found) return;
  (void)remove_tree(arriving_path(object, (*found)->on_disk));
  forget(object);
}

Expected<std::vector<std::byte>> Store::read_piece(ObjectId object, int64_t offset, int64_t length,
                                                   ObjectForm& form) {
  form = {};
  const Object* held = find_sealed(object);
  if (held == nullptr) {
    return Error{"object " + std::to_string(object.value) + " is not held here", ENOENT};
  }
  if (held->is_directory) {
    const Expected<TreeReader*> tree = serve_directory(object, *held);
    if (!tree) return tree.error();
    Expected<Bytes> bytes = (*tree)->read(offset, length);
    if (bytes) form = {(*tree)->total_bytes(), (*tree)->manifest_bytes(), held->mode};
    return bytes;
  }
  const fs::path path = path_of(object, held->on_disk);
  const Expected<FileDescriptor> file = open_file(path, O_RDONLY);
  if (!file) return file.error();
  const int64_t end = std::min(held->bytes, offset + std::min(length, held->bytes));
  std::vector<std::byte> bytes(static_cast<size_t>(std::max<int64_t>(0, end - offset)));
  const Status read = read_at(file->get(), bytes, offset, path);
  if (!read) return read.error();
  form = {held->bytes, 0, held->mode};
  return bytes;
}

Status Store::save(ObjectId object, const fs::path& temporary) const {
  const Object* held = find_sealed(object);
  if (held == nullptr) {
    return Error{"object " + std::to_string(object.value) + " is not held here", ENOENT};
  }
  const Status made = make_durable_folders(temporary.parent_path());
  if (!made) return made;
  const fs::path path = path_of(object, held->on_disk);
  // Later tasks read it where it is: nobody may change it by the way.
  const mode_t mode = (held->mode & 0111U) != 0 ? 0555 : 0444;
  const Status copied = held->is_directory ? save_directory(path, temporary)
                                           : copy_file(path, temporary, mode, Sync::kFileAndFolder);
  if (copied) SLUICE_FAULT_POINT("store.saved");
  return copied;
}

Status Store::remove(ObjectId object) {
  abandon_receive(object);
  const Object* held = find_sealed(object);
  if (held == nullptr) return Done{};
  const fs::path path = path_of(object, held->on_disk);
  forget(object);
  return remove_tree(path);
}

}  // namespace sluice::io
