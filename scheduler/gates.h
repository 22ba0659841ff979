// Order without data (`after:` in the spec). A *gate* stands between predecessors and successors:
// it opens when each predecessor has been done once. What a predecessor made does not matter, so a
// gate is not part of a key, demands no bytes, and once passed by a predecessor stays passed by it,
// also when that one must run again for lost bytes. A predecessor that failed or was skipped before
// it was ever done *bars* its gates: the successors will never start.
//
// As with groups, only counters are kept, and members are walked once per turn: a gate of A
// predecessors and B successors costs |A| + |B|. Consequences are appended to `changes`
// (scheduler/objects.h). One owner, one thread. Test: tests/scheduler/gates_test.cpp
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/graph.h"
#include "scheduler/objects.h"

namespace sluice::scheduler {

class Gates {
 public:
  // Both must outlive this object.
  Gates(const Graph& graph, std::vector<Change>& changes);

  void pass(InstanceId predecessor);  // it was done; again is fine
  void bar(InstanceId predecessor);   // it has failed or was skipped; nothing if it was done before

  [[nodiscard]] bool open(InstanceId successor) const {
    return closed_gates_.empty() || closed_gates_[successor.index()] == 0;
  }
  // A predecessor because of which the successor will never start; none if there is none.
  [[nodiscard]] InstanceId barrier(InstanceId successor) const;

  // Asserts that every counter equals a recount from the predecessors' own marks.
  void check_invariants() const;

 private:
  enum class Mark : uint8_t { kAhead, kPassed, kBarred };
  struct GateRecord {
    uint32_t ahead = 0;  // predecessors that have not passed
    uint32_t barred = 0;
    InstanceId first_barred;
  };

  const Graph& graph_;
  std::vector<Change>& changes_;
  // Both per instance; empty if there are no gates.
  std::vector<Mark> marks_;
  std::vector<uint32_t> closed_gates_;
  std::vector<GateRecord> gates_;
};

}  // namespace sluice::scheduler
