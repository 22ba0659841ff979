// One engine process: rank 0 (scheduler, with a worker of its own where it is alone on its node, or
// without MPI), or a worker. Made by main.cpp after MPI is up (or with the in-memory transport,
// without MPI); runs the control loop.
//
// The wait is ppoll on the launcher's, checker's and I/O threads' descriptors, so child exits wake
// at once; only MPI is polled, with the back-off of design §2 as the timeout. Without MPI nothing
// is polled. Test: tests/e2e/
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/cli.h"
#include "engine/hang_watch.h"
#include "engine/launcher_client.h"
#include "engine/topology.h"
#include "io/pipeline.h"
#include "io/sources.h"
#include "io/store.h"
#include "io/transport.h"

namespace sluice::engine {

struct RankContext {
  Options options;
  int mpi_rank = 0;
  int mpi_size = 1;
  int local_rank = 0;  // among the ranks of this node
  int local_count = 1;
  bool scheduler_is_local = true;  // rank 0 is on this node
  bool polled = false;             // the transport must be polled (MPI)
  std::string profile;             // "survive", "fast", … for the start-up line; "" without MPI
  std::vector<std::pair<std::string, std::string>> versions;  // of libraries: "hwloc", "mpi"
  Node node;
  io::StorePlace place;
  LauncherClient* launcher = nullptr;  // made by main, which says Quit through it at the end
  io::SourceStamps sources = {};       // rank 0's, from read_for_run
  HangWatch* hang_watch = nullptr;     // under MPI: is told of every turn of the loop
};

// How long a worker waits for a sign of life of rank 0, and a rank for a turn of its own loop.
// Longer than rank 0's patience with a worker, which may have been slow to notice.
[[nodiscard]] scheduler::Duration patience(const Options& options);

// Rank 0 reads the pipeline before anything else; prints diagnostics. Nothing: exit with 2.
[[nodiscard]] std::optional<io::Pipeline> read_for_run(RankContext& context);

// `pipeline` on rank 0 only. Returns the rank's exit code; the caller leaves MPI.
[[nodiscard]] int run_rank(const RankContext& context, io::Transport& transport,
                           io::Pipeline* pipeline);

// Rank 0 cannot start (`code`): tells the others to leave, delivers, returns the code.
[[nodiscard]] int refuse_start(io::Transport& transport, int code);

}  // namespace sluice::engine
