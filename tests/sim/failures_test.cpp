#include <doctest/doctest.h>

#include <algorithm>

#include "tests/sim/simulation.h"

namespace sluice::tests {
namespace {

using engine::SimulationOptions;
using engine::SimulationResult;
using scheduler::GateId;
using scheduler::Graph;
using scheduler::GroupId;
using scheduler::InstanceId;
using scheduler::InstanceState;
using scheduler::ObjectId;
using scheduler::Outcome;
using scheduler::RetryPolicy;

RetryPolicy retry_always() {
  RetryPolicy policy;
  policy.max.fill(200);
  return policy;
}

uint32_t sum(const std::vector<uint32_t>& counts) {
  uint32_t total = 0;
  for (const uint32_t count : counts) total += count;
  return total;
}

TEST_CASE("sim: crashes, hangs, bad outputs and staging failures are retried until all is done") {
  uint32_t failures = 0;
  for_each_seed([&](uint64_t seed) {
    const Graph graph =
        graph_of(seed, {.retry = retry_always(), .timeout = scheduler::seconds(5), .cpus_max = 4});
    SimulationOptions options = options_of(seed);
    options.model.crash_permille = 150;
    options.model.hang_permille = 30;
    options.model.ignores_stop_permille = 500;
    options.model.bad_output_permille = 50;
    options.model.stage_failure_permille = 50;
    const SimulationResult result = run(graph, options);
    check_all_done(graph, result);
    CHECK(result.completions == std::vector<uint32_t>(graph.instance_count(), 1));
    failures += sum(result.failures);
  });
  CHECK(failures > 0);
}

TEST_CASE("sim: fetches and saves that fail are tried again") {
  uint64_t failed = 0;
  for_each_seed([&](uint64_t seed) {
    const Graph graph = graph_of(seed, {.retry = retry_always(), .cpus_max = 2});
    SimulationOptions options = options_of(seed);
    options.model.fetch_failure_permille = 200;
    options.model.save_failure_permille = 100;
    const SimulationResult result = run(graph, options);
    failed += result.fetches_failed;
    // A result that could not be saved three times over ends the run as it should.
    check_no_problems(result);
    if (result.outcome != Outcome::kDisk) check_all_done(graph, result);
  });
  CHECK(failed > 0);
}

// Instances that read, over any number of steps, an output of one that is doomed, or come after it.
std::vector<bool> below_doomed(const Graph& graph, const std::vector<bool>& doomed) {
  std::vector<bool> below(graph.instance_count(), false);
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < graph.instance_count(); ++i) {
      for (const GroupId group : graph.inputs(InstanceId(i))) {
        for (const ObjectId object : graph.group_objects(group)) {
          const size_t producer = graph.producer(object).index();
          if (below[i] || !(doomed[producer] || below[producer])) continue;
          below[i] = true;
          changed = true;
        }
      }
      for (const GateId gate : graph.gates_before(InstanceId(i))) {
        for (const InstanceId before : graph.gate_predecessors(gate)) {
          if (below[i] || !(doomed[before.index()] || below[before.index()])) continue;
          below[i] = true;
          changed = true;
        }
      }
    }
  }
  return below;
}

TEST_CASE("sim: an instance that always fails fails the run, and what depends on it is skipped") {
  for_each_seed([](uint64_t seed) {
    RetryPolicy twice;
    twice.max.fill(2);
    const Graph graph = graph_of(seed, {.retry = twice});
    SimulationOptions options = options_of(seed);
    options.model.doomed_permille = 60;
    options.core.failures_without_success_max = 1'000'000;
    std::vector<bool> doomed;
    const SimulationResult result = run(graph, options);
    check_no_problems(result);
    for (size_t i = 0; i < graph.instance_count(); ++i) {
      doomed.push_back(result.states[i] == InstanceState::kFailed);
      if (doomed[i]) CHECK(result.failures[i] > 2);
    }
    const std::vector<bool> below = below_doomed(graph, doomed);
    for (size_t i = 0; i < graph.instance_count(); ++i) {
      if (doomed[i]) continue;
      CHECK(result.states[i] == (below[i] ? InstanceState::kSkipped : InstanceState::kDone));
    }
    const bool any = std::find(doomed.begin(), doomed.end(), true) != doomed.end();
    REQUIRE(result.outcome.has_value());
    CHECK(*result.outcome == (any ? Outcome::kFailed : Outcome::kAllDone));
  });
}

}  // namespace
}  // namespace sluice::tests
