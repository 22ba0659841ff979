// What `check` looks at beside the spec itself: whether each task fits on this machine, whether a
// command line is too long for the system, and whether a source lies where the run itself writes.
// Adds findings at the task's place in the spec: errors where the run could not go well, warnings
// where another machine may do. One thread. Test: tests/engine/preflight_test.cpp
#pragma once

#include "engine/run_directory.h"
#include "io/diagnostic.h"
#include "io/pipeline.h"
#include "scheduler/resources.h"

namespace sluice::engine {

struct ThisMachine {
  scheduler::Resources resources;        // of one worker that has the whole node
  size_t argument_bytes_max = 2 << 20U;  // all words and variables of a program
};

// No bounds but those of this system: what is asked for may be elsewhere.
[[nodiscard]] ThisMachine any_machine();

void preflight(const io::Pipeline& pipeline, const RunDirectory& directory,
               const ThisMachine& machine, io::Diagnostics& diagnostics);

}  // namespace sluice::engine
