// What a run would do now: the core itself is asked, fed with the journal's facts and given no
// worker. What it marks done is up to date, what demands its inputs will run, what waits for
// unknown content may run. `plan` and `why` show it, and a run does exactly that, because it is the
// same code: a run contains all of `will run` and none of `up to date`. One thread. Test:
// tests/engine/scheduler_rank_test.cpp, tests/e2e/plan.sh
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/estimate.h"
#include "engine/run_directory.h"
#include "engine/selection.h"
#include "io/journal.h"
#include "io/pipeline.h"
#include "scheduler/expected.h"

namespace sluice::engine {

// Small, because there is one per instance; the texts are made where they are shown.
struct Verdict {
  enum class Kind : uint8_t { kWillRun, kMayRun, kUpToDate, kLeftOut };
  enum class Reason : uint8_t {
    kUnchanged,      // done, and nothing has changed
    kNeverFinished,  // no success is recorded, no failure either
    kLastFailed,     // its last attempt failed
    kOwnChange,      // command, environment, outputs, files of the pipeline folder
    kInputChange,    // contents that other tasks made
    kResultGone,     // `object` is not in the run directory, or was changed there
    kReplicaGone,    // an output that another instance needs is gone from node memory
    kNeeded,         // its output `object` is gone, and `other` needs it
    kForced,         // the user asked for it
    kNotSelected,    // the user asked for others only
    kWaits,          // for `object` of `other`, whose content is not known yet
  };
  Kind kind = Kind::kWillRun;
  Reason reason = Reason::kNeverFinished;
  scheduler::ObjectId object;
  scheduler::InstanceId other;
};
[[nodiscard]] const char* verdict_name(Verdict::Kind kind);  // "up to date", "will run", "may run"
// "its output 'sum' is gone and …". Of one instance it names the others by label; for
// a group of instances with the same reason, by task.
enum class Naming : uint8_t { kInstances, kTasks };
[[nodiscard]] std::string reason_text(const io::Pipeline& pipeline, const Verdict& verdict,
                                      Naming naming);

struct Forecast {
  std::vector<Verdict> verdicts;             // by InstanceId
  std::vector<scheduler::Hash128> contents;  // by ObjectId; unknown before it was first made
  io::JournalState journal;                  // of a fresh run: without its instances
  std::vector<LearnedDuration> learned;      // by TaskId

  [[nodiscard]] const io::JournalState::InstanceFacts* facts(const io::Pipeline& pipeline,
                                                             scheduler::InstanceId instance) const;
};

// Reads the run directory if there is one, changes nothing. `fresh`: as for a run that reuses
// nothing.
[[nodiscard]] Expected<Forecast> make_forecast(const io::Pipeline& pipeline,
                                               const RunDirectory& directory,
                                               const Selection& selection = {}, bool fresh = false);

}  // namespace sluice::engine
