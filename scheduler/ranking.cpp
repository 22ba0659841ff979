#include "scheduler/ranking.h"

#include <algorithm>
#include <utility>

namespace sluice::scheduler {

namespace {

Duration expected_duration(const TaskSpec& task) {
  return task.expected.ns > 0 ? task.expected : kExpectedWhenUnknown;
}

// Works from the leaves back. A group is ranked when its last consumer is, an instance when the
// last group that its objects feed is.
class UpwardRanking {
 public:
  explicit UpwardRanking(const Graph& graph)
      : graph_(graph),
        ranks_(graph.instance_count()),
        consumers_left_(graph.group_count()),
        groups_left_(graph.instance_count()) {}

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
    }
    return std::move(ranks_);
  }

 private:
  void start() {
    for (size_t i = 0; i < graph_.instance_count(); ++i) {
      for (const ObjectId object : graph_.objects_of(InstanceId(i))) {
        groups_left_[i] += graph_.object_groups(object).size();
      }
      if (groups_left_[i] == 0) {
        ready_.emplace_back(i);
      }
    }
    for (size_t g = 0; g < graph_.group_count(); ++g) {
      consumers_left_[g] = graph_.group_consumers(GroupId(g)).size();
      if (consumers_left_[g] == 0) {
        finish_group(GroupId(g));
      }
    }
  }

  void finish_group(GroupId group) {
    Duration longest;
    for (const InstanceId consumer : graph_.group_consumers(group)) {
      longest = std::max(longest, ranks_[consumer.index()]);
    }
    for (const ObjectId object : graph_.group_objects(group)) {
      const InstanceId producer = graph_.producer(object);
      Duration& below = ranks_[producer.index()];  // until its own duration is added
      below = std::max(below, longest);
      if (--groups_left_[producer.index()] == 0) {
        ready_.push_back(producer);
      }
    }
  }

  const Graph& graph_;
  std::vector<Duration> ranks_;
  std::vector<size_t> consumers_left_;  // per group
  std::vector<size_t> groups_left_;     // per instance
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
