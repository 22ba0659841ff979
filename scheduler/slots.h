// One worker's cores and memory: which are given to which attempt. Exact: a core is given once.
// One owner, one thread. Test: tests/scheduler/slots_test.cpp
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/resources.h"
#include "scheduler/types.h"

namespace sluice::scheduler {

class Slots {
 public:
  explicit Slots(const Resources& total);
  // Concrete cores for the request, lowest-numbered contiguous run that fits best, else the lowest
  // free ones; nullopt if they are not free now.
  std::optional<std::vector<int32_t>> take(AttemptId attempt, const Resources& request);
  void give_back(AttemptId attempt);
  [[nodiscard]] bool fits(const Resources& request) const { return free_.covers(request); }
  [[nodiscard]] const Resources& free() const { return free_; }
  [[nodiscard]] const Resources& total() const { return total_; }
  void check_invariants() const;

 private:
  struct Held {
    AttemptId attempt;
    Resources request;
    std::vector<int32_t> cores;
  };
  Resources total_;
  Resources free_;
  std::vector<AttemptId> core_owner_;  // index: core
  std::vector<Held> held_;
};

}  // namespace sluice::scheduler
