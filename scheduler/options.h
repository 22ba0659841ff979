// What a driver may set of the core. Values; part of the trace. Test: tests/scheduler/core_test.cpp
#pragma once

#include <cstdint>

#include "scheduler/types.h"

namespace sluice::scheduler {

constexpr int kLostAttemptsMax = 3;

struct CoreOptions {
  uint32_t epoch = 1;
  Duration silent_after = seconds(3);
  Duration lost_after = seconds(30);
  uint32_t failures_without_success_max =
      20;  // a task with so many failures and no success is held: its rest is skipped
  uint32_t quick_failures_max =
      5;  // a worker with so many in a row is doubted (core_doubt.cpp); 0: never
  uint32_t failures_max = 0;  // so many failed instances, and nothing new starts; 0: no bound
  bool dispatch_ahead = true;
  uint32_t ahead_per_slot_max = 16;  // so many short attempts may wait at a worker, per slot
};

}  // namespace sluice::scheduler
