#include "engine/executor_model.h"

#include <doctest/doctest.h>

#include "tests/support/graph_dsl.h"

namespace sluice::tests {
namespace {

using engine::ExecutorModel;
using engine::ModelledRun;
using engine::ModelOptions;
using scheduler::AttemptId;
using scheduler::Graph;
using scheduler::Hash128;
using scheduler::InstanceId;
using scheduler::OutputReport;

//   a --> b, twice; b with a value beside its file
Graph pair_graph(uint64_t version) {
  GraphDsl dsl;
  const scheduler::TaskId a =
      dsl.task("a", {.count = 2, .expected = scheduler::seconds(10), .version = version});
  const scheduler::TaskId b = dsl.task("b", {.count = 2, .outputs = 2, .result = true});
  dsl.one_to_one(a, b);
  return dsl.build();
}

AttemptId attempt(uint32_t number) { return AttemptId::make(1, number); }

TEST_CASE("executor model: an attempt runs half to three halves of what is expected") {
  const Graph graph = pair_graph(0);
  const ExecutorModel model({});
  const ModelledRun known = model.run(graph, InstanceId(0), attempt(1));
  CHECK(known.runs >= scheduler::seconds(5));
  CHECK(known.runs <= scheduler::seconds(15));
  const ModelledRun unknown = model.run(graph, InstanceId(2), attempt(1));
  CHECK(unknown.runs >= model.options().run_min);
  CHECK(unknown.runs <= model.options().run_max);
  CHECK(unknown.exit_code == 0);
  CHECK(unknown.signal == 0);
}

TEST_CASE("executor model: chances come out about as given, by attempt") {
  const Graph graph = pair_graph(0);
  ModelOptions options;
  options.crash_permille = 250;
  const ExecutorModel model(options);
  int crashed = 0;
  for (uint32_t number = 1; number <= 4000; ++number) {
    const ModelledRun run = model.run(graph, InstanceId(0), attempt(number));
    if (run.exit_code != 0 || run.signal != 0) ++crashed;
    CHECK((run.exit_code == 0 || run.signal == 0));
  }
  CHECK(crashed > 900);
  CHECK(crashed < 1100);
}

TEST_CASE("executor model: a doomed instance fails in every attempt") {
  const Graph graph = pair_graph(0);
  ModelOptions options;
  options.doomed_permille = 1000;
  const ExecutorModel model(options);
  for (uint32_t number = 1; number <= 10; ++number) {
    const ModelledRun run = model.run(graph, InstanceId(1), attempt(number));
    CHECK(run.exit_code + run.signal > 0);
  }
}

TEST_CASE("executor model: contents follow from the key and from all inputs, not from the seed") {
  const Graph graph = pair_graph(0);
  ModelOptions other_seed;
  other_seed.seed = 99;
  const auto contents = expected_contents(graph, ExecutorModel({}));
  CHECK(contents == expected_contents(graph, ExecutorModel(other_seed)));
  for (size_t i = 0; i < contents.size(); ++i) {
    CHECK(contents[i].known());
    for (size_t j = 0; j < i; ++j) CHECK(contents[i] != contents[j]);
  }
  const auto changed = expected_contents(pair_graph(1), ExecutorModel({}));
  for (size_t i = 0; i < contents.size(); ++i) CHECK(contents[i] != changed[i]);
}

TEST_CASE("executor model: the order of inputs counts") {
  const Graph graph = pair_graph(0);
  const ExecutorModel model({});
  const std::vector<Hash128> inputs = {{1, 2}, {3, 4}};
  const std::vector<Hash128> swapped = {{3, 4}, {1, 2}};
  const std::vector<OutputReport> one = model.outputs(graph, InstanceId(2), inputs);
  const std::vector<OutputReport> two = model.outputs(graph, InstanceId(2), swapped);
  REQUIRE(one.size() == 2);
  CHECK(one[0].content != two[0].content);
  CHECK(one[0].content != one[1].content);
}

}  // namespace
}  // namespace sluice::tests
