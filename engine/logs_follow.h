// `sluice logs --follow`: prints what attempts write, as it comes where they run on this node, when
// they end where they run on another; ends when the run does. One thread. Test:
// tests/e2e/queries.sh
#pragma once

#include <vector>

#include "engine/run_directory.h"
#include "io/log_pack.h"

namespace sluice::engine {

struct Options;

// `shown`: entries of the logs that were printed already, or are not wanted.
int follow_logs(const Options& options, const RunDirectory& directory,
                const std::vector<io::LogEntry>& shown);

}  // namespace sluice::engine
