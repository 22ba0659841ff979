// How far each instance is from the end of the run, for choosing what starts first.
//
// The *upward rank* of an instance is its task's expected duration plus the largest upward rank
// among the instances that read what it makes: the length of the longest path to the end. It goes
// through groups, so a join of A producers and B consumers costs |A| + |B|. Integers only, so that
// equal inputs order equally everywhere. Pure functions. Test: tests/scheduler/ranking_test.cpp
#pragma once

#include <vector>

#include "scheduler/graph.h"

namespace sluice::scheduler {

// An attempt whose task does not say how long it takes is taken to last this long.
constexpr Duration kExpectedWhenUnknown = seconds(1);

// Index: instance.
[[nodiscard]] std::vector<Duration> upward_ranks(const Graph& graph);

// All instances in the order in which they should start if all were ready: priority (highest
// first), then upward rank (longest first), then id.
[[nodiscard]] std::vector<InstanceId> start_order(const Graph& graph);

}  // namespace sluice::scheduler
