// Objects and attempt directories as files in the tiers of one worker. Layout of a store folder
// (made 0700, in node memory: /dev/shm, else $TMPDIR; the second tier is always below $TMPDIR or
// /tmp, its name ends in `.disk`):
//
//   sluice.<uid>.<owner pid>.<owner start time>.<pid space>.<mpi_rank>/
//     o/<object>          sealed object, mode 0444 (0555 if executable), or a directory of such
//                         files, itself 0555; `<object>.part`: arriving
//     a/<attempt>/w/      the attempt's current directory, empty but for in/ and `as:` links
//     a/<attempt>/w/in/<input>/<file>   links
//     a/<attempt>/v/      inputs that are made for the attempt (engine/input_views.h)
//     a/<attempt>/s/      script, list files, values to read: not visible as the program's own;
//                         made when there are any
//     t/<number>/         an attempt's $TMPDIR, always in the second tier; one that was left empty
//                         is used again, because making folders on a disk costs more than all else
//                         that is made for a small attempt
//     t/<attempt>.out, .err   streams, until they are in a log pack
//
// Budget: the bytes of the first tier's objects are counted, and what running attempts will
// write as far as earlier attempts of their task tell; above it, or when the tier has little space
// left, new attempt directories and fetched objects go to the second tier. Owner of the folder: the
// guard's pid and start time, so that anyone can tell that it is orphaned who sees the same
// processes: pid space is a hash (8 hex digits) of boot id and pid namespace. Used by the worker's
// I/O thread only (the size is read by the control thread through an atomic). Test:
// tests/io/store_test.cpp, tests/io/store_tree_test.cpp, tests/io/store_stage_test.cpp,
// tests/io/store_place_test.cpp
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/attempt_spec.h"
#include "io/file_descriptor.h"
#include "io/tier.h"
#include "io/tree_stream.h"
#include "scheduler/expected.h"
#include "scheduler/types.h"

namespace sluice::io {

// Half of min(cgroup limit, free memory, free space of the tmpfs), from /proc and both cgroup
// versions; `tmpfs` or the nearest folder above it that exists. The other half is for what attempts
// write before it is sealed, and for their own memory.
// SLUICE_NODE_MEMORY_BYTES overrides. `root`: where /proc and /sys are looked for, for tests.
[[nodiscard]] int64_t node_memory_budget_bytes(const std::filesystem::path& tmpfs,
                                               const std::filesystem::path& root = "/");

// The smallest memory limit of this process's cgroups, version 1 and 2; the greatest number if
// none.
[[nodiscard]] int64_t cgroup_memory_limit_bytes(const std::filesystem::path& root = "/");

struct StorePlace {
  std::filesystem::path memory;  // the first tier, e.g. /dev/shm/sluice.0.123.456.89abcdef.1
  std::filesystem::path disk;    // the second tier
};
// Names only, nothing is made: guard, launcher and rank compute the same place. SLUICE_NODE_MEMORY
// and TMPDIR override. A /dev/shm that is missing, not writable or mounted noexec (outputs may be
// programs) is not used.
[[nodiscard]] StorePlace store_place(int64_t owner_pid, uint64_t owner_start_time, int mpi_rank);
// Removes a store (both tiers). Never an error that matters: returns what could not be removed.
[[nodiscard]] std::vector<std::string> remove_store(const StorePlace& place);
// This user's stores of this boot and pid namespace whose owner process is gone: folders, of both
// tiers. Others' are never named, though their base may be seen from here: their owners are not.
[[nodiscard]] std::vector<std::filesystem::path> orphaned_stores();
// Removes them, returns of how many owners.
size_t remove_orphaned_stores();
// Field 22 of /proc/<pid>/stat: with the pid it names a process for good. 0: no such process.
[[nodiscard]] uint64_t process_start_time(int64_t pid);

// What the child process needs, made by Store::stage.
struct StagedAttempt {
  std::vector<std::string> argv;
  size_t setup_words = 0;  // the first of them, which run the setup and become the rest
  std::vector<std::pair<std::string, std::string>> environment;  // additions, last wins
  std::string working_directory;
  std::string stdin_path;                 // "": /dev/null
  std::string stdout_path;                // "": kept as the attempt's log
  std::string setup_state_path;           // emptied when setup is done; "": there is no setup
  std::string failed_line_path;           // a script's line that failed, if bash can tell
  std::string stream_directory;           // for streams too long to be handed over in a message
  std::vector<std::string> output_paths;  // by output: where it must be found after the attempt
};

struct SealedOutput {
  std::filesystem::path path;
  int64_t bytes = 0;  // of a directory: of its files
};

// An object as it travels: a file's bytes, or those of a directory (io/tree_stream.h).
struct ObjectForm {
  int64_t total_bytes = -1;    // -1: it is not held
  int64_t manifest_bytes = 0;  // of a directory, the first part of them; 0: a file
  uint32_t mode = 0;           // permission bits of a file
};

class Store {
 public:
  // When the memory folder cannot be made, both tiers are below the disk folder.
  [[nodiscard]] static Expected<Store> create(const StorePlace& place, int64_t memory_budget_bytes);
  Store(Store&&) noexcept = default;
  Store& operator=(Store&&) noexcept = default;

  // Where the tiers really are: `memory` is what peers on the node need for link_from.
  [[nodiscard]] const StorePlace& place() const { return place_; }

  // Makes the attempt's directory: links inputs, writes list files (x, x_ITEMS as TSV, JSON lines
  // for gathered values), the script, and gives argv with every Piece resolved and IN_x, OUT_x,
  // PIPELINE_DIR, TMPDIR set. `input_paths` has one entry for each InputFile of the spec in order:
  // the absolute path of its bytes; entries for values are ignored. A list makes no links: its list
  // file holds these paths themselves.
  [[nodiscard]] Expected<StagedAttempt> stage(scheduler::AttemptId attempt, const AttemptSpec& spec,
                                              const std::vector<std::string>& input_paths);
  // Before stage, for an attempt with inputs that are made for it, of at most so many bytes: the
  // empty folder in which they are to be made.
  [[nodiscard]] Expected<std::filesystem::path> make_view_folder(scheduler::AttemptId attempt,
                                                                 const AttemptSpec& spec,
                                                                 int64_t view_bytes);
  // Where output i of the attempt must be found after it ended.
  [[nodiscard]] std::filesystem::path output_path(scheduler::AttemptId attempt,
                                                  const AttemptSpec& spec, size_t i) const;
  // Whether all outputs are there and of their declared kinds: an error as of seal.
  [[nodiscard]] Status look_at_outputs(scheduler::AttemptId attempt, const AttemptSpec& spec) const;
  // Moves the checked output to its object path, read-only. An error for a missing output (it says
  // what is there instead) and for one of another kind than declared. A directory is moved as a
  // whole; an error too for what cannot be kept of it (io/manifest.h).
  [[nodiscard]] Expected<SealedOutput> seal(scheduler::AttemptId attempt, const AttemptSpec& spec,
                                            size_t i);
  Status clean(scheduler::AttemptId attempt);  // removes the attempt's directory
  // The same in two steps: it counts no more, and what is to be removed when there is time.
  struct Leftover {
    std::filesystem::path folder;  // "": nothing
    std::filesystem::path temporary;
  };
  [[nodiscard]] Leftover release(scheduler::AttemptId attempt);
  Status remove(const Leftover& leftover);
  // Copies the attempt's working directory (no larger than `bytes_max`, inputs as links) to `to`,
  // for failed/. What was too large is named in `to`/LEFT_OUT.
  Status keep_failed(scheduler::AttemptId attempt, const std::filesystem::path& to,
                     int64_t bytes_max);

  [[nodiscard]] std::filesystem::path object_path(
      scheduler::ObjectId object) const;  // "" if not held
  [[nodiscard]] bool holds(scheduler::ObjectId object) const;
  // Whether a held object is what was sealed or received. A file that was written to is not: its
  // size tells, or its time and its content (without remember_content: its time alone). The owner
  // of a store may write to anything in it, so only a look afterwards tells. Of a directory only
  // that it is there.
  [[nodiscard]] bool as_sealed(scheduler::ObjectId object);
  void remember_content(scheduler::ObjectId object, scheduler::Hash128 content);
  // A peer's object on the same node, in either of its tiers: hard link, or copy when that fails
  // (other file system).
  Status link_from(scheduler::ObjectId object, const std::filesystem::path& peer_store_memory);
  // A file that another process makes here: where, and once it is whole. It is an object then.
  struct NewFile {
    bool on_disk = false;
    std::filesystem::path path;
  };
  [[nodiscard]] NewFile place_for(scheduler::ObjectId object, int64_t bytes_max) const;
  Status adopt(scheduler::ObjectId object, const NewFile& made);
  // A fetched object arrives in pieces, in any order; it is there after finish(). Of a directory
  // the pieces that begin in the manifest come first and in order.
  Status begin_receive(scheduler::ObjectId object, const ObjectForm& form);
  Status write_piece(scheduler::ObjectId object, int64_t offset, std::span<const std::byte> bytes);
  Status finish_receive(scheduler::ObjectId object);
  void abandon_receive(scheduler::ObjectId object);
  [[nodiscard]] Expected<std::vector<std::byte>> read_piece(scheduler::ObjectId object,
                                                            int64_t offset, int64_t length,
                                                            ObjectForm& form);
  // Copy to `temporary` (its folders are made), fsync of file and folder: ready for rank 0's
  // rename. Writable by its owner as umask says: what is published is the user's.
  Status save(scheduler::ObjectId object, const std::filesystem::path& temporary) const;
  Status remove(scheduler::ObjectId object);
  // Bytes of the first tier's objects, arriving and linked ones included.
  [[nodiscard]] int64_t memory_bytes() const { return memory_bytes_->load(); }

 private:
  Store() = default;
  struct Object {
    bool on_disk = false;
    bool is_directory = false;
    int64_t bytes = 0;           // of a directory that is received: as it travels
    int64_t occupied_bytes = 0;  // what it takes of its tier
    uint32_t mode = 0444;
    FileStamp stamp;                            // of a sealed file
    scheduler::Hash128 content;                 // of a sealed file, if remembered
    FileDescriptor arriving;                    // open while a file is received
    std::unique_ptr<TreeWriter> arriving_tree;  // while a directory is received
    int64_t arrived_bytes = 0;
    [[nodiscard]] bool arrives() const { return arriving.open() || arriving_tree != nullptr; }
  };
  // Directories that peers read, the latest first.
  using ServedTrees = std::deque<std::pair<scheduler::ObjectId, TreeReader>>;
  struct Attempt {
    bool on_disk = false;
    bool has_views = false;      // its folder is there already
    int64_t view_bytes = 0;      // of inputs that are made for it, at most
    int64_t expected_bytes = 0;  // of outputs that are not sealed yet
    int64_t sealed_bytes = 0;
    std::filesystem::path temporary;  // its $TMPDIR
  };
  [[nodiscard]] const std::filesystem::path& tier(bool on_disk) const {
    return on_disk ? place_.disk : place_.memory;
  }
  [[nodiscard]] std::filesystem::path path_of(scheduler::ObjectId object, bool on_disk) const;
  [[nodiscard]] std::filesystem::path arriving_path(scheduler::ObjectId object, bool on_disk) const;
  [[nodiscard]] std::filesystem::path attempt_folder(scheduler::AttemptId attempt,
                                                     bool on_disk) const;
  [[nodiscard]] Expected<std::filesystem::path> take_temporary();
  [[nodiscard]] Status give_back_temporary(const std::filesystem::path& folder);
  [[nodiscard]] std::filesystem::path working_directory(scheduler::AttemptId attempt) const;
  [[nodiscard]] bool prefer_disk(int64_t more_bytes) const;
  // What running attempts have made for them or will write, in the first tier.
  [[nodiscard]] int64_t bytes_of_attempts() const;
  [[nodiscard]] int64_t expected_bytes(const AttemptSpec& spec) const;
  [[nodiscard]] const Object* find_sealed(scheduler::ObjectId object) const;
  [[nodiscard]] Expected<Object*> find_arriving(scheduler::ObjectId object);
  void add(scheduler::ObjectId object, Object entry);
  void forget(scheduler::ObjectId object);
  [[nodiscard]] Expected<StagedAttempt> stage_in(scheduler::AttemptId attempt,
                                                 const AttemptSpec& spec,
                                                 const std::vector<std::string>& input_paths,
                                                 bool on_disk);
  Status take_from(scheduler::ObjectId object, const std::filesystem::path& peer_object,
                   bool on_disk);
  void count_sealed(scheduler::AttemptId attempt, const AttemptSpec& spec, int64_t bytes);

  // Directories: io/store_tree.cpp.
  Status seal_directory(const std::filesystem::path& from, scheduler::ObjectId object,
                        Object& entry);
  Status save_directory(const std::filesystem::path& from,
                        const std::filesystem::path& temporary) const;
  Status take_directory(scheduler::ObjectId object, const std::filesystem::path& peer_object,
                        Object& entry);
  void begin_directory(scheduler::ObjectId object, const ObjectForm& form, Object& entry);
  Status finish_directory(scheduler::ObjectId object, Object& entry);
  [[nodiscard]] Expected<TreeReader*> serve_directory(scheduler::ObjectId object,
                                                      const Object& held);

  StorePlace place_;
  int64_t memory_budget_bytes_ = 0;
  std::unique_ptr<std::atomic<int64_t>> memory_bytes_ = std::make_unique<std::atomic<int64_t>>(0);
  std::map<scheduler::ObjectId, Object> objects_;
  std::map<scheduler::AttemptId, Attempt> attempts_;
  std::vector<std::filesystem::path> temporaries_;  // empty ones, as they were made
  uint64_t temporaries_made_ = 0;
  ServedTrees served_;
  std::map<std::string, int64_t> output_bytes_;  // by task: the most that an attempt has sealed
};

}  // namespace sluice::io
