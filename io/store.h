// Objects and attempt directories as files in the tiers of one worker. Layout of a store folder
// (made 0700, in node memory: /dev/shm, else $TMPDIR; the second tier is always below $TMPDIR or
// /tmp):
//
//   sluice.<uid>.<owner pid>.<owner start time>.<mpi_rank>/
//     o/<object>          sealed object, mode 0444 (0555 if executable)
//     a/<attempt>/w/      the attempt's current directory, empty but for in/ and `as:` links
//     a/<attempt>/w/in/<input>/<file>   links
//     a/<attempt>/s/      script, list files: not visible as the program's own
//     a/<attempt>/t/      the attempt's $TMPDIR
//
// Budget: objects and running attempts of the first tier are counted; above it new attempt
// directories and fetched objects go to the second tier. Owner of the folder: the guard's pid and
// start time, so that anyone can tell that it is orphaned. Used by the worker's I/O thread only
// (sizes are read by the control thread through atomics). Test: tests/io/store_test.cpp
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/attempt_spec.h"
#include "scheduler/expected.h"
#include "scheduler/types.h"

namespace sluice::io {

// Half of min(cgroup limit, free memory), from /proc and both cgroup versions; and free space of
// the tmpfs.
[[nodiscard]] int64_t node_memory_budget_bytes(const std::filesystem::path& tmpfs);

struct StorePlace {
  std::filesystem::path memory;  // folder of the first tier, e.g. /dev/shm/sluice.0.123.456.1
  std::filesystem::path disk;    // folder of the second tier
};
// Names only, nothing is made: guard, launcher and rank compute the same place. SLUICE_NODE_MEMORY
// and TMPDIR override.
[[nodiscard]] StorePlace store_place(int64_t owner_pid, uint64_t owner_start_time, int mpi_rank);
// Removes a store (both tiers). Never an error that matters: returns what could not be removed.
[[nodiscard]] std::vector<std::string> remove_store(const StorePlace& place);
// Stores on this node whose owner process is gone: removes them, returns how many.
size_t remove_orphaned_stores();

// What the child process needs, made by Store::stage.
struct StagedAttempt {
  std::vector<std::string> argv;
  std::vector<std::pair<std::string, std::string>> environment;  // additions, last wins
  std::string working_directory;
};

struct SealedOutput {
  std::filesystem::path path;
  int64_t bytes = 0;
};

class Store {
 public:
  [[nodiscard]] static Expected<Store> create(const StorePlace& place, int64_t memory_budget_bytes);

  // Makes the attempt's directory: links inputs (`input_paths`: for each file or h5 input file of
  // the spec in order, the absolute path its link points at; entries for values are ignored),
  // writes list files (x, x_ITEMS as TSV, JSON lines for gathered values), the script, and gives
  // argv with every Piece resolved and IN_x, OUT_x, PIPELINE_DIR, TMPDIR set.
  [[nodiscard]] Expected<StagedAttempt> stage(scheduler::AttemptId attempt, const AttemptSpec& spec,
                                              const std::vector<std::string>& input_paths);
  // Where output i of the attempt must be found after it ended.
  [[nodiscard]] std::filesystem::path output_path(scheduler::AttemptId attempt,
                                                  const AttemptSpec& spec, size_t i) const;
  // Moves the checked output to its object path, read-only. An error for links, special files,
  // directories.
  [[nodiscard]] Expected<SealedOutput> seal(scheduler::AttemptId attempt, const AttemptSpec& spec,
                                            size_t i);
  Status clean(scheduler::AttemptId attempt);  // removes the attempt's directory
  // Copies the attempt's working directory (no larger than `bytes_max`, inputs as links) to `to`,
  // for failed/.
  Status keep_failed(scheduler::AttemptId attempt, const std::filesystem::path& to,
                     int64_t bytes_max);

  [[nodiscard]] std::filesystem::path object_path(
      scheduler::ObjectId object) const;  // "" if not held
  [[nodiscard]] bool holds(scheduler::ObjectId object) const;
  // A peer's object on the same node: hard link, or copy when that fails (other file system).
  Status link_from(scheduler::ObjectId object, const std::filesystem::path& peer_store_memory);
  // A fetched object arrives in pieces; it is there after finish().
  Status begin_receive(scheduler::ObjectId object, int64_t bytes, uint32_t mode);
  Status write_piece(scheduler::ObjectId object, int64_t offset, std::span<const std::byte> bytes);
  Status finish_receive(scheduler::ObjectId object);
  void abandon_receive(scheduler::ObjectId object);
  [[nodiscard]] Expected<std::vector<std::byte>> read_piece(scheduler::ObjectId object,
                                                            int64_t offset, int64_t length,
                                                            int64_t& total_bytes,
                                                            uint32_t& mode) const;
  // Copy to `temporary` (its folders are made), fsync of file and folder: ready for rank 0's
  // rename.
  Status save(scheduler::ObjectId object, const std::filesystem::path& temporary) const;
  Status remove(scheduler::ObjectId object);
  // Space of two files of the same store, peers' objects included.
  [[nodiscard]] int64_t memory_bytes() const { return memory_bytes_->load(); }

 private:
  Store() = default;
  struct Object {
    bool on_disk = false;
    int64_t bytes = 0;
    bool receiving = false;
    uint32_t mode = 0444;
  };
  [[nodiscard]] std::filesystem::path path_of(scheduler::ObjectId object, bool on_disk) const;
  [[nodiscard]] bool prefer_disk(int64_t more_bytes) const;
  StorePlace place_;
  int64_t memory_budget_bytes_ = 0;
  std::unique_ptr<std::atomic<int64_t>> memory_bytes_ = std::make_unique<std::atomic<int64_t>>(0);
  std::map<scheduler::ObjectId, Object> objects_;
  std::map<scheduler::AttemptId, bool> attempt_on_disk_;
};

}  // namespace sluice::io
