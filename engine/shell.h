// `sluice shell`: bash where an attempt of one instance would run: a fresh attempt directory with
// its inputs in place, its environment, its script. Inputs come from the run directory; one that is
// nowhere any more is named with what would have to run again. Nothing is recorded, and the
// directory goes when the shell ends. One thread. Test: tests/e2e/queries.sh
#pragma once

#include <string>
#include <vector>

#include "engine/run_directory.h"
#include "io/attempt_spec.h"
#include "io/journal.h"
#include "io/pipeline.h"

namespace sluice::engine {

struct Options;

struct FoundInputs {
  std::vector<std::string> paths;    // as Store::stage wants them: by file, "" for values
  std::vector<std::string> missing;  // "input 'x': output 'y' of task[item]"
};
[[nodiscard]] FoundInputs find_inputs(const io::AttemptSpec& attempt, const io::Pipeline& pipeline,
                                      const io::JournalState& journal,
                                      const RunDirectory& directory);

int open_shell(const Options& options);

}  // namespace sluice::engine
