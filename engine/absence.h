// Notices that this process did not run for a while: it was stopped, or its machine slept. Whoever
// seems to have been silent since then may only not have been heard: what was sent is still in the
// network, and is read after this turn. So nobody is judged silent before grace_end().
//
// A turn that is long by itself (a large graph) is followed by another long one; only the first
// gives grace, so that judging is never put off for ever. Pure; control thread.
// Test: tests/engine/absence_test.cpp
#pragma once

#include "scheduler/types.h"

namespace sluice::engine {

class Absence {
 public:
  static constexpr scheduler::Duration kNoticed = scheduler::seconds(2);
  static constexpr scheduler::Duration kGrace = scheduler::seconds(2);

  // Once per turn of the loop. True if the grace begins with this turn.
  bool turn(scheduler::Instant now) {
    const bool was_long = was_long_;
    was_long_ = begun_ && now >= last_turn_ + kNoticed;
    begun_ = true;
    last_turn_ = now;
    if (!was_long_ || was_long) return false;
    grace_end_ = now + kGrace;
    return true;
  }
  [[nodiscard]] scheduler::Instant grace_end() const { return grace_end_; }

 private:
  bool begun_ = false;
  bool was_long_ = false;
  scheduler::Instant last_turn_;
  scheduler::Instant grace_end_;
};

}  // namespace sluice::engine
