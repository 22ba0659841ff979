// What rank 0 does between a checked pipeline and its first decision: run directory, lease, journal
// of this epoch, facts of the earlier ones, trace. Test: tests/engine/scheduler_rank_test.cpp,
// tests/e2e/
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/record_keeper.h"
#include "engine/run_directory.h"
#include "engine/selection.h"
#include "io/pipeline.h"
#include "scheduler/event.h"
#include "scheduler/expected.h"
#include "scheduler/options.h"

namespace sluice::engine {

struct RunStart {
  RunDirectory directory;
  std::string run_uuid;
  scheduler::CoreOptions core;
  std::vector<scheduler::event::Restored> restored;
  std::map<scheduler::ObjectId, std::string> durable_paths;  // of restored files; relative
  std::set<scheduler::InstanceId> overtaken;                 // of restored ones; engine/resume.h
  std::vector<std::string> messages;  // for people: takeover, damaged journal, ...
  std::unique_ptr<RecordKeeper> keeper;
};

// What is recorded of where a run comes from.
struct RunOrigin {
  std::string command;  // that continues it, from any folder
  std::vector<std::pair<std::string, std::string>> versions;
};

// What the command line says about this run, checked.
struct RunRules {
  Selection selection;
  uint32_t failures_max = 0;  // 0: no bound
  scheduler::Duration lost_after = scheduler::seconds(30);
  // Nothing that earlier runs made is reused, and no later run reuses it either: the journal says
  // so. Their results stay in results/ until this run replaces them.
  bool fresh = false;
};

// An Error means exit code 3: another run owns the directory, or it cannot be written.
[[nodiscard]] Expected<RunStart> start_run(const io::Pipeline& pipeline,
                                           const RunDirectory& directory, const std::string& host,
                                           RecordKeeper::Callbacks callbacks,
                                           const RunOrigin& origin = {},
                                           const RunRules& rules = {});

}  // namespace sluice::engine
