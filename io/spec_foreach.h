// Parts of reading `foreach`, for io/spec_foreach.cpp: the values of a key, and `except`. Test:
// tests/io/spec_foreach_test.cpp, tests/io/spec_mistakes_test.cpp
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/spec_reader.h"

namespace sluice::io {

// A list, a param of type list, {range}, {lines}, {glob} or {shards}. Without repetition, and empty
// only where the task allows that. None: reported.
[[nodiscard]] std::optional<std::vector<std::string>> read_foreach_values(SpecReading& reading,
                                                                          SpecTask& task,
                                                                          NodeIndex node,
                                                                          bool allow_empty);

// Removes the task's items that match an entry of `except`, and reports each entry that matches
// none.
void leave_out_items(SpecReading& reading, SpecTask& task, NodeIndex except);

}  // namespace sluice::io
