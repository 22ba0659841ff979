// Small graphs in a few lines:
//
//   GraphDsl dsl;
//   const TaskId mesh = dsl.task("mesh");
//   const TaskId solve = dsl.task("solve", {.count = 3, .cpus = 2});
//   const TaskId plot = dsl.task("plot", {.result = true});
//   dsl.broadcast(mesh, solve);   // one group: every solve reads the one mesh
//   dsl.gather(solve, plot);      // one group: plot reads every solve
//   const Graph graph = dsl.build();
//
// For tests only; one thread.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/graph.h"

namespace sluice::tests {

struct DslTask {
  uint32_t count = 1;  // instances
  int32_t cpus = 1;
  int64_t memory_bytes = 0;
  std::vector<scheduler::LimitUse> limits = {};
  int32_t priority = 0;
  scheduler::Duration expected = {};
  scheduler::Duration timeout = {};
  size_t outputs = 1;
  scheduler::OutputKind kind = scheduler::OutputKind::kFile;
  bool result = false;  // of every output
  scheduler::OnFailure on_failure = scheduler::OnFailure::kContinue;
  scheduler::RetryPolicy retry = {};
  uint64_t version = 0;  // changes every static key of the task
};

// What io makes by hashing the command, here from the name.
inline scheduler::Hash128 dsl_key(const std::string& name, uint32_t item, uint64_t version) {
  scheduler::Hash128 key{1, 1};
  for (const char c : name) {
    key = combine(key, {static_cast<unsigned char>(c), 1});
  }
  return combine(key, {item + 1, version});
}

class GraphDsl {
 public:
  scheduler::LimitId limit(const std::string& name, scheduler::Amount total) {
    return builder_.limit(name, total);
  }

  scheduler::TaskId task(const std::string& name, const DslTask& options = {}) {
    scheduler::TaskSpec spec;
    spec.name = name;
    spec.request = builder_.request({{options.cpus, options.memory_bytes}, options.limits});
    spec.priority = options.priority;
    spec.on_failure = options.on_failure;
    spec.retry = options.retry;
    spec.expected = options.expected;
    spec.timeout = options.timeout;
    for (size_t i = 0; i < options.outputs; ++i) {
      spec.outputs.push_back({"out" + std::to_string(i), options.kind, options.result});
    }
    std::vector<scheduler::Hash128> keys;
    for (uint32_t item = 0; item < options.count; ++item) {
      keys.push_back(dsl_key(name, item, options.version));
    }
    return builder_.task(std::move(spec), keys);
  }

  // Consumer i reads producer i: one group per pair.
  void one_to_one(scheduler::TaskId from, scheduler::TaskId to, size_t output = 0) {
    for (uint32_t i = 0; i < builder_.so_far().task(from).instance_count; ++i) {
      const scheduler::ObjectId object =
          builder_.so_far().object(builder_.so_far().instance(from, i), output);
      const scheduler::InstanceId consumer = builder_.so_far().instance(to, i);
      builder_.group({&object, 1}, {&consumer, 1});
    }
  }

  // Every consumer reads every producer through one group. With one producer it is a broadcast,
  // with one consumer a gather.
  void join(scheduler::TaskId from, scheduler::TaskId to, size_t output = 0) {
    std::vector<scheduler::ObjectId> objects;
    for (uint32_t i = 0; i < builder_.so_far().task(from).instance_count; ++i) {
      objects.push_back(builder_.so_far().object(builder_.so_far().instance(from, i), output));
    }
    std::vector<scheduler::InstanceId> consumers;
    for (uint32_t i = 0; i < builder_.so_far().task(to).instance_count; ++i) {
      consumers.push_back(builder_.so_far().instance(to, i));
    }
    builder_.group(objects, consumers);
  }
  void gather(scheduler::TaskId from, scheduler::TaskId to, size_t output = 0) {
    join(from, to, output);
  }
  void broadcast(scheduler::TaskId from, scheduler::TaskId to, size_t output = 0) {
    join(from, to, output);
  }

  // Every instance of `after` starts when all of `before` have been done.
  scheduler::GateId gate(scheduler::TaskId before, scheduler::TaskId after) {
    const auto all = [this](scheduler::TaskId task) {
      std::vector<scheduler::InstanceId> ids;
      for (uint32_t i = 0; i < builder_.so_far().task(task).instance_count; ++i) {
        ids.push_back(builder_.so_far().instance(task, i));
      }
      return ids;
    };
    return builder_.gate(all(before), all(after));
  }
  scheduler::GateId gate(std::span<const scheduler::InstanceId> predecessors,
                         std::span<const scheduler::InstanceId> successors) {
    return builder_.gate(predecessors, successors);
  }

  // Any group, for random graphs.
  scheduler::GroupId group(std::span<const scheduler::ObjectId> objects,
                           std::span<const scheduler::InstanceId> consumers) {
    return builder_.group(objects, consumers);
  }
  [[nodiscard]] const scheduler::Graph& so_far() const { return builder_.so_far(); }
  [[nodiscard]] scheduler::Graph build() { return builder_.build(); }

 private:
  scheduler::GraphBuilder builder_;
};

}  // namespace sluice::tests
