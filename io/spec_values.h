// The values a spec's scalars stand for: durations, memory, counters, ranges, names. Pure functions
// from text; every error says what was found and what to write. Test: tests/io/spec_values_test.cpp
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "scheduler/resources.h"
#include "scheduler/types.h"

namespace sluice::io {

struct ValueError {
  std::string text;  // "'90' has no unit"
  std::string hint;
};
template <class T>
using ParsedValue = std::variant<T, ValueError>;

// "90s", "1h30m", "45m", "2d", "500ms", "H:MM:SS"; more than nothing.
[[nodiscard]] ParsedValue<scheduler::Duration> parse_duration(std::string_view text);
// "8GiB", "1.5GB", "512MiB": bytes.
[[nodiscard]] ParsedValue<int64_t> parse_memory(std::string_view text);
// "2", "0.25": units of a counter, at most four decimals.
[[nodiscard]] ParsedValue<scheduler::Amount> parse_amount(std::string_view text);
// Half-open, exact in decimals: 0, 0.3, 0.1 gives "0.0", "0.1", "0.2".
// Nothing when the end is not behind the beginning.
[[nodiscard]] ParsedValue<std::vector<std::string>> parse_range(std::string_view begin,
                                                                std::string_view end,
                                                                std::string_view step);
// [a-zA-Z][a-zA-Z0-9_]*: tasks, inputs, outputs, params, foreach keys, limits.
[[nodiscard]] bool is_name(std::string_view text);
// Back to text that reads back the same: "1h30m", "8GiB", "0.25".
[[nodiscard]] std::string print_duration(scheduler::Duration duration);
[[nodiscard]] std::string print_memory(int64_t bytes);
[[nodiscard]] std::string print_amount(scheduler::Amount amount);

}  // namespace sluice::io
