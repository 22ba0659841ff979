#include <doctest/doctest.h>

#include <cstdlib>
#include <random>

#include "io/codec_scheduler.h"
#include "io/wire.h"
#include "tests/support/graph_dsl.h"

namespace sluice::io {
namespace {

using scheduler::Graph;
using scheduler::GroupId;
using scheduler::InstanceId;
using scheduler::TaskId;

uint64_t seed() {
  const char* text = std::getenv("SLUICE_SEED");
  return text == nullptr ? 1337 : std::strtoull(text, nullptr, 10);
}

// mesh --broadcast--> solve x3 --gather--> plot
Graph sample() {
  tests::GraphDsl dsl;
  const auto licence = dsl.limit("licence", 5 * scheduler::kAmountUnit);
  const TaskId mesh = dsl.task("mesh", {.outputs = 2});
  scheduler::RetryPolicy retry;
  retry.max[3] = 2;
  retry.exit_codes = {75, -1};
  const TaskId solve = dsl.task("solve", {.count = 3,
                                          .cpus = 2,
                                          .memory_bytes = 1LL << 33U,
                                          .limits = {{licence, scheduler::kAmountUnit}},
                                          .priority = -4,
                                          .expected = scheduler::seconds(90),
                                          .kind = scheduler::OutputKind::kH5,
                                          .on_failure = scheduler::OnFailure::kIgnore,
                                          .retry = retry});
  const TaskId plot = dsl.task("plot", {.result = true});
  dsl.broadcast(mesh, solve);
  dsl.gather(solve, plot);
  dsl.gate(mesh, plot);
  return dsl.build();
}

}  // namespace

TEST_CASE("wire: a graph comes back with its tasks, requests, keys and groups") {
  const Graph graph = sample();
  const auto back = decode_graph(encode_graph(graph));
  REQUIRE(back.ok());
  CHECK(back->task_count() == 3);
  CHECK(back->instance_count() == 5);
  CHECK(back->object_count() == 6);
  REQUIRE(back->group_count() == graph.group_count());
  REQUIRE(back->gate_count() == 1);
  CHECK(back->gate_predecessors(scheduler::GateId(0))[0] == InstanceId(0));
  CHECK(back->gates_before(InstanceId(4)).size() == 1);
  const scheduler::TaskSpec& solve = back->task(TaskId(1));
  CHECK(solve.name == "solve");
  CHECK(solve.priority == -4);
  CHECK(solve.expected == scheduler::seconds(90));
  CHECK(solve.on_failure == scheduler::OnFailure::kIgnore);
  CHECK(solve.retry.max[3] == 2);
  CHECK(solve.retry.exit_codes == std::vector<int32_t>{75, -1});
  CHECK(solve.first_instance == InstanceId(1));
  CHECK(solve.instance_count == 3);
  CHECK(solve.outputs[0].kind == scheduler::OutputKind::kH5);
  CHECK(back->limits()[0].name == "licence");
  const scheduler::Request& request = back->requests()[solve.request];
  CHECK(request.resources == scheduler::Resources{2, 1LL << 33U});
  CHECK(request.limits[0].amount == scheduler::kAmountUnit);
  for (size_t i = 0; i < 5; ++i) {
    CHECK(back->static_key(InstanceId(i)) == graph.static_key(InstanceId(i)));
    REQUIRE(back->inputs(InstanceId(i)).size() == graph.inputs(InstanceId(i)).size());
    for (size_t k = 0; k < graph.inputs(InstanceId(i)).size(); ++k) {
      CHECK(back->inputs(InstanceId(i))[k] == graph.inputs(InstanceId(i))[k]);
    }
  }
  CHECK(back->group_objects(GroupId(1)).size() == 3);
  CHECK(encode_graph(*back) == encode_graph(graph));
}

TEST_CASE("wire: an empty graph comes back") {
  const auto back = decode_graph(encode_graph(scheduler::GraphBuilder().build()));
  REQUIRE(back.ok());
  CHECK(back->instance_count() == 0);
  CHECK(back->group_count() == 0);
}

TEST_CASE("wire: a graph with a cycle, or that names what is not there, is an error") {
  // limits, requests, then one task of one instance and one output, then its groups, then gates
  Bytes bytes;
  Writer writer(bytes);
  writer.unsigned_integer(0);
  writer.value(std::vector<scheduler::Request>{scheduler::Request{}});
  writer.unsigned_integer(1);
  scheduler::TaskSpec spec;
  spec.outputs = {{"out", scheduler::OutputKind::kFile, false}};
  spec.request = scheduler::RequestId(0);
  writer.value(spec);
  writer.value(std::vector<scheduler::Hash128>{{1, 2}});
  writer.unsigned_integer(1);
  Bytes unknown_object = bytes;
  Bytes unknown_consumer = bytes;
  writer.value(std::vector<scheduler::ObjectId>{scheduler::ObjectId(0)});
  writer.value(std::vector<InstanceId>{InstanceId(0)});  // it reads what it makes
  writer.unsigned_integer(0);                            // gates
  const auto cycle = decode_graph(bytes);
  REQUIRE_FALSE(cycle.ok());
  CHECK(cycle.error().message.find("cycle") != std::string::npos);

  Writer(unknown_object).value(std::vector<scheduler::ObjectId>{scheduler::ObjectId(1)});
  Writer(unknown_object).value(std::vector<InstanceId>{});
  CHECK_FALSE(decode_graph(unknown_object).ok());
  Writer(unknown_consumer).value(std::vector<scheduler::ObjectId>{});
  Writer(unknown_consumer).value(std::vector<InstanceId>{InstanceId{}});
  CHECK_FALSE(decode_graph(unknown_consumer).ok());
}

TEST_CASE("wire: a graph cut at any length or damaged at random is an error, never a crash") {
  MESSAGE("SLUICE_SEED=" << seed());
  const Bytes bytes = encode_graph(sample());
  for (size_t length = 0; length < bytes.size(); ++length) {
    CAPTURE(length);
    CHECK_FALSE(decode_graph(std::span(bytes).first(length)).ok());
  }
  std::mt19937_64 random(seed());
  size_t readable = 0;
  for (int round = 0; round < 5'000; ++round) {
    Bytes damaged = bytes;
    for (uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    }
    const auto graph = decode_graph(damaged);
    if (!graph.ok()) continue;
    ++readable;
    REQUIRE(decode_graph(encode_graph(*graph)).ok());
  }
  CHECK(readable > 100);
}

}  // namespace sluice::io
