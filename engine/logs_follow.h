// `sluice logs --follow`: prints what attempts write, as it comes where they run on this node, when
// they end where they run on another; with --failed, only of those that failed, when they end. Ends
// when the run does. One thread. Test: tests/engine/logs_test.cpp, tests/e2e/queries.sh
#pragma once

#include <string>
#include <string_view>

#include "engine/run_directory.h"
#include "io/log_pack.h"

namespace sluice::engine {

struct Options;

// Entries that `index` has given before were printed already, or are not wanted.
int follow_logs(const Options& options, const RunDirectory& directory, io::LogIndexReader& index);

// quoted_lines() of a piece of what a program writes: no newline comes to its end, since the next
// piece may go on with its last line.
[[nodiscard]] std::string quoted_piece(std::string_view bytes);

}  // namespace sluice::engine
