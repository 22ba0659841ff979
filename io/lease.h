// One writer per run directory. `lease.json`: epoch, host, pid, process start time, boot id, batch
// job, counter. Its owner is gone when host + boot id + pid + start time say so, or its batch job
// left the queue, or its counter stood still for `stale_after` of the observer's clock. Then the
// next epoch takes over. Two takers: one wins (link(2) of a private file onto `lease.<epoch>`; the
// loser reads who won). Owner: rank 0's I/O thread. Test: tests/io/lease_test.cpp
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "scheduler/expected.h"
#include "scheduler/types.h"

namespace sluice::io {

struct LeaseOwner {
  uint32_t epoch = 0;
  std::string host;
  std::string boot_id;
  int64_t pid = 0;
  uint64_t start_time = 0;  // /proc/<pid>/stat field 22
  std::string batch_job;    // SLURM_JOB_ID or ""
  uint64_t counter = 0;     // beats
  bool released = false;    // closed in order
};

class Lease {
 public:
  // An Error with code EBUSY names the living owner (host, pid, since when) and what to do.
  // Waits at most `stale_after` when only the counter can tell (another host); 0: does not wait,
  // refuses.
  [[nodiscard]] static Expected<Lease> take(const std::filesystem::path& run_directory,
                                            scheduler::Duration stale_after);
  [[nodiscard]] uint32_t epoch() const { return owner_.epoch; }
  [[nodiscard]] const std::string& takeover_note() const {
    return note_;
  }  // "" or "took over from …, which is gone"
  Status
  beat();  // counter + 1; an Error with code ESTALE if another epoch has taken over: stop at once
  Status release();

 private:
  std::filesystem::path directory_;
  LeaseOwner owner_;
  std::string note_;
};

// For status: who owns it, if anybody. Alive is best knowledge from here.
struct LeaseView {
  LeaseOwner owner;
  enum class Alive : uint8_t { kYes, kNo, kUnknown } alive = Alive::kUnknown;
  int64_t beat_age_ms = 0;  // since the lease file last changed
};
[[nodiscard]] Expected<LeaseView> view_lease(const std::filesystem::path& run_directory);

}  // namespace sluice::io
