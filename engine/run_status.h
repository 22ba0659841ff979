// What rank 0 says of a run that goes on, for status.json: counts by task and state, what runs
// where. Queries add to these counts what the journal holds behind "journal_bytes"
// (engine/status.h). Control thread, whose core it asks. Test: tests/engine/scheduler_rank_test.cpp
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "io/pipeline.h"
#include "scheduler/core.h"

namespace sluice::engine {

class TurnWatch;

struct RunStatus {
  std::string run_uuid;
  uint32_t epoch = 0;
  std::string state;  // "running", or how it ended
  size_t workers = 0;
  std::function<std::string(scheduler::WorkerId)> host_of;
  const TurnWatch* watch = nullptr;  // of the control thread; none: not told
};

// All of status.json but "journal_bytes".
[[nodiscard]] nlohmann::ordered_json status_json(const RunStatus& status,
                                                 const io::Pipeline& pipeline,
                                                 const scheduler::Core& core);

}  // namespace sluice::engine
