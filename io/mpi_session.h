// MPI: starting and leaving it.
//
// Promise: under the profile "survive" the death of one rank is not the death of the others:
// endpoint data of all ranks is fetched in MPI_Init, then each rank leaves the PMIx server, whose
// lost connections count as failures, and ends by `_exit` after the engine's own goodbye. Under
// "fast" MPI is as the site made it: a lost rank ends the run.
//
// A limit of "survive" that is not ours to lift: between nodes (sockets), Open MPI 4.1 may end or
// hang a rank whose data for the dead peer were still waiting in the connection (seen in 3
// of 46 deaths under constant traffic of 3 MiB messages to the victim). That rank is then lost
// too, to its guard's report or to silence; others are not affected.
//
// One owner, the control thread (MPI_THREAD_FUNNELED). Test: tests/mpi/ (under mpirun)
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "io/transport.h"
#include "scheduler/expected.h"
#include "scheduler/types.h"

namespace sluice::io {

class MpiSession {
 public:
  // True if a launcher's variables say that this process is a rank. Before and without MPI.
  [[nodiscard]] static bool launched_by_mpi();
  // The rank by the launcher's variables; else this process's place in its batch step; else 0.
  [[nodiscard]] static int environment_rank();
  // An Error if the batch system says that it started N > 1 tasks and the world has one rank, that
  // is, if N processes would each believe to be alone. For processes without MPI too (size 1). All
  // N get it: only the one with environment_rank() 0 should print it.
  [[nodiscard]] static Status check_world(size_t world_size);

  // What the library says of itself, in one line. Needs no MPI_Init.
  [[nodiscard]] static std::string library_version();

  // MPI_Init and all that must happen before the first message. Collective; blocks. Also tells
  // malloc to keep the pages of freed message buffers, up to 64 MiB of them.
  [[nodiscard]] static Expected<std::unique_ptr<MpiSession>> start();
  ~MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;

  [[nodiscard]] int mpi_rank() const;
  [[nodiscard]] size_t size() const;
  [[nodiscard]] int node_rank() const;             // among the ranks of this node
  [[nodiscard]] size_t node_size() const;          // how many those are
  [[nodiscard]] int node_leader() const;           // mpi_rank of the lowest rank of this node
  [[nodiscard]] bool survives() const;             // of a rank's death
  [[nodiscard]] std::string_view profile() const;  // "survive" or "fast"
  // Why a lost rank would end the run although nobody asked for "fast"; "" if there is nothing to
  // say.
  [[nodiscard]] const std::string& profile_problem() const;
  // Waits for all ranks, but not longer than `limit`: false if some did not come (the world's
  // collective calls must not be used any more then).
  [[nodiscard]] bool barrier(scheduler::Duration limit);
  // For io/transport_mpi: the communicator of a channel, as MPI's handle for Fortran
  // (MPI_Comm_f2c).
  [[nodiscard]] int communicator(Channel channel) const;
  // The end of the process, after all goodbyes. Never returns, runs no destructors.
  [[noreturn]] void leave(int exit_code);

 private:
  struct State;
  explicit MpiSession(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace sluice::io
