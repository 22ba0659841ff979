// How long the control loop may sleep before it polls MPI again (after design §2): hot for 50 us
// after activity, then 20 us doubling to 1 ms, to 4 ms when nothing has happened for a second; at
// most 20 us while bulk data is in flight. Signs of life are no activity. Child exits and I/O wake
// the loop at once, and attempts sent ahead hide the millisecond, so a shorter sleep while slots
// run would only burn a core (8 % of one, measured, at 200 us). Pure but for its own state; control
// thread. Test: tests/engine/poll_backoff_test.cpp
#pragma once

#include <algorithm>

#include "scheduler/types.h"

namespace sluice::engine {

class PollBackoff {
 public:
  scheduler::Duration next(scheduler::Instant now, bool active, bool bulk) {
    if (active) {
      active_at_ = now;
      sleep_ = kShortest;
    }
    if (now < active_at_ + kHot) return {0};
    if (bulk) return kShortest;
    const bool idle = now >= active_at_ + scheduler::seconds(1);
    sleep_ = std::min(sleep_ * 2, idle ? kIdle : kQuiet);
    return sleep_;
  }

 private:
  static constexpr scheduler::Duration kHot = scheduler::microseconds(50);
  static constexpr scheduler::Duration kShortest = scheduler::microseconds(20);
  static constexpr scheduler::Duration kQuiet = scheduler::milliseconds(1);
  static constexpr scheduler::Duration kIdle = scheduler::milliseconds(4);
  scheduler::Instant active_at_;
  scheduler::Duration sleep_ = kShortest;
};

}  // namespace sluice::engine
