// The pipeline as the scheduler sees it: immutable tasks, instances, objects and groups in flat
// arrays indexed by id.
//
//   task  --has-->  instances (contiguous ids)  --each has-->  objects (contiguous ids, one per
//   output) object --feeds--> groups --feed--> instances
//
// A *group* is (producer task, shared key values): the objects that a set of consumers sees through
// one input. A join of A producers and B consumers costs |A| + |B| through its group's counter, not
// |A| × |B|. A *gate* is order without data: its successors start when its predecessors have been
// done, whatever these made (scheduler/gates.h). Commands, files and texts are not here: they are
// io's (io/pipeline.h), parallel arrays by the same ids. Built once by GraphBuilder, then shared
// read-only by any thread. Test: tests/scheduler/graph_test.cpp
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scheduler/resources.h"
#include "scheduler/types.h"

namespace sluice::scheduler {

// kDir: a directory, to the core an object like a file.
enum class OutputKind : uint8_t { kFile, kH5, kValue, kDir };

// Why an attempt did not succeed. `kLost`: its worker went; not charged to the instance until three
// were lost.
enum class Cause : uint8_t {
  kExit,
  kSignal,
  kTimeout,
  kOom,
  kLost,
  kOutput,
  kSetup,
  kStart,
  kStaging,
  kDisk
};
constexpr size_t kCauseCount = 10;
[[nodiscard]] const char* cause_name(Cause cause);  // "exit", "signal", ...

struct OutputSpec {
  std::string name;
  OutputKind kind = OutputKind::kFile;
  bool result = false;  // leaf or `keep: true`: published into results/; values are always durable
                        // (in the journal)
};

// How the next attempt differs from the one that ended by a cause. Factors in thousandths: 1500
// asks for half as much again; 0 and 1000 change nothing.
struct RetryChange {
  Duration delay = {};  // to wait before it
  uint32_t memory_factor = 0;
  uint32_t timeout_factor = 0;
  auto operator<=>(const RetryChange&) const = default;
};
constexpr uint32_t kFactorUnit = 1000;

// How many more attempts a cause allows; 0: none. kLost is not here: see kLostAttemptsMax in
// core.h.
struct RetryPolicy {
  std::array<uint8_t, kCauseCount> max{};
  std::array<RetryChange, kCauseCount> change{};
  std::vector<int32_t> exit_codes;  // kExit: only these codes are tried again; empty: all
};

enum class OnFailure : uint8_t { kStop, kContinue, kIgnore };

struct TaskSpec {
  std::string name;
  RequestId request;
  int32_t priority = 0;  // higher first
  OnFailure on_failure = OnFailure::kContinue;
  RetryPolicy retry;
  Duration timeout;              // 0: none
  Duration grace = seconds(10);  // between the stop signal and SIGKILL
  Duration expected;             // typical duration of an attempt, 0: unknown (taken as 1 s)
  std::vector<OutputSpec> outputs;
  InstanceId first_instance;
  uint32_t instance_count = 0;
  ObjectId first_object;
};

// A run of consecutive ids, for range-for.
template <class IdType>
struct Ids {
  uint32_t first = 0;
  uint32_t last = 0;  // one past the end
  struct Iterator {
    uint32_t at;
    IdType operator*() const { return IdType(at); }
    Iterator& operator++() {
      ++at;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return at != other.at; }
  };
  [[nodiscard]] Iterator begin() const { return {first}; }
  [[nodiscard]] Iterator end() const { return {last}; }
  [[nodiscard]] size_t size() const { return last - first; }
};

class Graph {
 public:
  [[nodiscard]] size_t task_count() const { return tasks_.size(); }
  [[nodiscard]] size_t instance_count() const { return instance_task_.size(); }
  [[nodiscard]] size_t object_count() const { return object_instance_.size(); }
  [[nodiscard]] size_t group_count() const { return group_objects_begin_.size() - 1; }
  [[nodiscard]] size_t gate_count() const { return gate_predecessors_begin_.size() - 1; }
  [[nodiscard]] const TaskSpec& task(TaskId id) const { return tasks_[id.index()]; }
  [[nodiscard]] std::span<const TaskSpec> tasks() const { return tasks_; }
  [[nodiscard]] const RequestTable& requests() const { return requests_; }
  [[nodiscard]] std::span<const Limit> limits() const { return limits_; }

  [[nodiscard]] TaskId task_of(InstanceId id) const { return instance_task_[id.index()]; }
  [[nodiscard]] uint32_t item_of(InstanceId id) const {
    return id.value - task(task_of(id)).first_instance.value;
  }
  [[nodiscard]] Hash128 static_key(InstanceId id) const { return static_keys_[id.index()]; }
  [[nodiscard]] InstanceId instance(TaskId id, uint32_t item) const {
    return InstanceId(task(id).first_instance.value + item);
  }
  [[nodiscard]] InstanceId producer(ObjectId id) const { return object_instance_[id.index()]; }
  [[nodiscard]] ObjectId object(InstanceId id, size_t output) const;
  [[nodiscard]] Ids<ObjectId> objects_of(InstanceId id) const;  // one per output, in order
  [[nodiscard]] const OutputSpec& output(ObjectId id) const;
  [[nodiscard]] size_t output_index(ObjectId id) const;

  // Groups an instance reads, in the order of its task's inputs.
  [[nodiscard]] std::span<const GroupId> inputs(InstanceId id) const;
  [[nodiscard]] std::span<const ObjectId> group_objects(GroupId id) const;
  [[nodiscard]] std::span<const InstanceId> group_consumers(GroupId id) const;
  [[nodiscard]] std::span<const GroupId> object_groups(ObjectId id) const;

  // Gates an instance waits at, and gates that wait for it.
  [[nodiscard]] std::span<const GateId> gates_before(InstanceId id) const;
  [[nodiscard]] std::span<const GateId> gates_behind(InstanceId id) const;
  [[nodiscard]] std::span<const InstanceId> gate_predecessors(GateId id) const;
  [[nodiscard]] std::span<const InstanceId> gate_successors(GateId id) const;

 private:
  friend class GraphBuilder;
  template <class Value>
  static std::span<const Value> row(const std::vector<uint32_t>& begin,
                                    const std::vector<Value>& values, size_t index) {
    return std::span<const Value>(values).subspan(begin[index], begin[index + 1] - begin[index]);
  }

  std::vector<TaskSpec> tasks_;
  RequestTable requests_;
  std::vector<Limit> limits_;
  std::vector<TaskId> instance_task_;
  std::vector<Hash128> static_keys_;
  std::vector<InstanceId> object_instance_;
  // CSR: x_begin_[i] .. x_begin_[i + 1] is i's range in x_
  std::vector<uint32_t> inputs_begin_{0};
  std::vector<GroupId> inputs_;
  std::vector<uint32_t> group_objects_begin_{0};
  std::vector<ObjectId> group_objects_;
  std::vector<uint32_t> group_consumers_begin_{0};
  std::vector<InstanceId> group_consumers_;
  std::vector<uint32_t> object_groups_begin_{0};
  std::vector<GroupId> object_groups_;
  std::vector<uint32_t> gate_predecessors_begin_{0};
  std::vector<InstanceId> gate_predecessors_;
  std::vector<uint32_t> gate_successors_begin_{0};
  std::vector<InstanceId> gate_successors_;
  std::vector<uint32_t> gates_before_begin_{0};
  std::vector<GateId> gates_before_;
  std::vector<uint32_t> gates_behind_begin_{0};
  std::vector<GateId> gates_behind_;
};

// Add tasks first (producers may come in any order), then groups, then build(). Consumers see their
// groups in the order in which the groups were added, so add a task's inputs in their declared
// order. build() asserts that there is no cycle: the spec reader has reported it to the user
// before.
class GraphBuilder {
 public:
  RequestId request(const Request& request) { return graph_.requests_.intern(request); }
  LimitId limit(std::string name, Amount total);
  // `keys`: one static key per item (an instance each). Fills first_instance, instance_count,
  // first_object.
  TaskId task(TaskSpec spec, std::span<const Hash128> keys);
  GroupId group(std::span<const ObjectId> objects, std::span<const InstanceId> consumers);
  GateId gate(std::span<const InstanceId> predecessors, std::span<const InstanceId> successors);
  [[nodiscard]] const Graph& so_far() const { return graph_; }
  [[nodiscard]] Graph build();
  // For graphs that come from a file (a trace): nothing if there is a cycle.
  [[nodiscard]] std::optional<Graph> build_if_acyclic();

 private:
  static void build_gate_rows(Graph& graph);
  Graph graph_;
};

}  // namespace sluice::scheduler
