// How long the control loop may sleep before it polls MPI again (design §2): hot for 50 µs after
// activity, then 20 µs doubling to 200 µs while something runs, to 4 ms when nothing has happened
// for a second; at most 20 µs while bulk data is in flight. Child exits and I/O wake the loop at
// once, whatever this says. Pure but for its own state; control thread. Test:
// tests/engine/poll_backoff_test.cpp
#pragma once

#include <algorithm>

#include "scheduler/types.h"

namespace sluice::engine {

class PollBackoff {
 public:
  scheduler::Duration next(scheduler::Instant now, bool active, bool running, bool bulk) {
    if (active) {
      active_at_ = now;
      sleep_ = kShortest;
    }
    if (now < active_at_ + kHot) return {0};
    if (bulk) return kShortest;
    const bool idle = now >= active_at_ + scheduler::seconds(1);
    const scheduler::Duration longest = idle ? kIdle : running ? kRunning : kQuiet;
    sleep_ = std::min(sleep_ * 2, longest);
    return sleep_;
  }

 private:
  static constexpr scheduler::Duration kHot = scheduler::microseconds(50);
  static constexpr scheduler::Duration kShortest = scheduler::microseconds(20);
  static constexpr scheduler::Duration kRunning = scheduler::microseconds(200);
  static constexpr scheduler::Duration kQuiet = scheduler::milliseconds(1);
  static constexpr scheduler::Duration kIdle = scheduler::milliseconds(4);
  scheduler::Instant active_at_;
  scheduler::Duration sleep_ = kShortest;
};

}  // namespace sluice::engine
