// How long the control loop may sleep before it polls MPI again (after design §2). Child exits and
// I/O wake it at once, so what these times cost is the way between ranks: 50 us after something
// came or a process ended, doubling to 200 us while more is likely (kBusy), then to 1 ms, to 4 ms
// when nothing has happened for a second; at most 20 us while bulk data is in flight. Signs of life
// are no activity. Where every slot has its next attempts waiting nothing is urgent, and 2 ms will
// do at once: what is sent ahead of short ones covers 5 ms (scheduler/core_ahead.cpp).
//
// It never spins: answers to what was just sent come when a process has run, half a millisecond
// later at best. A poll costs some microseconds, so a run that is busy pays 2 to 3 % of a core.
// Pure but for its own state; control thread. Test: tests/engine/poll_backoff_test.cpp
#pragma once

#include <algorithm>

#include "scheduler/types.h"

namespace sluice::engine {

class PollBackoff {
 public:
  scheduler::Duration next(scheduler::Instant now, bool active, bool bulk, bool supplied) {
    if (active) {
      active_at_ = now;
      sleep_ = kFirst;
    }
    if (bulk) return kBulk;
    const scheduler::Duration quiet_for = now - active_at_;
    if (supplied) return quiet_for < kIdleAfter ? kSuppliedSleep : kIdleSleep;
    if (active) return sleep_;
    const scheduler::Duration most = quiet_for < kBusy        ? kBusySleep
                                     : quiet_for < kIdleAfter ? kQuietSleep
                                                              : kIdleSleep;
    sleep_ = std::min(sleep_ * 2, most);
    return sleep_;
  }

 private:
  static constexpr scheduler::Duration kBulk = scheduler::microseconds(20);
  static constexpr scheduler::Duration kFirst = scheduler::microseconds(50);
  static constexpr scheduler::Duration kBusy = scheduler::milliseconds(20);
  static constexpr scheduler::Duration kBusySleep = scheduler::microseconds(200);
  static constexpr scheduler::Duration kQuietSleep = scheduler::milliseconds(1);
  static constexpr scheduler::Duration kSuppliedSleep = scheduler::milliseconds(2);
  static constexpr scheduler::Duration kIdleAfter = scheduler::seconds(1);
  static constexpr scheduler::Duration kIdleSleep = scheduler::milliseconds(4);
  scheduler::Instant active_at_;
  scheduler::Duration sleep_ = kFirst;
};

}  // namespace sluice::engine
