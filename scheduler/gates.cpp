#include "scheduler/gates.h"

#include "scheduler/check.h"

namespace sluice::scheduler {

Gates::Gates(const Graph& graph, std::vector<Change>& changes)
    : graph_(graph),
      changes_(changes),
      marks_(graph.gate_count() == 0 ? 0 : graph.instance_count(), Mark::kAhead),
      closed_gates_(marks_.size()),
      gates_(graph.gate_count()) {
  for (size_t g = 0; g < gates_.size(); ++g) {
    const GateId id(g);
    gates_[g].ahead = static_cast<uint32_t>(graph.gate_predecessors(id).size());
    if (gates_[g].ahead == 0) {
      continue;
    }
    for (const InstanceId successor : graph.gate_successors(id)) {
      ++closed_gates_[successor.index()];
    }
  }
}

void Gates::pass(InstanceId predecessor) {
  if (gates_.empty()) {
    return;
  }
  Mark& mark = marks_[predecessor.index()];
  if (mark == Mark::kPassed) {
    return;
  }
  SLUICE_ASSERT(mark == Mark::kAhead, predecessor);
  mark = Mark::kPassed;
  for (const GateId id : graph_.gates_behind(predecessor)) {
    if (--gates_[id.index()].ahead > 0) {
      continue;
    }
    for (const InstanceId successor : graph_.gate_successors(id)) {
      if (--closed_gates_[successor.index()] == 0) {
        changes_.push_back({Change::Kind::kAvailable, successor, {}, {}});
      }
    }
  }
}

void Gates::bar(InstanceId predecessor) {
  if (gates_.empty()) {
    return;
  }
  Mark& mark = marks_[predecessor.index()];
  if (mark != Mark::kAhead) {
    return;
  }
  mark = Mark::kBarred;
  for (const GateId id : graph_.gates_behind(predecessor)) {
    if (++gates_[id.index()].barred > 1) {
      continue;
    }
    gates_[id.index()].first_barred = predecessor;
    for (const InstanceId successor : graph_.gate_successors(id)) {
      changes_.push_back({Change::Kind::kHopeless, successor, predecessor, {}});
    }
  }
}

InstanceId Gates::barrier(InstanceId successor) const {
  for (const GateId id : graph_.gates_before(successor)) {
    if (gates_[id.index()].barred > 0) {
      return gates_[id.index()].first_barred;
    }
  }
  return {};
}

void Gates::check_invariants() const {
  for (size_t g = 0; g < gates_.size(); ++g) {
    GateRecord again;
    for (const InstanceId predecessor : graph_.gate_predecessors(GateId(g))) {
      again.ahead += marks_[predecessor.index()] == Mark::kPassed ? 0 : 1;
      again.barred += marks_[predecessor.index()] == Mark::kBarred ? 1 : 0;
    }
    SLUICE_ASSERT(again.ahead == gates_[g].ahead, g, again.ahead, gates_[g].ahead);
    SLUICE_ASSERT(again.barred == gates_[g].barred, g, again.barred, gates_[g].barred);
  }
  for (size_t i = 0; i < closed_gates_.size(); ++i) {
    uint32_t closed = 0;
    for (const GateId gate : graph_.gates_before(InstanceId(i))) {
      closed += gates_[gate.index()].ahead > 0 ? 1 : 0;
    }
    SLUICE_ASSERT(closed == closed_gates_[i], i, closed, closed_gates_[i]);
  }
}

}  // namespace sluice::scheduler
