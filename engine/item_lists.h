// The items that tasks took from files (`lines`, `glob`), as the last submission saw them:
// `items/<task>` in the run directory, an item a line. A list that has changed since is a surprise
// that people must hear of. Reads and writes the run directory, with the lease held. One thread.
// Test: tests/engine/item_lists_test.cpp
#pragma once

#include <string>
#include <vector>

#include "engine/run_directory.h"
#include "io/files.h"
#include "io/pipeline.h"

namespace sluice::engine {

// Compares the items with those of the last submission, then keeps the new ones. Gives a message
// for each task whose items differ (at most some), and for what could not be read or written: the
// run goes on without.
[[nodiscard]] std::vector<std::string> keep_item_lists(const io::Pipeline& pipeline,
                                                       const RunDirectory& directory,
                                                       io::Files& files);

}  // namespace sluice::engine
