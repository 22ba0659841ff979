#include "scheduler/graph.h"

#include <doctest/doctest.h>

#include <set>

#include "tests/support/graph_dsl.h"

using namespace sluice::scheduler;
using sluice::tests::GraphDsl;

namespace {
template <class T>
std::vector<uint32_t> values(std::span<const T> ids) {
  std::vector<uint32_t> out;
  for (const T id : ids) {
    out.push_back(id.value);
  }
  return out;
}
}  // namespace

//   mesh ==> solve[3] ==> plot       each solve has 2 outputs
TEST_CASE("graph: ids of instances and objects are dense and found again") {
  GraphDsl dsl;
  const TaskId mesh = dsl.task("mesh");
  const TaskId solve = dsl.task("solve", {.count = 3, .outputs = 2});
  const TaskId plot = dsl.task("plot", {.outputs = 0});
  dsl.broadcast(mesh, solve);
  dsl.gather(solve, plot, 1);
  const Graph graph = dsl.build();

  CHECK(graph.task_count() == 3);
  CHECK(graph.instance_count() == 5);
  CHECK(graph.object_count() == 7);
  CHECK(graph.group_count() == 2);
  CHECK(graph.instance(solve, 2) == InstanceId(3));
  CHECK(graph.task_of(InstanceId(3)) == solve);
  CHECK(graph.item_of(InstanceId(3)) == 2);
  CHECK(graph.object(InstanceId(3), 1) == ObjectId(6));
  CHECK(graph.producer(ObjectId(6)) == InstanceId(3));
  CHECK(graph.output_index(ObjectId(6)) == 1);
  CHECK(graph.output(ObjectId(5)).name == "out0");
  CHECK(graph.objects_of(InstanceId(4)).size() == 0);
  std::vector<uint32_t> objects;
  for (const ObjectId object : graph.objects_of(InstanceId(2))) {
    objects.push_back(object.value);
  }
  CHECK(objects == std::vector<uint32_t>{3, 4});
}

TEST_CASE("graph: edges are seen from all four sides") {
  GraphDsl dsl;
  const TaskId mesh = dsl.task("mesh");
  const TaskId solve = dsl.task("solve", {.count = 3, .outputs = 2});
  const TaskId plot = dsl.task("plot");
  dsl.broadcast(mesh, solve);
  dsl.gather(solve, plot, 1);
  const Graph graph = dsl.build();

  CHECK(values(graph.inputs(InstanceId(0))).empty());
  CHECK(values(graph.inputs(InstanceId(2))) == std::vector<uint32_t>{0});
  CHECK(values(graph.inputs(InstanceId(4))) == std::vector<uint32_t>{1});
  CHECK(values(graph.group_objects(GroupId(1))) == std::vector<uint32_t>{2, 4, 6});
  CHECK(values(graph.group_consumers(GroupId(0))) == std::vector<uint32_t>{1, 2, 3});
  CHECK(values(graph.object_groups(ObjectId(0))) == std::vector<uint32_t>{0});
  CHECK(values(graph.object_groups(ObjectId(1))).empty());
  CHECK(values(graph.object_groups(ObjectId(4))) == std::vector<uint32_t>{1});
}

//   a --+
//       +--> c      c's inputs come in the order in which they were added, b first
//   b --+
TEST_CASE("graph: an instance sees its inputs in declared order") {
  GraphDsl dsl;
  const TaskId a = dsl.task("a");
  const TaskId b = dsl.task("b");
  const TaskId c = dsl.task("c");
  dsl.one_to_one(b, c);
  dsl.one_to_one(a, c);
  const Graph graph = dsl.build();
  const std::span<const GroupId> inputs = graph.inputs(InstanceId(2));
  REQUIRE(inputs.size() == 2);
  CHECK(graph.group_objects(inputs[0])[0] == ObjectId(1));
  CHECK(graph.group_objects(inputs[1])[0] == ObjectId(0));
}

TEST_CASE("graph: a gather over no items has a group without objects") {
  GraphDsl dsl;
  const TaskId none = dsl.task("none", {.count = 0});
  const TaskId sum = dsl.task("sum");
  dsl.gather(none, sum);
  const Graph graph = dsl.build();
  REQUIRE(graph.inputs(InstanceId(0)).size() == 1);
  CHECK(graph.group_objects(GroupId(0)).empty());
}

TEST_CASE("graph: every cause has a name of its own") {
  std::set<std::string> names;
  for (size_t i = 0; i < kCauseCount; ++i) {
    names.insert(cause_name(static_cast<Cause>(i)));
  }
  CHECK(names.size() == kCauseCount);
  CHECK(std::string(cause_name(Cause::kOom)) == "oom");
}
