// The launcher: parent of the rank, of sluice-h5 and of all attempts; a subreaper in a session of
// its own. Runs until the rank or the guard is gone, then kills every descendant, cleans up and
// tells the guard. Started by the guard (engine/guard.cpp) before anything touches MPI. One
// thread. Test: tests/engine/launcher_test.cpp
#pragma once

#include <cstdint>
#include <string>

#include "engine/aftermath.h"
#include "engine/launcher.h"
#include "io/file_descriptor.h"

namespace sluice::engine {

// launcher -> guard, once, before it exits. guard -> launcher: one byte, a signal for the rank.
struct RankReport {
  int32_t wait_status = 0;
  bool in_order = false;  // it said Quit before it left
  bool begun = false;     // Aftermath::rank_had_begun, before what it made was removed
};

// Never returns to main: the caller leaves by _exit.
void run_launcher(const ProcessTree& tree, const Aftermath& aftermath, const std::string& mark,
                  io::FileDescriptor guard_socket);

}  // namespace sluice::engine
