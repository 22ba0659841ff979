// The attempts that run under one launcher: started, signalled, their output captured, reaped, and
// whatever processes they left behind killed. An attempt ends when its main process does:
// processes that survive it, also after setsid and a double fork, are re-parented to the launcher,
// recognised by SLUICE_ATTEMPT in their environment (else by their session, else by what ran when
// they appeared), and killed. A process that holds the attempt's pipes but is out of reach delays
// its end by kDrainBound at most. Owner: Launcher. One thread. Test: tests/engine/launcher_test.cpp
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/descendants.h"
#include "engine/environment.h"
#include "engine/launch_protocol.h"
#include "engine/spawn.h"
#include "engine/stream_capture.h"
#include "io/file_descriptor.h"
#include "scheduler/types.h"

namespace sluice::engine {

class Attempts {
 public:
  struct Setup {
    Environment environment;    // cleaned
    Environment removed;        // what was cleaned away, for attempts that ask for it
    std::string mark;           // SLUICE_ATTEMPT=<mark>.<attempt>
    std::string run_directory;  // whose attempts these are; "" if unknown
    rlimit open_files{};        // what children get
    std::function<void(const LaunchMessage&)> report;
    std::function<bool(int fd)> watch;  // call on_readable(fd) when it is, until it is closed
    std::function<bool(pid_t)> is_own;  // the rank or sluice-h5: no attempt's
  };
  explicit Attempts(Setup setup);
  ~Attempts();

  void start(launch::Start start, scheduler::Instant now);
  void signal(const launch::Signal& signal, scheduler::Instant now);
  void kill_all();  // none is wanted any more
  void on_readable(int fd, scheduler::Instant now);
  // A child that is not the rank's or sluice-h5 was reaped. Call on_reaping_done after the last.
  void on_reaped(pid_t pid, int status, const rusage& usage, scheduler::Instant now);
  void on_reaping_done(scheduler::Instant now);
  // Starts that failed for want of resources are tried again; ends that are overdue are reported.
  void on_time(scheduler::Instant now);
  [[nodiscard]] scheduler::Instant next_time() const;

 private:
  struct Attempt;
  struct Orphan {
    scheduler::AttemptId attempt;  // none: not known
    uint64_t seen_at = 0;          // attempts with a lower sequence may have made it
    bool killed = false;
  };
  struct Waiting {
    launch::Start start;
    scheduler::Instant next_try;
    scheduler::Duration pause;
    int tries_left = 0;
  };

  [[nodiscard]] bool try_start(Waiting& waiting, scheduler::Instant now);
  [[nodiscard]] std::variant<pid_t, SpawnError> spawn_attempt(const launch::Start& start,
                                                              std::array<int, 3> descriptors);
  void tell_that_it_waits(const std::string& problem);
  void report_start_error(scheduler::AttemptId attempt, const std::string& text);
  void adopt(const launch::Start& start, pid_t pid, std::array<io::FileDescriptor, 2> pipes,
             scheduler::Instant now);
  void read_stream(Attempt& attempt, size_t which, int reads_max);
  void close_stream(Attempt& attempt, size_t which);
  void find_orphans();
  [[nodiscard]] Orphan attribute(pid_t pid) const;
  void kill_orphans();
  [[nodiscard]] bool must_die(const Orphan& orphan) const;
  [[nodiscard]] bool has_orphans(scheduler::AttemptId attempt) const;
  void report_ended(scheduler::Instant now);
  void report_exited(Attempt& attempt);

  Setup setup_;
  io::FileDescriptor null_;
  OwnChildren children_;
  std::vector<pid_t> child_pids_;                     // kept for its memory
  std::map<pid_t, std::unique_ptr<Attempt>> by_pid_;  // of its main process, running
  std::vector<std::unique_ptr<Attempt>> ended_;       // not reported yet
  std::map<scheduler::AttemptId, Attempt*> by_id_;
  std::map<int, std::pair<Attempt*, size_t>> by_fd_;
  std::map<pid_t, Orphan> orphans_;
  std::vector<Waiting> waiting_;
  bool told_that_it_waits_ = false;
  uint64_t sequence_ = 0;
  std::string stream_prefix_;
  scheduler::Instant next_look_ = scheduler::Instant::never();  // for orphans that were missed
};

}  // namespace sluice::engine
