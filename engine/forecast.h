// What a run would do now: the core itself is asked, fed with the journal's facts and given no
// worker. What it marks done is up to date, what demands its inputs will run, what waits for
// unknown content may run. `plan` and `why` show it, and a run does exactly that, because it is the
// same code. One thread. Test: tests/engine/scheduler_rank_test.cpp
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/run_directory.h"
#include "io/journal.h"
#include "io/pipeline.h"
#include "scheduler/expected.h"

namespace sluice::engine {

struct Verdict {
  enum class Kind : uint8_t { kUpToDate, kWillRun, kMayRun };
  Kind kind = Kind::kWillRun;
  std::string reason;
  std::vector<std::string> history;  // earlier attempts that matter: when done, how failed
};
[[nodiscard]] const char* verdict_name(Verdict::Kind kind);  // "up to date", "will run", "may run"

struct Forecast {
  std::vector<Verdict> verdicts;  // by InstanceId
};

// Reads the run directory if there is one, changes nothing.
[[nodiscard]] Expected<Forecast> make_forecast(const io::Pipeline& pipeline,
                                               const RunDirectory& directory);

}  // namespace sluice::engine
