// One writer per run directory. Files, each JSON of a LeaseOwner:
//
//   lease.<epoch>   the claim: link(2) of a private file, so of several takers exactly one wins;
//   the
//                   owner is whoever holds the greatest epoch. Older claims are removed.
//   lease.json      the owner's beats: rewritten at each beat; counts only if its epoch is the
//                   greatest claim's (a stalled owner may still write it once).
//
// The owner is gone when it released, or when on this host its boot id, pid and start time say so,
// or when its counter stood still for `stale_after` of the observer's clock. Then the next epoch
// takes over. Owner: rank 0's I/O thread. Test: tests/io/lease_test.cpp
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "io/files.h"
#include "scheduler/expected.h"
#include "scheduler/types.h"

namespace sluice::io {

struct LeaseOwner {
  uint32_t epoch = 0;
  std::string host;
  std::string boot_id;
  int64_t pid = 0;
  uint64_t start_time = 0;    // /proc/<pid>/stat field 22
  std::string batch_job;      // SLURM_JOB_ID or ""
  uint64_t counter = 0;       // beats
  bool released = false;      // closed in order
  int64_t since_unix_ms = 0;  // when it took the lease, by its own clock
  int64_t beat_unix_ms = 0;   // when it last wrote
};

// What a lease asks of the machine: replaced in tests, so that they neither sleep nor need a second
// host.
class LeaseHost {
 public:
  virtual ~LeaseHost() = default;
  virtual LeaseOwner self() = 0;  // host, boot id, pid, start time, batch job of this process
  virtual std::optional<uint64_t> start_time_of(int64_t pid) = 0;  // nullopt: no such process
  virtual int64_t unix_time_ms() = 0;
  virtual scheduler::Instant now() = 0;
  virtual void sleep(scheduler::Duration duration) = 0;
};
[[nodiscard]] LeaseHost& real_lease_host();

class Lease {
 public:
  // An Error with code EBUSY names the living owner (host, pid, since when) and what to do.
  // Waits at most `stale_after` when only the counter can tell (another host); 0: does not wait,
  // refuses.
  [[nodiscard]] static Expected<Lease> take(const std::filesystem::path& run_directory,
                                            scheduler::Duration stale_after);
  // `files` and `host` must outlive the lease.
  [[nodiscard]] static Expected<Lease> take(Files& files, LeaseHost& host,
                                            const std::filesystem::path& run_directory,
                                            scheduler::Duration stale_after);
  [[nodiscard]] uint32_t epoch() const { return owner_.epoch; }
  [[nodiscard]] const std::string& takeover_note() const {
    return note_;
  }  // "" or "took over from …, which is gone"
  Status
  beat();  // counter + 1; an Error with code ESTALE if another epoch has taken over: stop at once
  Status release();

 private:
  Lease(Files& files, LeaseHost& host, std::filesystem::path directory, LeaseOwner owner,
        std::string note);
  Status write();  // lease.json
  Files* files_;
  LeaseHost* host_;
  std::filesystem::path directory_;
  LeaseOwner owner_;
  std::string note_;
};

// For status: who owns it, if anybody. Alive is best knowledge from here.
struct LeaseView {
  LeaseOwner owner;
  enum class Alive : uint8_t {
    kYes,
    kNo,
    kUnknown,  // on another host, and its last beat is not old
    kSilent,   // on another host, and by the clock here its last beat is older than two minutes
  } alive = Alive::kUnknown;
  int64_t beat_age_ms = 0;  // since its last beat

  [[nodiscard]] bool may_run() const {
    return !owner.released && (alive == Alive::kYes || alive == Alive::kUnknown);
  }
};
// ENOENT: nobody ever took it.
[[nodiscard]] Expected<LeaseView> view_lease(const std::filesystem::path& run_directory);
[[nodiscard]] Expected<LeaseView> view_lease(Files& files, LeaseHost& host,
                                             const std::filesystem::path& run_directory);

}  // namespace sluice::io
