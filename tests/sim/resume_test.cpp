#include <doctest/doctest.h>

#include "tests/sim/simulation.h"

namespace sluice::tests {
namespace {

using engine::SimulatedRunDirectory;
using engine::SimulationOptions;
using engine::SimulationResult;
using scheduler::Graph;
using scheduler::InstanceId;
using scheduler::Outcome;

TEST_CASE("sim: after a crash of rank 0, any prefix of the journal resumes with the least work") {
  for_each_seed([](uint64_t seed) {
    const Graph graph = graph_of(seed, {.cpus_max = 2});
    const SimulationOptions options = options_of(seed);
    const uint64_t events = run(graph, options).events;
    for (uint64_t round = 0; round < 5; ++round) {
      CAPTURE(round);
      SimulatedRunDirectory directory;
      SimulationOptions crashing = options;
      crashing.core_crash_after_events = 1 + draw(seed, round, events - 1);
      const SimulationResult first = engine::simulate(graph, crashing, directory);
      check_no_problems(first);
      REQUIRE_FALSE(first.outcome.has_value());
      const size_t unsynced = directory.length() - directory.synced();
      directory.cut(directory.synced() + draw(seed, 100 + round, unsynced + 1));
      const std::vector<bool> minimum = minimum_from(graph, directory);
      const SimulationResult second = engine::simulate(graph, options, directory);
      check_all_done(graph, second);
      CHECK(ran(second.launches) == minimum);
      for (const uint32_t launches : second.launches) CHECK(launches <= 1);
    }
  });
}

TEST_CASE("sim: crash after crash, the run ends with the same results") {
  for_each_seed([](uint64_t seed) {
    const Graph graph = graph_of(seed);
    SimulationOptions options = options_of(seed);
    const uint64_t events = run(graph, options).events;
    SimulatedRunDirectory directory;
    for (uint64_t round = 0; round < 6; ++round) {
      options.core_crash_after_events = 1 + draw(seed, round, events / 2);
      check_no_problems(engine::simulate(graph, options, directory));
      directory.cut(directory.length() -
                    draw(seed, 50 + round, directory.length() - directory.synced() + 1));
    }
    options.core_crash_after_events = 0;
    check_all_done(graph, engine::simulate(graph, options, directory));
  });
}

TEST_CASE("sim: a finished run starts nothing when it is run again") {
  for_each_seed([](uint64_t seed) {
    const Graph graph = graph_of(seed);
    SimulatedRunDirectory directory;
    check_all_done(graph, engine::simulate(graph, options_of(seed), directory));
    const SimulationResult again = engine::simulate(graph, options_of(seed + 1), directory);
    check_all_done(graph, again);
    CHECK(ran(again.launches) == std::vector<bool>(graph.instance_count(), false));
  });
}

TEST_CASE("sim: an orderly stop loses no finished work") {
  for_each_seed([](uint64_t seed) {
    const Graph graph = graph_of(seed, {.cpus_max = 2});
    SimulationOptions options = options_of(seed);
    options.model.ignores_stop_permille = 100;
    const SimulationResult whole = run(graph, options);
    SimulatedRunDirectory directory;
    SimulationOptions stopping = options;
    stopping.stop_at = {scheduler::milliseconds(15).ns +
                        draw_time(seed, 1, whole.ended).ns / 10 * 8};
    const SimulationResult first = engine::simulate(graph, stopping, directory);
    check_no_problems(first);
    REQUIRE(first.outcome.has_value());
    if (*first.outcome == Outcome::kAllDone) return;
    REQUIRE(*first.outcome == Outcome::kStopped);

    std::vector<bool> unfinished;
    for (size_t i = 0; i < graph.instance_count(); ++i) {
      unfinished.push_back(!directory.done(InstanceId(i)));
    }
    const SimulationResult second = engine::simulate(graph, options, directory);
    check_all_done(graph, second);
    CHECK(ran(second.launches) == unfinished);
    // What was saved for the second run is gone after it: only results stay.
    for (const auto& [object, file] : directory.files()) CHECK(graph.output(object).result);
  });
}

TEST_CASE("sim: a stop while workers die still leaves a directory that resumes") {
  for_each_seed([](uint64_t seed) {
    const Graph graph = graph_of(seed);
    const SimulationOptions options = options_of(seed);
    const SimulationResult whole = run(graph, options);
    SimulatedRunDirectory directory;
    SimulationOptions stopping = options;
    stopping.stop_at = draw_time(seed, 1, whole.ended);
    for (size_t i = 0; i < 3; ++i) {
      stopping.workers[i].dies =
          stopping.stop_at + scheduler::milliseconds(static_cast<int64_t>(draw(seed, 10 + i, 200)));
      stopping.workers[i].death_reported = i != 1;
    }
    check_no_problems(engine::simulate(graph, stopping, directory));
    const std::vector<bool> minimum = minimum_from(graph, directory);
    const SimulationResult second = engine::simulate(graph, options, directory);
    check_all_done(graph, second);
    CHECK(ran(second.launches) == minimum);
  });
}

}  // namespace
}  // namespace sluice::tests
