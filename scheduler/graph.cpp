#include "scheduler/graph.h"

#include <utility>

#include "scheduler/check.h"

namespace sluice::scheduler {

namespace {

// Turns (row, value) pairs, given once in order by `visit(emit)`, into begin offsets and values,
// keeping the order within a row.
template <class Value, class Visit>
void build_rows(size_t row_count, const Visit& visit, std::vector<uint32_t>& begin,
                std::vector<Value>& values) {
  begin.assign(row_count + 1, 0);
  visit([&](size_t row, Value) { ++begin[row + 1]; });
  for (size_t row = 0; row < row_count; ++row) {
    begin[row + 1] += begin[row];
  }
  values.assign(begin[row_count], Value());
  std::vector<uint32_t> next(begin.begin(), begin.end() - 1);
  visit([&](size_t row, Value value) { values[next[row]++] = value; });
}

// Every instance can be reached by finishing its producers first. Costs the size of the groups.
bool acyclic(const Graph& graph) {
  std::vector<size_t> producers_left(graph.group_count());
  std::vector<size_t> groups_left(graph.instance_count());
  std::vector<InstanceId> order;
  order.reserve(graph.instance_count());
  const auto group_finished = [&](GroupId group) {
    for (const InstanceId consumer : graph.group_consumers(group)) {
      if (--groups_left[consumer.index()] == 0) {
        order.push_back(consumer);
      }
    }
  };
  for (size_t i = 0; i < graph.instance_count(); ++i) {
    groups_left[i] = graph.inputs(InstanceId(i)).size();
    if (groups_left[i] == 0) {
      order.emplace_back(i);
    }
  }
  for (size_t g = 0; g < graph.group_count(); ++g) {
    producers_left[g] = graph.group_objects(GroupId(g)).size();
    if (producers_left[g] == 0) {
      group_finished(GroupId(g));
    }
  }
  for (size_t next = 0; next < order.size(); ++next) {
    const InstanceId instance = order[next];
    for (const ObjectId object : graph.objects_of(instance)) {
      for (const GroupId group : graph.object_groups(object)) {
        if (--producers_left[group.index()] == 0) {
          group_finished(group);
        }
      }
    }
  }
  return order.size() == graph.instance_count();
}

}  // namespace

const char* cause_name(Cause cause) {
  switch (cause) {
    case Cause::kExit:
      return "exit";
    case Cause::kSignal:
      return "signal";
    case Cause::kTimeout:
      return "timeout";
    case Cause::kOom:
      return "oom";
    case Cause::kLost:
      return "lost";
    case Cause::kOutput:
      return "output";
    case Cause::kSetup:
      return "setup";
    case Cause::kStart:
      return "start";
    case Cause::kStaging:
      return "staging";
    case Cause::kDisk:
      return "disk";
  }
  SLUICE_ASSERT(false, cause);
}

ObjectId Graph::object(InstanceId id, size_t output) const {
  const TaskSpec& spec = task(task_of(id));
  SLUICE_ASSERT(output < spec.outputs.size(), output, spec.outputs.size());
  return ObjectId(spec.first_object.index() + item_of(id) * spec.outputs.size() + output);
}

Ids<ObjectId> Graph::objects_of(InstanceId id) const {
  const TaskSpec& spec = task(task_of(id));
  const size_t count = spec.outputs.size();
  const size_t first = spec.first_object.index() + item_of(id) * count;
  return {static_cast<uint32_t>(first), static_cast<uint32_t>(first + count)};
}

const OutputSpec& Graph::output(ObjectId id) const {
  return task(task_of(producer(id))).outputs[output_index(id)];
}

size_t Graph::output_index(ObjectId id) const {
  const TaskSpec& spec = task(task_of(producer(id)));
  return (id.index() - spec.first_object.index()) % spec.outputs.size();
}

std::span<const GroupId> Graph::inputs(InstanceId id) const {
  return row(inputs_begin_, inputs_, id.index());
}
std::span<const ObjectId> Graph::group_objects(GroupId id) const {
  return row(group_objects_begin_, group_objects_, id.index());
}
std::span<const InstanceId> Graph::group_consumers(GroupId id) const {
  return row(group_consumers_begin_, group_consumers_, id.index());
}
std::span<const GroupId> Graph::object_groups(ObjectId id) const {
  return row(object_groups_begin_, object_groups_, id.index());
}

LimitId GraphBuilder::limit(std::string name, Amount total) {
  const LimitId id(graph_.limits_.size());
  graph_.limits_.push_back({std::move(name), total});
  return id;
}

TaskId GraphBuilder::task(TaskSpec spec, std::span<const Hash128> keys) {
  SLUICE_ASSERT(spec.request.index() < graph_.requests_.size(), spec.request);
  const TaskId id(graph_.tasks_.size());
  spec.first_instance = InstanceId(graph_.instance_count());
  spec.instance_count = static_cast<uint32_t>(keys.size());
  spec.first_object = ObjectId(graph_.object_count());
  for (const Hash128& key : keys) {
    const InstanceId instance(graph_.instance_count());
    graph_.instance_task_.push_back(id);
    graph_.static_keys_.push_back(key);
    graph_.object_instance_.insert(graph_.object_instance_.end(), spec.outputs.size(), instance);
  }
  graph_.tasks_.push_back(std::move(spec));
  return id;
}

GroupId GraphBuilder::group(std::span<const ObjectId> objects,
                            std::span<const InstanceId> consumers) {
  const GroupId id(graph_.group_count());
  for (const ObjectId object : objects) {
    SLUICE_ASSERT(object.index() < graph_.object_count(), object);
    graph_.group_objects_.push_back(object);
  }
  for (const InstanceId consumer : consumers) {
    SLUICE_ASSERT(consumer.index() < graph_.instance_count(), consumer);
    graph_.group_consumers_.push_back(consumer);
  }
  graph_.group_objects_begin_.push_back(static_cast<uint32_t>(graph_.group_objects_.size()));
  graph_.group_consumers_begin_.push_back(static_cast<uint32_t>(graph_.group_consumers_.size()));
  return id;
}

Graph GraphBuilder::build() {
  std::optional<Graph> graph = build_if_acyclic();
  SLUICE_ASSERT(graph.has_value());
  return std::move(*graph);
}

std::optional<Graph> GraphBuilder::build_if_acyclic() {
  Graph graph = std::move(graph_);
  graph_ = Graph();
  build_rows<GroupId>(
      graph.instance_count(),
      [&graph](const auto& emit) {
        for (size_t g = 0; g < graph.group_count(); ++g) {
          for (const InstanceId consumer : graph.group_consumers(GroupId(g))) {
            emit(consumer.index(), GroupId(g));
          }
        }
      },
      graph.inputs_begin_, graph.inputs_);
  build_rows<GroupId>(
      graph.object_count(),
      [&graph](const auto& emit) {
        for (size_t g = 0; g < graph.group_count(); ++g) {
          for (const ObjectId object : graph.group_objects(GroupId(g))) {
            emit(object.index(), GroupId(g));
          }
        }
      },
      graph.object_groups_begin_, graph.object_groups_);
  if (!acyclic(graph)) {
    return std::nullopt;
  }
  return graph;
}

}  // namespace sluice::scheduler
