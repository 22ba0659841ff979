// Finding and killing processes below this one. The caller is a subreaper: a descendant whose
// parent dies becomes our child, also after setsid and a double fork, so that killing children
// until there are none leaves nothing behind. Reads /proc; one thread. Test:
// tests/engine/descendants_test.cpp
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/file_descriptor.h"
#include "scheduler/types.h"

namespace sluice::engine {

// Direct children of any process, zombies included.
[[nodiscard]] std::vector<pid_t> children_of(pid_t pid);

// Our own children, asked often: the kernel's list stays open. Without that list in the kernel
// (CONFIG_PROC_CHILDREN) all of /proc is read.
class OwnChildren {
 public:
  OwnChildren();
  // In the order of birth; may miss one while another exits, so ask again later.
  void read(std::vector<pid_t>& pids);

 private:
  io::FileDescriptor list_;
  std::string text_;
};

// SIGKILL to every descendant, and reaping, until none is left or `bound` has passed (a process in
// an uninterruptible wait). True if none is left.
[[nodiscard]] bool kill_all_descendants(scheduler::Duration bound);

struct ProcessStat {
  char state = '?';  // 'Z': a zombie
  pid_t parent = 0;
  pid_t session = 0;
  uint64_t start_time = 0;  // clock ticks since boot
};
// All zero if there is no such process.
[[nodiscard]] ProcessStat read_stat(pid_t pid);

// A variable in the environment that the process was started with; "" if absent or not readable.
[[nodiscard]] std::string variable_of(pid_t pid, std::string_view name);

// True if the process's environment says that an MPI launcher started it as a rank.
[[nodiscard]] bool knows_its_rank(pid_t pid);
// From the parent of `pid` up, through wrappers that know the rank that they were started as, to
// the first process that does not: mpirun, orted or slurmstepd.
[[nodiscard]] std::vector<pid_t> ancestors_up_to_mpirun(pid_t pid);

// "<pid>-<start time>" of this process: first part of SLUICE_ATTEMPT, unique on a node since boot.
[[nodiscard]] std::string own_mark();

// Processes of ours whose SLUICE_ATTEMPT names a guard (own_mark) that is gone: what a double death
// left on this node. Kills them, returns how many.
size_t kill_orphaned_attempts();

}  // namespace sluice::engine
