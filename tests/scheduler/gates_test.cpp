#include "scheduler/gates.h"

#include <doctest/doctest.h>

#include "scheduler/ranking.h"

#include "tests/support/graph_dsl.h"

using namespace sluice::scheduler;
using sluice::tests::GraphDsl;

namespace {

std::vector<uint32_t> told(std::vector<Change>& changes, Change::Kind kind) {
  std::vector<uint32_t> ids;
  for (const Change& change : changes) {
    CHECK(change.kind == kind);
    ids.push_back(change.instance.value);
  }
  changes.clear();
  return ids;
}

}  // namespace

//   a[2] ~~> b[2]
TEST_CASE("gates: a gate opens with its last predecessor, once") {
  GraphDsl dsl;
  const TaskId a = dsl.task("a", {.count = 2});
  const TaskId b = dsl.task("b", {.count = 2});
  dsl.gate(a, b);
  const Graph graph = dsl.build();
  std::vector<Change> changes;
  Gates gates(graph, changes);
  CHECK(gates.open(InstanceId(0)));
  CHECK_FALSE(gates.open(InstanceId(2)));
  gates.pass(InstanceId(1));
  gates.pass(InstanceId(1));  // again for lost bytes
  CHECK_FALSE(gates.open(InstanceId(2)));
  CHECK(changes.empty());
  gates.pass(InstanceId(0));
  CHECK(gates.open(InstanceId(3)));
  CHECK(told(changes, Change::Kind::kAvailable) == std::vector<uint32_t>{2, 3});
  gates.bar(InstanceId(0));  // it failed later: it had been done
  CHECK(changes.empty());
  CHECK_FALSE(gates.barrier(InstanceId(2)).valid());
  gates.check_invariants();
}

TEST_CASE("gates: a barred gate names the predecessor that will never come") {
  GraphDsl dsl;
  const TaskId a = dsl.task("a", {.count = 2});
  const TaskId b = dsl.task("b");
  dsl.gate(a, b);
  const Graph graph = dsl.build();
  std::vector<Change> changes;
  Gates gates(graph, changes);
  gates.bar(InstanceId(1));
  CHECK(told(changes, Change::Kind::kHopeless) == std::vector<uint32_t>{2});
  CHECK(gates.barrier(InstanceId(2)) == InstanceId(1));
  gates.bar(InstanceId(0));
  CHECK(changes.empty());  // told once
  gates.check_invariants();
}

TEST_CASE("gates: a gate behind no instances is open") {
  GraphDsl dsl;
  const TaskId none = dsl.task("none", {.count = 0});
  const TaskId b = dsl.task("b");
  dsl.gate(none, b);
  const Graph graph = dsl.build();
  std::vector<Change> changes;
  const Gates gates(graph, changes);
  CHECK(gates.open(InstanceId(0)));
}

//   a ~~> b ~~> c(2s)    data and order count alike for the upward rank
TEST_CASE("ranking: what comes after counts as distance to the end") {
  GraphDsl dsl;
  const TaskId a = dsl.task("a", {.outputs = 0});
  const TaskId b = dsl.task("b");
  const TaskId c = dsl.task("c", {.expected = seconds(2)});
  dsl.gate(a, b);
  dsl.one_to_one(b, c);
  CHECK(upward_ranks(dsl.build()) == std::vector<Duration>{seconds(4), seconds(3), seconds(2)});
}

TEST_CASE("graph: order in a circle is a cycle") {
  GraphBuilder builder;
  TaskSpec spec;
  spec.request = builder.request({});
  const Hash128 key{1, 1};
  const TaskId a = builder.task(spec, {&key, 1});
  const TaskId b = builder.task(spec, {&key, 1});
  const InstanceId first = builder.so_far().instance(a, 0);
  const InstanceId second = builder.so_far().instance(b, 0);
  builder.gate({&first, 1}, {&second, 1});
  builder.gate({&second, 1}, {&first, 1});
  CHECK_FALSE(builder.build_if_acyclic().has_value());
}
