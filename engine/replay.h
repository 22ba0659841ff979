// `sluice replay`: feeds a new core with a run's trace and compares digests, so that a run on a
// cluster is a test at a desk. One thread. Test: tests/engine/replay_test.cpp
#pragma once

#include <cstdint>
#include <filesystem>

#include "io/trace.h"
#include "scheduler/expected.h"

namespace sluice::engine {

struct ReplayResult {
  uint64_t digest = 0;           // of the replayed core
  uint64_t recorded_digest = 0;  // the trace's last one
  uint64_t events = 0;
  uint64_t schedules = 0;
  bool complete = true;  // false: the trace was cut at its bound or torn at its end
  uint64_t first_difference =
      0;  // number (from 1) of the first schedule call whose digest differs, 0: none
};
// `check`: Core::check_invariants() after every event.
[[nodiscard]] ReplayResult replay(const io::Trace& trace, bool check);
[[nodiscard]] Expected<ReplayResult> replay_trace(const std::filesystem::path& file, bool check);

}  // namespace sluice::engine
