#include <doctest/doctest.h>

#include "tests/sim/simulation.h"

namespace sluice::tests {
namespace {

using engine::SimulatedRunDirectory;
using engine::SimulationOptions;
using engine::SimulationResult;
using engine::WorkerPlan;
using scheduler::Graph;
using scheduler::Instant;
using scheduler::Outcome;

// Each worker but `first_spared` may die, at a time within an undisturbed run.
void plan_deaths(SimulationOptions& options, uint64_t seed, size_t first_spared, Instant until) {
  for (size_t i = 0; i < options.workers.size(); ++i) {
    if (i == first_spared || draw(seed, 10 + i, 3) == 0) continue;
    options.workers[i].dies = draw_time(seed, 20 + i, until);
    options.workers[i].death_reported = draw(seed, 30 + i, 2) == 0;
  }
}

TEST_CASE("sim: all workers but one may die, and the results are the same") {
  for_each_seed([](uint64_t seed) {
    const Graph graph = graph_of(seed);
    // Two may die: an instance that loses its third attempt has failed.
    SimulationOptions options = options_of(seed, 3);
    const Instant until = run(graph, options).ended;
    plan_deaths(options, seed, draw(seed, 1, 3), until);
    const SimulationResult result = run(graph, options);
    check_all_done(graph, result);
  });
}

TEST_CASE("sim: workers that die while attempts crash and fetches fail change nothing in the end") {
  for_each_seed([](uint64_t seed) {
    ShapeOptions shape;
    shape.retry.max.fill(200);
    const Graph graph = graph_of(seed, shape);
    SimulationOptions options = options_of(seed, 3);
    options.model.crash_permille = 100;
    options.model.fetch_failure_permille = 50;
    const Instant until = run(graph, options).ended;
    plan_deaths(options, seed, draw(seed, 1, 3), until);
    check_all_done(graph, run(graph, options));
  });
}

TEST_CASE("sim: inputs of which only parts are read change nothing in the end") {
  for_each_seed([](uint64_t seed) {
    ShapeOptions shape;
    shape.retry.max.fill(200);
    const Graph graph = graph_of(seed, shape);
    SimulationOptions options = options_of(seed, 3);
    options.model.partial_permille = seed % 2 == 0 ? 1000 : 500;
    options.model.fetch_failure_permille = 50;
    const Instant until = run(graph, options).ended;
    plan_deaths(options, seed, draw(seed, 1, 3), until);
    check_all_done(graph, run(graph, options));
  });
}

TEST_CASE("sim: when all workers are gone the run is stuck, and the next one finishes it") {
  for_each_seed([](uint64_t seed) {
    const Graph graph = graph_of(seed);
    SimulationOptions options = options_of(seed, 2);
    const Instant until = run(graph, options).ended;
    SimulatedRunDirectory directory;
    for (size_t i = 0; i < options.workers.size(); ++i) {
      options.workers[i].dies = {draw_time(seed, i, until).ns / 2 + 20'000'000};
      options.workers[i].death_reported = i == 0;
    }
    const SimulationResult result = engine::simulate(graph, options, directory);
    check_no_problems(result);
    REQUIRE(result.outcome.has_value());
    CHECK(*result.outcome == Outcome::kStuck);
    check_all_done(graph, engine::simulate(graph, options_of(seed, 2), directory));
  });
}

// Shorter than the silence that is noticed, longer than it, and so long that it counts as death.
TEST_CASE("sim: a worker that stands still for a while does no harm") {
  for (const int64_t stall_seconds : {1, 10, 60}) {
    for_each_seed([&](uint64_t seed) {
      const Graph graph = graph_of(seed);
      SimulationOptions options = options_of(seed, 3);
      const Instant until = run(graph, options).ended;
      WorkerPlan& worker = options.workers[draw(seed, 1, 3)];
      worker.stalls = draw_time(seed, 2, until);
      worker.stall = scheduler::seconds(stall_seconds);
      check_all_done(graph, run(graph, options));
    });
  }
}

}  // namespace
}  // namespace sluice::tests
