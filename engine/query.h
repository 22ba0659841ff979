// What the verbs about a run share: exit codes, messages, how an instance is named and
// matched. Free functions; one thread. Test: tests/engine/query_test.cpp
#pragma once

#include <string>
#include <string_view>

#include "engine/run_directory.h"
#include "io/run_ledger.h"
#include "scheduler/types.h"

namespace sluice::engine {

constexpr int kQueryDone = 0;
constexpr int kQueryUsage = 2;
constexpr int kQueryEnvironment = 3;

// Prints "sluice: error: …" to stderr; returns `code`.
int complain(const std::string& text, int code);
int complain_no_run(const RunDirectory& directory);

// "task" or "task[item]" against (task, item); "" matches everything.
[[nodiscard]] bool matches_target(std::string_view target, std::string_view task,
                                  std::string_view item);
// Whether a person means this item: as it is shown, where ',' '=' and '%' in values are %XX, or as
// it was typed.
[[nodiscard]] bool means_item(std::string_view typed, std::string_view item);
[[nodiscard]] std::string label_text(std::string_view task, std::string_view item);
[[nodiscard]] std::string attempt_text(scheduler::AttemptId attempt);  // "2.17"
// "exit 3", "signal 11 (Segmentation fault)", "timeout".
[[nodiscard]] std::string cause_text(const io::RunLedger::Failure& failure);
// What a program wrote must not steer the terminal: control characters become '?', lines get the
// indent, the last one its newline.
[[nodiscard]] std::string quoted_lines(std::string_view text, std::string_view indent);

}  // namespace sluice::engine
