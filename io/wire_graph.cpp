// The graph in bytes. Only what GraphBuilder was given is written; the flat arrays are built anew,
// so that bytes from a file can be checked with a few comparisons.

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "io/codec_scheduler.h"
#include "io/wire.h"

namespace sluice::io {

namespace {

using scheduler::GateId;
using scheduler::Graph;
using scheduler::GraphBuilder;
using scheduler::GroupId;
using scheduler::InstanceId;
using scheduler::ObjectId;
using scheduler::RequestId;
using scheduler::TaskId;

// Far more than a machine can hold: so that damaged counts do not ask for all memory.
constexpr uint64_t kObjectsMax = uint64_t{1} << 27U;

template <class Id>
void write_ids(Writer& writer, std::span<const Id> ids) {
  writer.unsigned_integer(ids.size());
  for (const Id id : ids) writer.value(id);
}

// Known, each once, sorted, more than nothing of each.
bool limits_are_sound(const scheduler::Request& request, size_t limit_count) {
  const auto& uses = request.limits;
  return std::all_of(
             uses.begin(), uses.end(),
             [&](const auto& use) { return use.amount > 0 && use.limit.index() < limit_count; }) &&
         std::adjacent_find(uses.begin(), uses.end(), [](const auto& a, const auto& b) {
           return !(a.limit < b.limit);
         }) == uses.end();
}

void read_requests(Reader& reader, GraphBuilder& builder) {
  std::vector<scheduler::Request> requests;
  reader.value(requests);
  const size_t limits = builder.so_far().limits().size();
  for (size_t i = 0; i < requests.size() && reader.ok(); ++i) {
    if (!limits_are_sound(requests[i], limits)) {
      reader.fail("a request's use of limits makes no sense");
    }
    if (reader.ok() && builder.request(requests[i]) != RequestId(i)) {
      reader.fail("a request is there twice");
    }
  }
}

void read_tasks(Reader& reader, GraphBuilder& builder) {
  const size_t tasks = reader.count();
  for (size_t i = 0; i < tasks && reader.ok(); ++i) {
    scheduler::TaskSpec spec;
    std::vector<scheduler::Hash128> keys;
    reader.value(spec);
    reader.value(keys);
    if (spec.request.index() >= builder.so_far().requests().size()) {
      reader.fail("a task has a request that is not there");
    }
    const uint64_t objects =
        builder.so_far().object_count() + uint64_t{keys.size()} * spec.outputs.size();
    if (objects > kObjectsMax) reader.fail("there are more than 2^27 objects");
    if (reader.ok()) builder.task(std::move(spec), keys);
  }
}

// Ids below `end`.
template <class Id>
std::vector<Id> read_ids(Reader& reader, size_t end) {
  std::vector<Id> ids;
  reader.value(ids);
  const bool known = std::all_of(ids.begin(), ids.end(), [end](Id id) { return id.index() < end; });
  if (!known) reader.fail("a group or a gate names what is not there");
  return ids;
}

void read_groups(Reader& reader, GraphBuilder& builder) {
  const size_t groups = reader.count();
  for (size_t i = 0; i < groups && reader.ok(); ++i) {
    const auto objects = read_ids<ObjectId>(reader, builder.so_far().object_count());
    const auto consumers = read_ids<InstanceId>(reader, builder.so_far().instance_count());
    if (reader.ok()) builder.group(objects, consumers);
  }
}

void read_gates(Reader& reader, GraphBuilder& builder) {
  const size_t gates = reader.count();
  for (size_t i = 0; i < gates && reader.ok(); ++i) {
    const auto predecessors = read_ids<InstanceId>(reader, builder.so_far().instance_count());
    const auto successors = read_ids<InstanceId>(reader, builder.so_far().instance_count());
    if (reader.ok()) builder.gate(predecessors, successors);
  }
}

}  // namespace

Bytes encode_graph(const Graph& graph) {
  Bytes out;
  Writer writer(out);
  writer.unsigned_integer(graph.limits().size());
  for (const scheduler::Limit& limit : graph.limits()) writer.value(limit);
  writer.unsigned_integer(graph.requests().size());
  for (size_t i = 0; i < graph.requests().size(); ++i) writer.value(graph.requests()[RequestId(i)]);
  writer.unsigned_integer(graph.task_count());
  for (size_t t = 0; t < graph.task_count(); ++t) {
    const scheduler::TaskSpec& spec = graph.task(TaskId(t));
    writer.value(spec);
    writer.unsigned_integer(spec.instance_count);
    for (uint32_t item = 0; item < spec.instance_count; ++item) {
      writer.value(graph.static_key(graph.instance(TaskId(t), item)));
    }
  }
  writer.unsigned_integer(graph.group_count());
  for (size_t g = 0; g < graph.group_count(); ++g) {
    write_ids(writer, graph.group_objects(GroupId(g)));
    write_ids(writer, graph.group_consumers(GroupId(g)));
  }
  writer.unsigned_integer(graph.gate_count());
  for (size_t g = 0; g < graph.gate_count(); ++g) {
    write_ids(writer, graph.gate_predecessors(GateId(g)));
    write_ids(writer, graph.gate_successors(GateId(g)));
  }
  return out;
}

Expected<Graph> decode_graph(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  GraphBuilder builder;
  std::vector<scheduler::Limit> limits;
  reader.value(limits);
  for (scheduler::Limit& limit : limits) builder.limit(std::move(limit.name), limit.total);
  read_requests(reader, builder);
  read_tasks(reader, builder);
  read_groups(reader, builder);
  read_gates(reader, builder);
  const Status whole = reader.finish("a graph");
  if (!whole) return whole.error();
  std::optional<Graph> graph = builder.build_if_acyclic();
  if (!graph) return Error{"a graph has a cycle: it is damaged"};
  return std::move(*graph);
}

}  // namespace sluice::io
