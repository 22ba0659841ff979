// after: in the spec.
#include <doctest/doctest.h>

#include "tests/support/spec_folder.h"

using namespace sluice;
using scheduler::GateId;
using scheduler::InstanceId;

TEST_CASE("spec: after joins by the foreach keys that both tasks have") {
  test::SpecFolder folder;
  const auto pipeline = folder.read(R"(sluice: 1
tasks:
  prepare: {run: prepare}
  load:
    foreach: {part: [a, b], seed: [1, 2]}
    run: load
  use:
    foreach: {part: [a, b]}
    after: [prepare, load]
    run: use
)");
  CAPTURE(folder.printed);
  REQUIRE(pipeline.has_value());
  const scheduler::Graph& graph = pipeline->graph;
  REQUIRE(graph.gate_count() == 3);
  CHECK(graph.gate_predecessors(GateId(0)).size() == 1);
  CHECK(graph.gate_successors(GateId(0)).size() == 2);
  const InstanceId use_b = pipeline->find("use", "part=b");
  REQUIRE(graph.gates_before(use_b).size() == 2);
  const auto loads = graph.gate_predecessors(graph.gates_before(use_b)[1]);
  REQUIRE(loads.size() == 2);
  CHECK(loads[0] == pipeline->find("load", "part=b,seed=1"));
  CHECK(loads[1] == pipeline->find("load", "part=b,seed=2"));
  CHECK(graph.inputs(use_b).empty());
}

TEST_CASE("spec: after changes no key and consumes no output") {
  test::SpecFolder folder;
  const std::string tasks = R"(sluice: 1
tasks:
  make: {run: "make ${{ out.x }}", outputs: {x: {file: x}}}
  use: {run: use)";
  const auto without = folder.read(tasks + "}\n");
  const auto with = folder.read(tasks + ", after: [make]}\n");
  REQUIRE(without.has_value());
  REQUIRE(with.has_value());
  CHECK(with->graph.static_key(InstanceId(1)) == without->graph.static_key(InstanceId(1)));
  CHECK(with->graph.task(scheduler::TaskId(0)).outputs[0].result);
}
