// The one place where engine reads a clock: monotonic time since this process's start of the run,
// and wall-clock milliseconds for people and the journal; time is an argument everywhere else. Any
// thread. Test: tests/engine/scheduler_rank_test.cpp
#pragma once

#include <chrono>
#include <cstdint>

#include "scheduler/types.h"

namespace sluice::engine {

class Clock {
 public:
  [[nodiscard]] scheduler::Instant now() const {
    const auto since = std::chrono::steady_clock::now() - start_;
    return {std::chrono::duration_cast<std::chrono::nanoseconds>(since).count()};
  }
  [[nodiscard]] static int64_t unix_time_ms() {
    const auto since = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace sluice::engine
