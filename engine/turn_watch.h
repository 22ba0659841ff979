// A debug counter of the control loop: how often a turn (all between two waits) took more than
// kTurnMax although the thread gave up its processor by itself in it, which is to say that a call
// blocked. A turn that only computes, or that others preempt, does not count. On a machine with
// more work than cores a short wait for a lock may count too, when preemption makes it long.
// Reported in status.json ("control_thread") and, with SLUICE_DEBUG=1, by each rank at its end.
//
// Control thread only, whose usage it reads. Test: tests/engine/turn_watch_test.cpp
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "scheduler/types.h"

namespace sluice::engine {

class TurnWatch {
 public:
  static constexpr scheduler::Duration kTurnMax = scheduler::milliseconds(1);

  void begin(scheduler::Instant now) {
    began_ = now;
    waits_ = own_waits();
  }
  void end(scheduler::Instant now) {
    ++turns_;
    const scheduler::Duration took = now - began_;
    if (took <= kTurnMax || own_waits() == waits_) return;
    ++blocked_;
    longest_ = std::max(longest_, took);
  }
  [[nodiscard]] uint64_t turns() const { return turns_; }
  [[nodiscard]] uint64_t blocked() const { return blocked_; }
  [[nodiscard]] scheduler::Duration longest() const { return longest_; }
  // "1204 turns of the control thread, 0 of them blocked for more than 1 ms"
  [[nodiscard]] std::string text() const {
    std::string text = std::to_string(turns_) + " turns of the control thread, " +
                       std::to_string(blocked_) + " of them blocked for more than 1 ms";
    if (blocked_ > 0) text += ", at most " + std::to_string(longest_.ns / 1'000'000) + " ms";
    return text;
  }

 private:
  static int64_t own_waits() {
    rusage usage{};
    return ::getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
  }

  scheduler::Instant began_;
  int64_t waits_ = 0;
  uint64_t turns_ = 0;
  uint64_t blocked_ = 0;
  scheduler::Duration longest_;
};

}  // namespace sluice::engine
