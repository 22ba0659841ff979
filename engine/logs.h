// `sluice logs`: what attempts wrote, from the packed logs of a run directory (io/log_pack.h); of
// attempts that left no log (lost, never started) what the journal says. Bytes come out as they
// were written; on a terminal, control characters are replaced. One thread. Test:
// tests/engine/logs_test.cpp, tests/e2e/queries.sh
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "io/log_pack.h"

namespace sluice::engine {

struct Options;

// The chosen of `entries` (ordered by attempt). `attempt`: "" all; "N" the N-th attempt of each
// instance, "-1" its last; "E.N" that one.
[[nodiscard]] std::vector<io::LogEntry> choose_logs(const std::vector<io::LogEntry>& entries,
                                                    const std::string& target,
                                                    const std::string& attempt, bool failed);
// The last `lines` lines.
[[nodiscard]] std::string_view last_lines(std::string_view text, size_t lines);
[[nodiscard]] bool is_attempt_choice(const std::string& text);

int show_logs(const Options& options);

}  // namespace sluice::engine
