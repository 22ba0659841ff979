// What the simulations share: graphs of all shapes, workers, and the checks that every run must
// pass.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/simulator.h"
#include "tests/support/graph_shapes.h"
#include "tests/support/rerun_minimum.h"
#include "tests/support/seeds.h"

namespace sluice::tests {

inline constexpr uint64_t kShapeCount = 5;

// One graph a seed, all shapes in turn.
inline scheduler::Graph graph_of(uint64_t seed, ShapeOptions options = {}) {
  options.seed = seed;
  GraphShapes shapes(options);
  switch (seed % kShapeCount) {
    case 0:
      return shapes.chain(12);
    case 1:
      return shapes.fork_join(30);
    case 2:
      return shapes.tree(16);
    case 3:
      return shapes.join(12, 10);
    default:
      return shapes.layered(7, 12);
  }
}

inline engine::SimulationOptions options_of(uint64_t seed, size_t workers = 4, int32_t cores = 4) {
  engine::SimulationOptions options;
  options.seed = seed;
  for (size_t i = 0; i < workers; ++i) {
    engine::WorkerPlan plan;
    plan.resources = {cores, 0};
    options.workers.push_back(plan);
  }
  return options;
}

// A number below `bound`, for what a test plans by seed.
inline uint64_t draw(uint64_t seed, uint64_t subject, uint64_t bound) {
  return scheduler::mix64(seed ^ scheduler::mix64(subject)) % bound;
}
inline scheduler::Instant draw_time(uint64_t seed, uint64_t subject, scheduler::Instant until) {
  return {static_cast<int64_t>(draw(seed, subject, static_cast<uint64_t>(until.ns) + 1))};
}

inline engine::SimulationResult run(const scheduler::Graph& graph,
                                    const engine::SimulationOptions& options) {
  engine::SimulatedRunDirectory directory;
  return engine::simulate(graph, options, directory);
}

inline void check_no_problems(const engine::SimulationResult& result) {
  for (const std::string& problem : result.problems) FAIL_CHECK(problem);
}

inline void check_all_done(const scheduler::Graph& graph, const engine::SimulationResult& result) {
  check_no_problems(result);
  REQUIRE(result.outcome.has_value());
  REQUIRE(*result.outcome == scheduler::Outcome::kAllDone);
  CHECK(result.counts.done == graph.instance_count());
  CHECK(result.counts.results_pending == 0);
}

inline std::vector<bool> ran(const std::vector<uint32_t>& launches) {
  std::vector<bool> any;
  for (const uint32_t count : launches) any.push_back(count > 0);
  return any;
}

// What a run that starts from this directory must run again, by an oracle that shares nothing with
// the core.
inline std::vector<bool> minimum_from(const scheduler::Graph& graph,
                                      const engine::SimulatedRunDirectory& directory) {
  RerunFacts facts;
  for (size_t i = 0; i < graph.instance_count(); ++i) {
    facts.done.push_back(directory.done(scheduler::InstanceId(i)));
  }
  for (size_t o = 0; o < graph.object_count(); ++o) {
    const scheduler::ObjectId object(o);
    facts.available.push_back(directory.file(object) != nullptr ||
                              (graph.output(object).kind == scheduler::OutputKind::kValue &&
                               directory.done(graph.producer(object))));
  }
  return rerun_minimum(graph, facts);
}

}  // namespace sluice::tests
