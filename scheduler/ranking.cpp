#include "scheduler/ranking.h"

#include <algorithm>
#include <utility>

namespace sluice::scheduler {

namespace {

Duration expected_duration(const TaskSpec& task) {
  return task.expected.ns > 0 ? task.expected : kExpectedWhenUnknown;
}

// Works from the leaves back. A group or gate is ranked when the last one that waits for it is, an
// instance when the last group that its objects feed and the last gate behind it are.
class UpwardRanking {
 public:
  explicit UpwardRanking(const Graph& graph)
      : graph_(graph),
        ranks_(graph.instance_count()),
        consumers_left_(graph.group_count()),
        successors_left_(graph.gate_count()),
        below_left_(graph.instance_count()) {}

  std::vector<Duration> run() {
    start();
    for (size_t next = 0; next < ready_.size(); ++next) {
      const InstanceId instance = ready_[next];
      Duration& rank = ranks_[instance.index()];
      rank = rank + expected_duration(graph_.task(graph_.task_of(instance)));
      for (const GroupId group : graph_.inputs(instance)) {
        if (--consumers_left_[group.index()] == 0) {
          finish_group(group);
        }
      }
      for (const GateId gate : graph_.gates_before(instance)) {
        if (--successors_left_[gate.index()] == 0) {
          finish_gate(gate);
        }
      }
    }
    return std::move(ranks_);
  }

 private:
  void start() {
    for (size_t i = 0; i < graph_.instance_count(); ++i) {
      below_left_[i] = graph_.gates_behind(InstanceId(i)).size();
      for (const ObjectId object : graph_.objects_of(InstanceId(i))) {
        below_left_[i] += graph_.object_groups(object).size();
      }
      if (below_left_[i] == 0) {
        ready_.emplace_back(i);
      }
    }
    for (size_t g = 0; g < graph_.group_count(); ++g) {
      consumers_left_[g] = graph_.group_consumers(GroupId(g)).size();
      if (consumers_left_[g] == 0) {
        finish_group(GroupId(g));
      }
    }
    for (size_t g = 0; g < graph_.gate_count(); ++g) {
      successors_left_[g] = graph_.gate_successors(GateId(g)).size();
      if (successors_left_[g] == 0) {
        finish_gate(GateId(g));
      }
    }
  }

  void finish_group(GroupId group) {
    const Duration rank = longest(graph_.group_consumers(group));
    for (const ObjectId object : graph_.group_objects(group)) {
      raise(graph_.producer(object), rank);
    }
  }

  void finish_gate(GateId gate) {
    const Duration rank = longest(graph_.gate_successors(gate));
    for (const InstanceId predecessor : graph_.gate_predecessors(gate)) {
      raise(predecessor, rank);
    }
  }

  [[nodiscard]] Duration longest(std::span<const InstanceId> waiting) const {
    Duration rank;
    for (const InstanceId instance : waiting) {
      rank = std::max(rank, ranks_[instance.index()]);
    }
    return rank;
  }

  void raise(InstanceId above, Duration rank) {
    Duration& below = ranks_[above.index()];  // until its own duration is added
    below = std::max(below, rank);
    if (--below_left_[above.index()] == 0) {
      ready_.push_back(above);
    }
  }

  const Graph& graph_;
  std::vector<Duration> ranks_;
  std::vector<size_t> consumers_left_;   // per group
  std::vector<size_t> successors_left_;  // per gate
  std::vector<size_t> below_left_;       // per instance: groups and gates
  std::vector<InstanceId> ready_;
};

}  // namespace

std::vector<Duration> upward_ranks(const Graph& graph) { return UpwardRanking(graph).run(); }

std::vector<InstanceId> start_order(const Graph& graph) {
  const std::vector<Duration> ranks = upward_ranks(graph);
  std::vector<InstanceId> order;
  order.reserve(graph.instance_count());
  for (size_t i = 0; i < graph.instance_count(); ++i) {
    order.emplace_back(i);
  }
  std::sort(order.begin(), order.end(), [&](InstanceId a, InstanceId b) {
    const int32_t priority_a = graph.task(graph.task_of(a)).priority;
    const int32_t priority_b = graph.task(graph.task_of(b)).priority;
    if (priority_a != priority_b) {
      return priority_a > priority_b;
    }
    const Duration rank_a = ranks[a.index()];
    const Duration rank_b = ranks[b.index()];
    return rank_a != rank_b ? rank_a > rank_b : a < b;
  });
  return order;
}

}  // namespace sluice::scheduler
