// What sending ahead gains, and what it must not cost.
#include <doctest/doctest.h>

#include "tests/sim/simulation.h"

namespace sluice::tests {
namespace {

using engine::SimulationOptions;
using engine::SimulationResult;
using scheduler::Graph;
using scheduler::microseconds;
using scheduler::milliseconds;

// 4 workers of 4 cores, attempts of exactly the time that their task expects, 200 us to rank 0.
SimulationOptions even(uint32_t ahead_per_slot_max) {
  SimulationOptions options = options_of(1, 4, 4);
  options.latency_min = options.latency_max = microseconds(200);
  options.model.exact = true;
  options.core.ahead_per_slot_max = ahead_per_slot_max;
  options.check_every = 997;
  return options;
}

// Share of the cores' time that attempts ran, from the first start on.
double utilisation(const Graph& graph, const SimulationResult& result) {
  constexpr int64_t kCores = 16;
  const int64_t begins = milliseconds(10).ns;
  int64_t work = 0;
  for (size_t i = 0; i < graph.instance_count(); ++i) {
    work += graph.task(graph.task_of(scheduler::InstanceId(i))).expected.ns;
  }
  return static_cast<double>(work) / static_cast<double>(kCores * (result.ended.ns - begins));
}

}  // namespace

// An attempt is reported 1.2 ms after it ends (it is checked first), and its successor there is
// ready 0.5 ms after that: one ahead covers 1 ms of these 1.7.
TEST_CASE("sim: of 10 000 attempts of a millisecond, adaptive depth keeps all cores busy") {
  GraphDsl dsl;
  dsl.task("short", {.count = 10'000, .expected = milliseconds(1), .outputs = 0});
  const Graph graph = dsl.build();
  const SimulationResult shallow = run(graph, even(1));
  const SimulationResult adaptive = run(graph, even(16));
  check_all_done(graph, shallow);
  check_all_done(graph, adaptive);
  MESSAGE("utilisation ", utilisation(graph, shallow), " with one ahead, ",
          utilisation(graph, adaptive), " with adaptive depth");
  CHECK(utilisation(graph, shallow) < 0.8);
  CHECK(utilisation(graph, adaptive) > 0.95);
}

// Short work fills every worker; at some time a chain of important instances becomes ready.
TEST_CASE("sim: what is important overtakes what waits ahead") {
  const auto ended_with = [](int32_t priority, uint32_t depth) {
    GraphDsl dsl;
    dsl.task("short", {.count = 4000, .expected = milliseconds(1), .outputs = 0});
    const auto first = dsl.task("first", {.priority = 9, .expected = milliseconds(20)});
    scheduler::TaskId last = first;
    for (int i = 0; i < 40; ++i) {
      const auto next =
          dsl.task("link" + std::to_string(i), {.priority = priority, .expected = milliseconds(2)});
      dsl.one_to_one(last, next);
      last = next;
    }
    const Graph graph = dsl.build();
    const SimulationResult result = run(graph, even(depth));
    check_all_done(graph, result);
    return result.ended;
  };
  // 4000 ms of work on 16 cores take 250 ms; the chain alone 20 + 40 * (2 + 2) ms. If it had to
  // wait for the rest, the run would take longer by most of that.
  CHECK(ended_with(5, 16) < scheduler::Instant{} + milliseconds(320));
  CHECK(ended_with(-5, 16) > scheduler::Instant{} + milliseconds(400));
}

// Attempts of all lengths and priorities, some with a limit of three, on workers of which two die.
TEST_CASE("sim: with deep queues limits hold, and what a dead worker had ahead is done elsewhere") {
  for_each_seed([](uint64_t seed) {
    GraphDsl dsl;
    const auto licence = dsl.limit("licence", 3 * scheduler::kAmountUnit);
    const std::vector<scheduler::LimitUse> one{{licence, scheduler::kAmountUnit}};
    const auto tiny =
        dsl.task("tiny", {.count = 300, .priority = 1, .expected = microseconds(300)});
    const auto reads =
        dsl.task("reads", {.count = 300, .limits = one, .expected = milliseconds(1)});
    dsl.one_to_one(tiny, reads);
    dsl.task("slow", {.count = 40, .priority = 2, .expected = milliseconds(40)});
    dsl.task("urgent", {.count = 40, .limits = one, .priority = 3, .expected = milliseconds(2)});
    const Graph graph = dsl.build();
    SimulationOptions options = options_of(seed, 4, 4);
    options.check_every = 29;
    options.workers[1].dies = draw_time(seed, 1, {milliseconds(200).ns});
    options.workers[2].dies = draw_time(seed, 2, {milliseconds(200).ns});
    check_all_done(graph, run(graph, options));
  });
}

}  // namespace sluice::tests
