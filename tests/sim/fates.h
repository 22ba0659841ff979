// How each instance has to end, by an oracle that shares nothing with the core: an instance that is
// doomed fails, what reads or comes after one that does not succeed is skipped, all others are
// done. Saboteurs may explain other ends, each only those of its kind. For tests only; pure.
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/simulator.h"

namespace sluice::tests {

// What the instance reads or comes after, directly.
inline std::vector<scheduler::InstanceId> predecessors(const scheduler::Graph& graph,
                                                       scheduler::InstanceId instance) {
  std::vector<scheduler::InstanceId> found;
  for (const scheduler::GroupId group : graph.inputs(instance)) {
    for (const scheduler::ObjectId object : graph.group_objects(group)) {
      found.push_back(graph.producer(object));
    }
  }
  for (const scheduler::GateId gate : graph.gates_before(instance)) {
    for (const scheduler::InstanceId before : graph.gate_predecessors(gate)) {
      found.push_back(before);
    }
  }
  return found;
}

class Fates {
 public:
  using State = scheduler::InstanceState;

  // Per instance: does every attempt of it fail?
  Fates(const scheduler::Graph& graph, std::vector<bool> doomed)
      : graph_(graph), doomed_(std::move(doomed)), expected_(graph.instance_count()) {
    for (size_t i = 0; i < expected_.size(); ++i) expect(scheduler::InstanceId(i));
  }

  [[nodiscard]] State of(size_t instance) const { return *expected_[instance]; }
  [[nodiscard]] bool any_fails() const {
    return std::find(expected_.begin(), expected_.end(), State::kFailed) != expected_.end();
  }

  // What may end otherwise than expected, and why.
  struct Excuses {
    std::set<scheduler::Cause> causes;            // of failures
    bool ended_early = false;                     // not everything had its turn
    const std::vector<bool>* selected = nullptr;  // what is not may be left out
  };
  // A sentence for each instance whose end nothing explains.
  [[nodiscard]] std::vector<std::string> unexplained(const engine::SimulationResult& result,
                                                     const Excuses& excuses) const {
    std::vector<std::string> found;
    for (size_t i = 0; i < expected_.size(); ++i) {
      if (explained(i, result, excuses)) continue;
      found.push_back("instance " + std::to_string(i) + " ended in state " +
                      std::to_string(static_cast<int>(result.states[i])) + " instead of " +
                      std::to_string(static_cast<int>(of(i))));
    }
    return found;
  }

 private:
  State expect(scheduler::InstanceId instance) {
    std::optional<State>& fate = expected_[instance.index()];
    if (fate) return *fate;
    bool skipped = false;
    for (const scheduler::InstanceId before : predecessors(graph_, instance)) {
      skipped = expect(before) != State::kDone || skipped;
    }
    fate = skipped ? State::kSkipped : doomed_[instance.index()] ? State::kFailed : State::kDone;
    return *fate;
  }

  [[nodiscard]] bool explained(size_t i, const engine::SimulationResult& result,
                               const Excuses& excuses) const {
    switch (result.states[i]) {
      case State::kDone:
        return of(i) == State::kDone;
      case State::kFailed: {
        const std::optional<scheduler::Cause> by = result.failed_by[i];
        return of(i) == State::kFailed ||
               (of(i) == State::kDone && by && excuses.causes.count(*by) > 0);
      }
      case State::kSkipped:
        return follows_a_failure(i, result);
      case State::kLeftOut:
        return excuses.selected != nullptr && !(*excuses.selected)[i];
      case State::kWaiting:
      case State::kBlocked:
      case State::kReady:
      case State::kAssigned:
      case State::kRunning:
        return excuses.ended_early;
    }
    return false;
  }

  [[nodiscard]] bool follows_a_failure(size_t i, const engine::SimulationResult& result) const {
    for (const scheduler::InstanceId before : predecessors(graph_, scheduler::InstanceId(i))) {
      const State state = result.states[before.index()];
      if (state == State::kFailed || state == State::kSkipped) return true;
    }
    return false;
  }

  const scheduler::Graph& graph_;
  std::vector<bool> doomed_;
  std::vector<std::optional<State>> expected_;
};

}  // namespace sluice::tests
