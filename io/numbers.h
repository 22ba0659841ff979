// Numbers as people type them: whole texts only, independent of the locale, nothing out of range.
// Pure functions. Test: tests/io/expression_test.cpp
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::io {

// "64", "-3", "+7", "010" (ten).
[[nodiscard]] std::optional<int64_t> parse_int(std::string_view text);
// Also "1.5", "1e-4", ".5", "1."; never "inf", "nan" or hexadecimal.
[[nodiscard]] std::optional<double> parse_float(std::string_view text);
// The shortest text that reads back as the same number; always looks like a float ("2.0", "1e-05").
[[nodiscard]] std::string print_float(double value);

}  // namespace sluice::io
