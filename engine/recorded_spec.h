// The pipeline that a submission ran, read again: the user's file if it is still that text, else
// the copy in the run directory, with the folder and the parameters that were recorded; a list of
// commands likewise. One thread. Test: tests/e2e/queries.sh, tests/e2e/commands.sh
#pragma once

#include "engine/run_directory.h"
#include "io/journal.h"
#include "io/pipeline.h"
#include "scheduler/expected.h"

namespace sluice::engine {

// Whether that submission ran a list of commands: its copy says so, not the name of the file.
[[nodiscard]] bool is_command_list(const RunDirectory& directory, const io::record::Run& run);

// An Error says why the spec cannot be had. Diagnostics are not printed.
[[nodiscard]] Expected<io::Pipeline> read_recorded_spec(const RunDirectory& directory,
                                                        const io::record::Run& run);

}  // namespace sluice::engine
