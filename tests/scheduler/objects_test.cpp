#include "scheduler/objects.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/graph_dsl.h"

using namespace sluice::scheduler;
using sluice::tests::GraphDsl;
using Kind = Change::Kind;

namespace {

//   a[2] ==> b[2]    objects 0 and 1, instances 0 to 3, one group
struct Join {
  explicit Join(bool result = false, OutputKind kind = OutputKind::kFile) {
    GraphDsl dsl;
    const TaskId a = dsl.task("a", {.count = 2, .kind = kind, .result = result});
    const TaskId b = dsl.task("b", {.count = 2, .outputs = 0});
    dsl.join(a, b);
    graph = dsl.build();
  }
  // How often a change of this kind was noted since the last call.
  size_t count(Kind kind) {
    return static_cast<size_t>(std::count_if(changes.begin(), changes.end(),
                                             [kind](const Change& c) { return c.kind == kind; }));
  }
  Graph graph;
  std::vector<Change> changes;
};

constexpr Hash128 kContent{4, 2};

}  // namespace

TEST_CASE("objects: consumers are told once, when the last content is known") {
  Join join;
  Objects objects(join.graph, join.changes);
  objects.learn(ObjectId(0), kContent, 10);
  CHECK(join.count(Kind::kResolved) == 0);
  CHECK_FALSE(objects.inputs_known(InstanceId(2)));
  objects.learn(ObjectId(1), kContent, 10);
  CHECK(join.count(Kind::kResolved) == 2);
  CHECK(objects.inputs_known(InstanceId(2)));
  CHECK_FALSE(objects.inputs_available(InstanceId(2)));
}

TEST_CASE("objects: bytes are available with a replica or a durable file, values once known") {
  Join files;
  Objects objects(files.graph, files.changes);
  objects.learn(ObjectId(0), kContent, 10);
  objects.learn(ObjectId(1), kContent, 10);
  CHECK(objects.add_replica(ObjectId(0), WorkerId(3)));
  CHECK_FALSE(objects.add_replica(ObjectId(0), WorkerId(3)));
  objects.set_durable(ObjectId(1), Destination::kObjects);
  CHECK(files.count(Kind::kAvailable) == 2);
  CHECK(objects.remove_replica(ObjectId(0), WorkerId(3)));
  CHECK_FALSE(objects.remove_replica(ObjectId(0), WorkerId(3)));
  CHECK(files.count(Kind::kAbsent) == 2);

  Join values(false, OutputKind::kValue);
  Objects known(values.graph, values.changes);
  known.learn(ObjectId(0), kContent, 10);
  known.learn(ObjectId(1), kContent, 10);
  CHECK(known.inputs_available(InstanceId(3)));
  CHECK(known.durable(ObjectId(0)));
}

TEST_CASE("objects: an absent object is wanted when someone demands it, not before") {
  Join join;
  Objects objects(join.graph, join.changes);
  for (const ObjectId object : {ObjectId(0), ObjectId(1)}) {
    objects.learn(object, kContent, 10);
    objects.add_replica(object, WorkerId(0));
  }
  objects.remove_replica(ObjectId(0), WorkerId(0));
  CHECK(join.count(Kind::kWanted) == 0);
  objects.demand_inputs(InstanceId(2));
  CHECK(join.count(Kind::kWanted) == 1);
  objects.demand_inputs(InstanceId(3));
  CHECK(join.count(Kind::kWanted) == 1);  // the group had been asked
  objects.remove_replica(ObjectId(1), WorkerId(0));
  CHECK(join.count(Kind::kWanted) == 2);
  objects.release_inputs(InstanceId(2));
  CHECK(join.count(Kind::kUnwanted) == 0);
  objects.release_inputs(InstanceId(3));
  CHECK(join.count(Kind::kUnwanted) == 2);
}

TEST_CASE("objects: a result is pending from its content to its durability") {
  Join join(true);
  Objects objects(join.graph, join.changes);
  CHECK(objects.pending_count() == 0);
  objects.add_replica(ObjectId(0), WorkerId(0));
  objects.learn(ObjectId(0), kContent, 10);
  CHECK(objects.pending_count() == 1);
  objects.remove_replica(ObjectId(0), WorkerId(0));
  CHECK(join.count(Kind::kWanted) == 1);
  objects.set_durable(ObjectId(0), Destination::kResults);
  CHECK(objects.pending_count() == 0);
  CHECK_FALSE(objects.in_objects_folder(ObjectId(0)));
}

TEST_CASE("objects: without consumers that may still need it an object is idle") {
  Join join;
  Objects objects(join.graph, join.changes);
  objects.learn(ObjectId(0), kContent, 10);
  objects.close_inputs(InstanceId(2));
  CHECK(objects.open(ObjectId(0)));
  objects.close_inputs(InstanceId(3));
  CHECK_FALSE(objects.open(ObjectId(0)));
  CHECK(join.count(Kind::kIdle) == 2);
  objects.reopen_inputs(InstanceId(2));
  CHECK(objects.exposed(ObjectId(0)));
}

TEST_CASE("objects: bytes that will never come make consumers hopeless, unknown ones for good") {
  Join join;
  Objects objects(join.graph, join.changes);
  objects.add_replica(ObjectId(0), WorkerId(0));
  objects.learn(ObjectId(0), kContent, 10);
  objects.abandon(ObjectId(0));
  CHECK_FALSE(objects.hopeless_group(InstanceId(2), false).valid());  // a replica is left
  objects.forget_worker(WorkerId(0));
  CHECK(objects.hopeless_group(InstanceId(2), false) == GroupId(0));
  CHECK(objects.hopeless_producer(GroupId(0)) == InstanceId(0));
  CHECK_FALSE(objects.hopeless_group(InstanceId(2), true).valid());
  objects.abandon(ObjectId(1));
  CHECK(objects.hopeless_group(InstanceId(2), true).valid());
}

TEST_CASE("objects: changes of a wide join grow with its members, not with its pairs") {
  GraphDsl dsl;
  const TaskId a = dsl.task("a", {.count = 1000});
  const TaskId b = dsl.task("b", {.count = 1000, .outputs = 0});
  dsl.join(a, b);
  const Graph graph = dsl.build();
  std::vector<Change> changes;
  Objects objects(graph, changes);
  for (uint32_t o = 0; o < 1000; ++o) {
    objects.add_replica(ObjectId(o), WorkerId(0));
    objects.learn(ObjectId(o), kContent, 10);
  }
  for (uint32_t i = 1000; i < 2000; ++i) {
    objects.demand_inputs(InstanceId(i));
  }
  objects.forget_worker(WorkerId(0));
  for (uint32_t i = 1000; i < 2000; ++i) {
    objects.release_inputs(InstanceId(i));
    objects.close_inputs(InstanceId(i));
  }
  CHECK(changes.size() <= 10 * 2000);
}
