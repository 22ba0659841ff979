// Rules of the spec and of `run` in whole runs: retries that wait and grow, part of a pipeline, a
// broken worker, enough failures.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/sim/simulation.h"

namespace sluice::tests {
namespace {

using engine::SimulatedRunDirectory;
using engine::SimulationOptions;
using engine::SimulationResult;
using scheduler::Graph;
using scheduler::GroupId;
using scheduler::InstanceId;
using scheduler::InstanceState;
using scheduler::ObjectId;
using scheduler::Outcome;
using scheduler::RetryPolicy;

RetryPolicy growing() {
  RetryPolicy policy;
  policy.max.fill(200);
  policy.change.fill({scheduler::milliseconds(700), 1500, 1250});
  return policy;
}

TEST_CASE("sim: retries that wait, and ask for more each time, end like others") {
  for_each_seed([](uint64_t seed) {
    const Graph graph =
        graph_of(seed, {.retry = growing(), .timeout = scheduler::seconds(3), .cpus_max = 4});
    SimulationOptions options = options_of(seed);
    for (engine::WorkerPlan& plan : options.workers) {
      const auto cpus = static_cast<uint64_t>(plan.resources.cpus);
      plan.resources.memory_bytes = int64_t{1} << (20U + draw(seed, cpus, 8));
    }
    options.model.crash_permille = 150;
    options.model.hang_permille = 30;
    options.workers[1].dies = draw_time(seed, 1, {scheduler::seconds(4).ns});
    const SimulationResult result = run(graph, options);
    check_all_done(graph, result);
    CHECK(run(graph, options).digest == result.digest);
  });
}

// UC-073: what fails for want of memory, here by a signal, gets 4, 8, 16, 32 and no more.
TEST_CASE("sim: memory grows up to the largest worker and no further") {
  constexpr int64_t kGib = 1LL << 30U;
  GraphDsl dsl;
  RetryPolicy policy;
  policy.max.fill(9);
  policy.change.fill({{}, 2000, 0});
  dsl.task("hungry", {.memory_bytes = 4 * kGib, .result = true, .retry = policy});
  dsl.task("other", {.count = 20, .result = true});
  const Graph graph = dsl.build();
  SimulationOptions options = options_of(3, 3);
  for (engine::WorkerPlan& plan : options.workers) plan.resources.memory_bytes = 16 * kGib;
  options.workers[2].resources.memory_bytes = 32 * kGib;
  options.core.quick_failures_max = 0;
  options.model.doomed_permille = 1000;
  const SimulationResult all_fail = run(graph, options);
  check_no_problems(all_fail);
  CHECK(all_fail.failures[0] == 4);
}

// Instances that the marked ones read or come after, directly or not.
std::vector<bool> with_needed(const Graph& graph, std::vector<bool> marked) {
  for (bool changed = true; changed;) {
    changed = false;
    const auto mark = [&](InstanceId id) {
      if (!marked[id.index()]) marked[id.index()] = changed = true;
    };
    for (size_t i = 0; i < graph.instance_count(); ++i) {
      if (!marked[i]) continue;
      for (const GroupId group : graph.inputs(InstanceId(i))) {
        for (const ObjectId object : graph.group_objects(group)) mark(graph.producer(object));
      }
      for (const scheduler::GateId gate : graph.gates_before(InstanceId(i))) {
        for (const InstanceId before : graph.gate_predecessors(gate)) mark(before);
      }
    }
  }
  return marked;
}

TEST_CASE("sim: a selection runs just what it selects, and the rest later, once") {
  for_each_seed([](uint64_t seed) {
    const Graph graph = graph_of(seed, {.cpus_max = 2});
    std::vector<bool> some(graph.instance_count());
    for (size_t i = 0; i < some.size(); ++i) some[i] = draw(seed, i, 5) == 0;
    const std::vector<bool> selected = with_needed(graph, some);
    SimulatedRunDirectory directory;
    SimulationOptions options = options_of(seed);
    options.selected = selected;
    const SimulationResult part = engine::simulate(graph, options, directory);
    check_no_problems(part);
    REQUIRE(part.outcome.has_value());
    CHECK(*part.outcome == Outcome::kAllDone);
    CHECK(ran(part.launches) == selected);
    options.selected.clear();
    const SimulationResult rest = engine::simulate(graph, options, directory);
    check_all_done(graph, rest);
    std::vector<bool> others = selected;
    others.flip();
    CHECK(ran(rest.launches) == others);
  });
}

TEST_CASE("sim: a selection survives lost workers") {
  for_each_seed([](uint64_t seed) {
    const Graph graph = graph_of(seed, {.cpus_max = 2});
    std::vector<bool> some(graph.instance_count());
    for (size_t i = 0; i < some.size(); ++i) some[i] = draw(seed, i, 3) == 0;
    SimulationOptions options = options_of(seed);
    options.selected = with_needed(graph, some);
    options.workers[0].dies = draw_time(seed, 7, {scheduler::seconds(3).ns});
    options.workers[1].dies = draw_time(seed, 8, {scheduler::seconds(3).ns});
    const SimulationResult result = run(graph, options);
    check_no_problems(result);
    REQUIRE(result.outcome.has_value());
    CHECK(*result.outcome == Outcome::kAllDone);
  });
}

TEST_CASE("sim: a forced instance runs once more and nothing else does") {
  for_each_seed([](uint64_t seed) {
    const Graph graph = graph_of(seed);
    SimulatedRunDirectory directory;
    SimulationOptions options = options_of(seed);
    check_all_done(graph, engine::simulate(graph, options, directory));
    // One without inputs: others would have theirs made again.
    options.forced = {InstanceId(0)};
    const SimulationResult again = engine::simulate(graph, options, directory);
    check_all_done(graph, again);
    std::vector<bool> first(graph.instance_count());
    first[0] = true;
    CHECK(ran(again.launches) == first);
  });
}

// UC-105
TEST_CASE("sim: a broken worker among sound ones costs a few attempts, not the run") {
  for_each_seed([](uint64_t seed) {
    GraphDsl dsl;
    dsl.task("work", {.count = 400, .result = true});
    const Graph graph = dsl.build();
    SimulationOptions options = options_of(seed, 4, 2);
    options.workers[draw(seed, 1, 4)].broken = true;
    const SimulationResult result = run(graph, options);
    check_no_problems(result);
    CHECK(result.counts.failed <= 1);
    CHECK(result.counts.done >= 399);
    uint32_t failures = 0;
    for (const uint32_t count : result.failures) failures += count;
    CHECK(failures <= 12);
  });
}

TEST_CASE("sim: when every worker is broken, the run fails and ends") {
  GraphDsl dsl;
  dsl.task("work", {.count = 100, .result = true});
  const Graph graph = dsl.build();
  SimulationOptions options = options_of(5, 3, 2);
  for (engine::WorkerPlan& plan : options.workers) plan.broken = true;
  const SimulationResult result = run(graph, options);
  check_no_problems(result);
  REQUIRE(result.outcome.has_value());
  CHECK(*result.outcome == Outcome::kFailed);
  CHECK(result.counts.done == 0);
}

TEST_CASE("sim: enough failures end a run early, what runs finishes, a resume goes on") {
  for_each_seed([](uint64_t seed) {
    GraphDsl dsl;
    dsl.task("work", {.count = 120, .result = true});
    const Graph graph = dsl.build();
    SimulatedRunDirectory directory;
    SimulationOptions options = options_of(seed, 2, 2);
    options.core.failures_max = 3;
    options.core.failures_without_success_max = 1'000'000;
    options.model.crash_permille = 300;
    const SimulationResult result = engine::simulate(graph, options, directory);
    check_no_problems(result);
    REQUIRE(result.outcome.has_value());
    CHECK(*result.outcome == Outcome::kFailed);
    CHECK(result.counts.failed >= 3);
    CHECK(result.counts.failed <= 3 + 4);  // what was running may fail too
    options.core.failures_max = 0;
    options.model.crash_permille = 0;
    check_all_done(graph, engine::simulate(graph, options, directory));
  });
}

}  // namespace
}  // namespace sluice::tests
