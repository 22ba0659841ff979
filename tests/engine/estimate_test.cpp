#include "engine/estimate.h"

#include <doctest/doctest.h>

#include "tests/support/graph_dsl.h"
#include "tests/support/spec_folder.h"

using namespace sluice;
using engine::Estimate;
using engine::LearnedDuration;
using engine::MachineShape;
using scheduler::Duration;
using scheduler::Graph;
using scheduler::seconds;
using tests::GraphDsl;

namespace {

// Within one per cent and the engine's own part: the simulator starts and checks attempts too.
bool about(Duration found, Duration expected) {
  const int64_t difference = found.ns > expected.ns ? found.ns - expected.ns : 0;
  return found.ns >= expected.ns && difference <= expected.ns / 100 + 100'000'000;
}

std::vector<LearnedDuration> nothing_learned(const Graph& graph) {
  return std::vector<LearnedDuration>(graph.task_count());
}

}  // namespace

TEST_CASE("estimate: independent instances take as many rounds as the cores need") {
  GraphDsl dsl;
  dsl.task("work", {.count = 7, .result = true});
  const Graph graph = dsl.build();
  const Estimate on_two = engine::estimate(graph, {1, {2, 0}});
  REQUIRE_MESSAGE(on_two.simulated, on_two.why_not);
  CHECK(about(on_two.makespan, seconds(4)));  // 7 of 1 s each on 2 cores
  CHECK(on_two.critical_path == seconds(1));
  CHECK(on_two.work_bound == scheduler::milliseconds(3500));
  CHECK(on_two.bound() == scheduler::milliseconds(3500));
  const Estimate on_many = engine::estimate(graph, {4, {2, 0}});
  CHECK(about(on_many.makespan, seconds(1)));
}

// a(2 s) -> b(3 s), 2 cpus each
TEST_CASE("estimate: a chain takes its length, whatever the cores") {
  GraphDsl dsl;
  const auto a = dsl.task("a", {.cpus = 2, .expected = seconds(2)});
  const auto b = dsl.task("b", {.cpus = 2, .expected = seconds(3), .result = true});
  dsl.broadcast(a, b);
  const Graph graph = dsl.build();
  const Estimate result = engine::estimate(graph, {3, {8, 0}});
  CHECK(about(result.makespan, seconds(5)));
  CHECK(result.critical_path == seconds(5));
  CHECK(result.bound() == seconds(5));
}

TEST_CASE("estimate: a run of weeks is simulated on a faster clock and tells the same") {
  GraphDsl dsl;
  dsl.task("work", {.count = 6, .expected = seconds(40 * 86'400), .result = true});
  const Graph graph = dsl.build();
  const Estimate result = engine::estimate(graph, {2, {2, 0}});
  REQUIRE_MESSAGE(result.simulated, result.why_not);
  CHECK(result.makespan.ns >= seconds(80 * 86'400).ns);
  CHECK(result.makespan.ns < seconds(81 * 86'400).ns);
}

TEST_CASE("estimate: what fits nowhere is said, and the bound is there all the same") {
  GraphDsl dsl;
  dsl.task("wide", {.count = 2, .cpus = 64, .result = true});
  const Estimate result = engine::estimate(dsl.build(), {1, {2, 0}});
  CHECK(!result.simulated);
  CHECK(result.why_not == "task 'wide' does not fit on these workers");
  CHECK(result.critical_path == seconds(1));
  CHECK(result.work_bound == seconds(64));
}

TEST_CASE("estimate: memory counts where it is known, limits always") {
  GraphDsl dsl;
  const auto licence = dsl.limit("licence", scheduler::kAmountUnit);
  dsl.task("work", {.count = 3,
                    .memory_bytes = 60,
                    .limits = {{licence, scheduler::kAmountUnit}},
                    .result = true});
  const Graph graph = dsl.build();
  CHECK(engine::estimate(graph, {1, {8, 50}}).why_not ==
        "task 'work' does not fit on these workers");
  const Estimate one_by_one = engine::estimate(graph, {1, {8, 0}});
  CHECK(one_by_one.work_bound == seconds(3));
  CHECK(about(one_by_one.makespan, seconds(3)));
}

// mesh -> solve x 3 -> sum, of which solve 1 and sum are left
TEST_CASE("estimate: a part of a graph takes what is not in it as being there") {
  GraphDsl dsl;
  const auto mesh = dsl.task("mesh");
  const auto solve = dsl.task("solve", {.count = 3});
  const auto sum = dsl.task("sum", {.result = true});
  dsl.broadcast(mesh, solve);
  dsl.gather(solve, sum);
  const Graph graph = dsl.build();
  const std::vector<bool> chosen = {false, false, true, false, true};
  std::vector<LearnedDuration> learned = nothing_learned(graph);
  learned[1] = {seconds(7), 2};
  const Graph part = engine::part_of(graph, chosen, learned);
  CHECK(part.task_count() == 2);
  CHECK(part.instance_count() == 2);
  CHECK(part.group_count() == 1);
  CHECK(part.task(scheduler::TaskId(0)).name == "solve");
  CHECK(engine::estimate(part, {1, {4, 0}}).critical_path == seconds(8));
}

TEST_CASE("estimate: the median of a task's successes is what it is expected to take") {
  test::SpecFolder folder;
  const auto pipeline = folder.read(R"(sluice: 1
tasks:
  known:
    foreach: {n: [1, 2, 3]}
    run: work ${{ item.n }}
  unknown:
    run: work
)");
  REQUIRE_MESSAGE(pipeline, folder.printed);
  io::JournalState journal;
  int64_t wall = 5;
  for (const char* item : {"n=1", "n=2", "n=3"}) {
    io::record::DoneRecord done;
    done.usage.wall = seconds(wall);
    wall += wall;
    journal.instances[{"known", item}].done = done;
  }
  const auto learned = engine::learn_durations(*pipeline, journal);
  CHECK(learned[0].samples == 3);
  CHECK(learned[0].median == seconds(10));
  CHECK(learned[1].samples == 0);
}
