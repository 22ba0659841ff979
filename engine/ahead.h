// What the verbs that look ahead have in common. One thread. Test: tests/e2e/plan.sh
#pragma once

#include <optional>
#include <string>

#include "io/diagnostic.h"
#include "io/pipeline.h"

namespace sluice::engine {

struct Options;

// What is wrong goes to `diagnostics`, and is printed on stderr.
[[nodiscard]] std::optional<io::Pipeline> read_and_print(const Options& options,
                                                         io::Diagnostics& diagnostics);
// "3 tasks", "1 task".
[[nodiscard]] std::string counted(size_t count, const std::string& noun);

}  // namespace sluice::engine
