// `sluice logs`: what attempts wrote, from the packed logs of a run directory (io/log_pack.h); of
// attempts that left no log (lost, never started) what the journal says. Bytes come out as they
// were written; on a terminal, control characters are replaced. One thread. Test:
// tests/engine/logs_test.cpp, tests/e2e/queries.sh
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/log_pack.h"
#include "scheduler/types.h"

namespace sluice::engine {

struct Options;

// Which attempt of its instance an attempt is: the N-th of all that were added, with or without a
// log.
class AttemptPlaces {
 public:
  void add(const std::string& label, scheduler::AttemptId attempt);
  // `choice`: "" all; "N" the N-th attempt of each instance, "-1" its last; "E.N" that one.
  [[nodiscard]] bool is_chosen(const std::string& choice, const std::string& label,
                               scheduler::AttemptId attempt) const;

 private:
  std::map<std::string, std::set<scheduler::AttemptId>> attempts_;  // by label
};

// The chosen of `entries`; `places` need to know nothing unless `attempt` is a place.
[[nodiscard]] std::vector<io::LogEntry> choose_logs(const std::vector<io::LogEntry>& entries,
                                                    const std::string& target,
                                                    const std::string& attempt, bool failed,
                                                    const AttemptPlaces& places);
[[nodiscard]] bool has_failed(const io::LogEntry& entry);
// Attempts of one task that ended alike and wrote the same to stderr, in the order of each group's
// first. What cannot be read is like nothing else.
[[nodiscard]] std::vector<std::vector<const io::LogEntry*>> group_alike(
    const std::vector<io::LogEntry>& entries);
// The last `lines` lines.
[[nodiscard]] std::string_view last_lines(std::string_view text, size_t lines);
[[nodiscard]] bool is_attempt_choice(const std::string& text);

int show_logs(const Options& given);

}  // namespace sluice::engine
