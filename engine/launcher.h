// The process tree (design §3): guard -> launcher -> (rank, sluice-h5, attempts). mpirun watches
// the guard, a subreaper that only waits and forwards signals; the launcher, a subreaper in a
// session of its own, is the parent of the rank and of all user processes. Each watches its parent
// by pidfd and kills every descendant when it goes. Whoever survives a death removes the node's
// store and the rank's files in shared memory, and leaves a note in `lost/` of the run directory.
//
// Both run before anything touches MPI. No fork from an MPI process, ever. Single-threaded.
// Test: tests/engine/launcher_test.cpp, tests/e2e/
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "io/store.h"

namespace sluice::engine {

struct ProcessTree {
  int mpi_rank = 0;                    // from the launcher's variables; 0 without MPI
  io::StorePlace store;                // removed when the rank is gone
  std::filesystem::path lost_folder;   // <run directory>/lost; "" while unknown (non-run verbs)
  std::vector<std::string> rank_argv;  // the engine process: this executable with its hidden verb
  std::string checker_program;         // path of sluice-h5
};

// Becomes the guard: forks the launcher, waits, forwards SIGTERM/SIGINT/SIGUSR1 to the rank.
// Returns the exit code for main: the rank's status for mpi_rank 0; 0 for another rank that died or
// was killed (a worker's death is an event, not the end of the run), unless that rank itself left
// in order with another code.
int run_guarded(const ProcessTree& tree);

// What `ps` and the tests know a process by: "sluice-guard" and "sluice-launch" are set here, the
// rank calls this with "sluice-rank" at its start. At most 15 characters.
void set_process_name(const char* name);

// True if `name` (an environment variable) belongs to an MPI, PMI or batch launcher and must not
// reach user code.
[[nodiscard]] bool is_launcher_variable(const std::string& name);

}  // namespace sluice::engine
