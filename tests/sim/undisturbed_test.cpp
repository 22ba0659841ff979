#include <doctest/doctest.h>

#include "tests/sim/simulation.h"

namespace sluice::tests {
namespace {

using engine::SimulationOptions;
using engine::SimulationResult;
using scheduler::Graph;

TEST_CASE("sim: an undisturbed run does every instance once and loses nothing") {
  for_each_seed([](uint64_t seed) {
    const Graph graph = graph_of(seed, {.cpus_max = 4});
    const SimulationResult result = run(graph, options_of(seed));
    check_all_done(graph, result);
    CHECK(result.launches == std::vector<uint32_t>(graph.instance_count(), 1));
    CHECK(result.completions == std::vector<uint32_t>(graph.instance_count(), 1));
    CHECK(result.fetches_failed == 0);
    CHECK(result.cores_max <= 16);
  });
}

TEST_CASE("sim: the same seed gives the same run, another seed another one") {
  for_each_seed([](uint64_t seed) {
    const Graph graph = graph_of(seed, {.cpus_max = 4});
    const SimulationResult first = run(graph, options_of(seed));
    const SimulationResult again = run(graph, options_of(seed));
    const SimulationResult other = run(graph, options_of(seed + 1));
    CHECK(first.digest == again.digest);
    CHECK(first.events == again.events);
    CHECK(first.ended == again.ended);
    CHECK(first.ended != other.ended);
  });
}

// 30 attempts of 1 s to 3 s each on 8 cores.
TEST_CASE("sim: independent attempts fill all cores") {
  GraphDsl dsl;
  dsl.task("work", {.count = 30, .expected = scheduler::seconds(2), .result = true});
  const Graph graph = dsl.build();
  const SimulationResult result = run(graph, options_of(1, 2, 4));
  check_all_done(graph, result);
  CHECK(result.running_max == 8);
  CHECK(result.cores_max == 8);
}

TEST_CASE("sim: a run-wide limit of one keeps attempts apart") {
  GraphDsl dsl;
  const scheduler::LimitId limit = dsl.limit("licence", scheduler::kAmountUnit);
  dsl.task("work", {.count = 12, .limits = {{limit, scheduler::kAmountUnit}}, .result = true});
  const Graph graph = dsl.build();
  const SimulationResult result = run(graph, options_of(1));
  check_all_done(graph, result);
  CHECK(result.running_max == 1);
}

TEST_CASE("sim: memory keeps attempts apart that cores would not") {
  GraphDsl dsl;
  dsl.task("work", {.count = 12, .memory_bytes = 60, .result = true});
  const Graph graph = dsl.build();
  SimulationOptions options = options_of(1, 2, 8);
  for (engine::WorkerPlan& worker : options.workers) worker.resources.memory_bytes = 100;
  const SimulationResult result = run(graph, options);
  check_all_done(graph, result);
  CHECK(result.running_max == 2);
}

TEST_CASE("sim: a worker that joins late gets work") {
  GraphDsl dsl;
  dsl.task("work", {.count = 40, .expected = scheduler::seconds(2), .result = true});
  const Graph graph = dsl.build();
  SimulationOptions options = options_of(3, 2, 2);
  const SimulationResult alone = run(graph, options_of(3, 1, 2));
  options.workers[1].joins = {scheduler::seconds(5).ns};
  const SimulationResult result = run(graph, options);
  check_all_done(graph, result);
  CHECK(result.running_max == 4);
  CHECK(result.ended < alone.ended);
}

TEST_CASE("sim: an empty graph is done at once") {
  GraphDsl dsl;
  const Graph graph = dsl.build();
  check_all_done(graph, run(graph, options_of(1)));
}

}  // namespace
}  // namespace sluice::tests
