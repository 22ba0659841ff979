// What large graphs cost, in counts: a time would depend on the machine.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "tests/support/graph_dsl.h"
#include "tests/support/honest_world.h"

using namespace sluice::scheduler;
using sluice::tests::GraphDsl;
using sluice::tests::HonestWorld;

namespace {

// count × work, gathered by hundreds; each join's output is a result.
Graph gathered(uint32_t count) {
  constexpr uint32_t kGroup = 100;
  GraphDsl dsl;
  const TaskId work = dsl.task("work", {.count = count});
  const TaskId join = dsl.task("join", {.count = count / kGroup, .result = true});
  for (uint32_t i = 0; i < count / kGroup; ++i) {
    std::vector<ObjectId> objects;
    for (uint32_t item = i * kGroup; item < (i + 1) * kGroup; ++item) {
      objects.push_back(dsl.so_far().object(dsl.so_far().instance(work, item), 0));
    }
    const InstanceId consumer = dsl.so_far().instance(join, i);
    dsl.group(objects, {&consumer, 1});
  }
  return dsl.build();
}

Graph joined(uint32_t producers, uint32_t consumers, OutputKind kind) {
  GraphDsl dsl;
  const TaskId a = dsl.task("a", {.count = producers, .kind = kind});
  const TaskId b = dsl.task("b", {.count = consumers, .outputs = 0});
  dsl.join(a, b);
  return dsl.build();
}

// Everything that the graph keeps of who reads what.
size_t entries(const Graph& graph) {
  size_t sum = 0;
  for (size_t g = 0; g < graph.group_count(); ++g) {
    sum += graph.group_objects(GroupId(g)).size() + graph.group_consumers(GroupId(g)).size();
  }
  for (size_t i = 0; i < graph.instance_count(); ++i) {
    sum += graph.inputs(InstanceId(i)).size();
  }
  for (size_t o = 0; o < graph.object_count(); ++o) {
    sum += graph.object_groups(ObjectId(o)).size();
  }
  return sum;
}

}  // namespace

TEST_CASE(
    "scale: sixteen times the instances cost no more than sixteen times the steps, and a bit") {
  const auto steps_per_unit = [](uint32_t count) {
    const Graph graph = gathered(count);
    const HonestWorld::Cost cost = HonestWorld(graph, 20, 8).run();
    REQUIRE(cost.ended);
    // started, finished, and for a join saved and committed; workers, begin, syncs
    CHECK(cost.events <=
          2 * graph.instance_count() + 2 * (count / 100) + 21 + graph.instance_count() / 100 + 1);
    const auto n = static_cast<double>(graph.instance_count());
    return static_cast<double>(cost.steps) / (n * std::log2(n));
  };
  const double small = steps_per_unit(1000);
  const double large = steps_per_unit(16000);
  INFO("steps / (n log n): ", small, " of 1010, ", large, " of 16160 instances");
  CHECK(large <= 1.05 * small);
}

TEST_CASE("scale: a join of 10 000 and 10 000 has as many entries and events as members") {
  constexpr uint32_t kSide = 10'000;
  const Graph graph = joined(kSide, kSide, OutputKind::kValue);
  CHECK(graph.group_count() == 1);
  CHECK(entries(graph) == 4 * kSide);  // group -> member and member -> group, both sides
  const HonestWorld::Cost cost = HonestWorld(graph, 20, 8).run();
  CHECK(cost.ended);
  CHECK(cost.events <= 2 * 2 * kSide + 21 + 2 * kSide / 100 + 1);
  // a start and an end for each, and at the end idle workers ask for what waits elsewhere
  CHECK(cost.decisions <= 2 * 2 * kSide + 20 * 8);
  CHECK(cost.places == 0);  // values travel with the start, named by nobody
}
