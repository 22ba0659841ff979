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

// Finishes instances in any order in which producers and predecessors come first. Costs the size of
// the groups and gates.
class Walk {
 public:
  explicit Walk(const Graph& graph)
      : graph_(graph),
        producers_left_(graph.group_count()),
        predecessors_left_(graph.gate_count()),
        awaited_(graph.instance_count()) {}

  // False: some wait for each other.
  bool reaches_all() {
    start();
    for (size_t next = 0; next < order_.size(); ++next) {
      finish(order_[next]);
    }
    return order_.size() == graph_.instance_count();
  }

 private:
  void start() {
    for (size_t i = 0; i < graph_.instance_count(); ++i) {
      const InstanceId id(i);
      awaited_[i] = graph_.inputs(id).size() + graph_.gates_before(id).size();
      if (awaited_[i] == 0) {
        order_.push_back(id);
      }
    }
    for (size_t g = 0; g < graph_.group_count(); ++g) {
      producers_left_[g] = graph_.group_objects(GroupId(g)).size();
      if (producers_left_[g] == 0) {
        came_true(graph_.group_consumers(GroupId(g)));
      }
    }
    for (size_t g = 0; g < graph_.gate_count(); ++g) {
      predecessors_left_[g] = graph_.gate_predecessors(GateId(g)).size();
      if (predecessors_left_[g] == 0) {
        came_true(graph_.gate_successors(GateId(g)));
      }
    }
  }

  void finish(InstanceId instance) {
    for (const ObjectId object : graph_.objects_of(instance)) {
      for (const GroupId group : graph_.object_groups(object)) {
        if (--producers_left_[group.index()] == 0) {
          came_true(graph_.group_consumers(group));
        }
      }
    }
    for (const GateId gate : graph_.gates_behind(instance)) {
      if (--predecessors_left_[gate.index()] == 0) {
        came_true(graph_.gate_successors(gate));
      }
    }
  }

  void came_true(std::span<const InstanceId> waiting) {
    for (const InstanceId instance : waiting) {
      if (--awaited_[instance.index()] == 0) {
        order_.push_back(instance);
      }
    }
  }

  const Graph& graph_;
  std::vector<size_t> producers_left_;     // per group
  std::vector<size_t> predecessors_left_;  // per gate
  std::vector<size_t> awaited_;            // per instance: groups and gates
  std::vector<InstanceId> order_;
};

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

std::span<const GateId> Graph::gates_before(InstanceId id) const {
  return row(gates_before_begin_, gates_before_, id.index());
}
std::span<const GateId> Graph::gates_behind(InstanceId id) const {
  return row(gates_behind_begin_, gates_behind_, id.index());
}
std::span<const InstanceId> Graph::gate_predecessors(GateId id) const {
  return row(gate_predecessors_begin_, gate_predecessors_, id.index());
}
std::span<const InstanceId> Graph::gate_successors(GateId id) const {
  return row(gate_successors_begin_, gate_successors_, id.index());
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

GateId GraphBuilder::gate(std::span<const InstanceId> predecessors,
                          std::span<const InstanceId> successors) {
  const GateId id(graph_.gate_count());
  const auto add = [this](std::span<const InstanceId> from, std::vector<InstanceId>& to,
                          std::vector<uint32_t>& begin) {
    for (const InstanceId instance : from) {
      SLUICE_ASSERT(instance.index() < graph_.instance_count(), instance);
      to.push_back(instance);
    }
    begin.push_back(static_cast<uint32_t>(to.size()));
  };
  add(predecessors, graph_.gate_predecessors_, graph_.gate_predecessors_begin_);
  add(successors, graph_.gate_successors_, graph_.gate_successors_begin_);
  return id;
}

void GraphBuilder::build_gate_rows(Graph& graph) {
  build_rows<GateId>(
      graph.instance_count(),
      [&graph](const auto& emit) {
        for (size_t g = 0; g < graph.gate_count(); ++g) {
          for (const InstanceId successor : graph.gate_successors(GateId(g))) {
            emit(successor.index(), GateId(g));
          }
        }
      },
      graph.gates_before_begin_, graph.gates_before_);
  build_rows<GateId>(
      graph.instance_count(),
      [&graph](const auto& emit) {
        for (size_t g = 0; g < graph.gate_count(); ++g) {
          for (const InstanceId predecessor : graph.gate_predecessors(GateId(g))) {
            emit(predecessor.index(), GateId(g));
          }
        }
      },
      graph.gates_behind_begin_, graph.gates_behind_);
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
  build_gate_rows(graph);
  if (!Walk(graph).reaches_all()) {
    return std::nullopt;
  }
  return graph;
}

}  // namespace sluice::scheduler
