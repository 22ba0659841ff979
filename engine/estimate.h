// How long what a plan says would take: durations learned from the journal, the simulator with as
// many workers as asked for, and the bound that no schedule can beat. Pure functions; one thread.
// Test: tests/engine/estimate_test.cpp
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/journal.h"
#include "io/pipeline.h"
#include "scheduler/graph.h"

namespace sluice::engine {

struct LearnedDuration {
  scheduler::Duration median;  // wall time of the successes that the journal has
  size_t samples = 0;          // 0: nothing is known
};
// By TaskId.
[[nodiscard]] std::vector<LearnedDuration> learn_durations(const io::Pipeline& pipeline,
                                                           const io::JournalState& journal);

// The chosen instances as a graph of their own: what the others make counts as being there. Tasks
// expect what was learned; there are no timeouts.
[[nodiscard]] scheduler::Graph part_of(const scheduler::Graph& graph,
                                       const std::vector<bool>& chosen,  // by InstanceId
                                       const std::vector<LearnedDuration>& learned);

struct MachineShape {
  size_t workers = 1;
  scheduler::Resources each{1, 0};  // memory 0: not known, so it is not counted
};

struct Estimate {
  bool simulated = false;
  std::string why_not;                // when not simulated
  scheduler::Duration makespan;       // when simulated
  scheduler::Duration critical_path;  // the longest chain
  scheduler::Duration work_bound;     // core time over all cores, or the scarcest limit
  [[nodiscard]] scheduler::Duration bound() const;
};
[[nodiscard]] Estimate estimate(const scheduler::Graph& graph, const MachineShape& machine);

}  // namespace sluice::engine
