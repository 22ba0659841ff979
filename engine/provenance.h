// Where a result comes from: the instances that made it, up to the sources, each with its command,
// inputs by content id, attempts, node, times and what it used, and the versions and the spec of
// its submission. From the journal; commands and inputs from the recorded spec, and only if the
// instance was made by that very command (the static part of its key says so). One thread. Test:
// tests/e2e/queries.sh
#pragma once

#include <filesystem>
#include <string>

#include "engine/run_directory.h"
#include "io/pipeline.h"
#include "io/run_ledger.h"

namespace sluice::engine {

struct Options;

// `pipeline` may be null: then only the instance itself can be described.
int show_provenance(const Options& options, const RunDirectory& directory,
                    const io::RunLedger& ledger, const io::Pipeline* pipeline);

// `file` relative to the run directory, whether it was given so or from the current folder.
[[nodiscard]] std::string path_in_run(const RunDirectory& directory,
                                      const std::filesystem::path& file);

}  // namespace sluice::engine
