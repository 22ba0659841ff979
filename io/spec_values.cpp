#include "io/spec_values.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <limits>
#include <optional>
#include <utility>

#include "io/numbers.h"

namespace sluice::io {

namespace {

using scheduler::Amount;
using scheduler::Duration;

constexpr int64_t kMillisecondNs = 1'000'000;
constexpr int64_t kSecondNs = 1000 * kMillisecondNs;
constexpr size_t kRangeItemsMax = 10'000'000;
constexpr int kDecimalDigitsMax = 12;
constexpr int kAmountDigits = 4;  // of kAmountUnit

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

std::string quote(std::string_view text) { return "'" + std::string(text) + "'"; }

struct Unit {
  std::string_view name;
  int64_t size;
};

constexpr std::array<Unit, 5> kDurationUnits = {{{"d", 86'400 * kSecondNs},
                                                 {"h", 3'600 * kSecondNs},
                                                 {"m", 60 * kSecondNs},
                                                 {"s", kSecondNs},
                                                 {"ms", kMillisecondNs}}};

constexpr std::array<Unit, 10> kMemoryUnits = {{{"B", 1},
                                                {"KB", 1000},
                                                {"kB", 1000},
                                                {"MB", 1'000'000},
                                                {"GB", 1'000'000'000},
                                                {"TB", 1'000'000'000'000},
                                                {"KiB", int64_t{1} << 10U},
                                                {"MiB", int64_t{1} << 20U},
                                                {"GiB", int64_t{1} << 30U},
                                                {"TiB", int64_t{1} << 40U}}};

// Splits leading digits off `text`.
std::string_view take_digits(std::string_view& text) {
  size_t count = 0;
  while (count < text.size() && is_digit(text[count])) {
    ++count;
  }
  const std::string_view digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

std::string_view take_letters(std::string_view& text) {
  size_t count = 0;
  while (count < text.size() && std::isalpha(static_cast<unsigned char>(text[count])) != 0) {
    ++count;
  }
  const std::string_view letters = text.substr(0, count);
  text.remove_prefix(count);
  return letters;
}

// H:MM:SS
std::optional<int64_t> clock_ns(std::string_view text) {
  std::array<int64_t, 3> fields{};
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::string_view digits = take_digits(text);
    const auto number = parse_int(digits);
    const bool two_digits = i == 0 || digits.size() == 2;
    if (!number || !two_digits || *number > 1'000'000 || (i > 0 && *number > 59)) {
      return std::nullopt;
    }
    fields[i] = *number;
    if (i < 2) {
      if (text.empty() || text[0] != ':') {
        return std::nullopt;
      }
      text.remove_prefix(1);
    }
  }
  if (!text.empty()) {
    return std::nullopt;
  }
  return ((fields[0] * 60 + fields[1]) * 60 + fields[2]) * kSecondNs;
}

// 1h30m: units from large to small, each at most once.
std::optional<int64_t> units_ns(std::string_view text) {
  int64_t total = 0;
  size_t next_unit = 0;
  while (!text.empty()) {
    const auto number = parse_int(take_digits(text));
    const std::string_view letters = take_letters(text);
    size_t unit = next_unit;
    while (unit < kDurationUnits.size() && kDurationUnits[unit].name != letters) {
      ++unit;
    }
    int64_t part = 0;
    if (!number || unit == kDurationUnits.size() ||
        __builtin_mul_overflow(*number, kDurationUnits[unit].size, &part) ||
        __builtin_add_overflow(total, part, &total)) {
      return std::nullopt;
    }
    next_unit = unit + 1;
  }
  return total;
}

// A decimal number as an integer and its number of decimals: "0.10" is 10 and 2.
struct Decimal {
  int64_t value = 0;
  int digits = 0;
};

std::optional<Decimal> parse_decimal(std::string_view text) {
  const bool negative = !text.empty() && text[0] == '-';
  text.remove_prefix(negative ? 1 : 0);
  std::string digits(take_digits(text));
  Decimal decimal;
  if (!text.empty() && text[0] == '.') {
    text.remove_prefix(1);
    const std::string_view fraction = take_digits(text);
    decimal.digits = static_cast<int>(fraction.size());
    digits += fraction;
  }
  const auto value = parse_int(digits);
  if (!text.empty() || !value || decimal.digits > kDecimalDigitsMax) {
    return std::nullopt;
  }
  decimal.value = negative ? -*value : *value;
  return decimal;
}

bool rescale(Decimal& decimal, int digits) {
  while (decimal.digits < digits) {
    if (__builtin_mul_overflow(decimal.value, int64_t{10}, &decimal.value)) {
      return false;
    }
    ++decimal.digits;
  }
  return true;
}

std::string print_decimal(Decimal decimal) {
  const bool negative = decimal.value < 0;
  std::string text = std::to_string(decimal.value).substr(negative ? 1 : 0);
  const auto digits = static_cast<size_t>(decimal.digits);
  if (digits > 0) {
    if (text.size() <= digits) {
      text.insert(0, digits + 1 - text.size(), '0');
    }
    text.insert(text.size() - digits, ".");
  }
  return (negative ? "-" : "") + text;
}

}  // namespace

ParsedValue<Duration> parse_duration(std::string_view text) {
  const std::string hint = "write for example 90s, 45m, 1h30m, 2d or 1:30:00 (h:mm:ss)";
  if (parse_float(text)) {
    return ValueError{quote(text) + " has no unit of time", hint};
  }
  std::optional<int64_t> ns = clock_ns(text);
  if (!ns) {
    ns = units_ns(text);
  }
  if (!ns || text.empty()) {
    const bool two_fields =
        text.find(':') != std::string_view::npos && text.find(':') == text.rfind(':');
    return ValueError{
        quote(text) + (two_fields ? " may mean hours and minutes or minutes and seconds"
                                  : " is not a duration"),
        hint};
  }
  if (*ns == 0) {
    return ValueError{quote(text) + " is no time at all", "leave the key out for its default"};
  }
  return Duration{*ns};
}

ParsedValue<int64_t> parse_memory(std::string_view text) {
  const std::string hint = "write for example 8GiB, 1.5GB or 512MiB";
  const size_t end = text.find_first_not_of("0123456789.");
  const std::string_view number = text.substr(0, end);
  const std::string_view unit = end == std::string_view::npos ? "" : text.substr(end);
  const std::optional<double> amount = parse_float(number);
  if (amount && unit.empty()) {
    return ValueError{quote(text) + " has no unit of memory", hint};
  }
  for (const Unit& known : kMemoryUnits) {
    if (amount && known.name == unit) {
      const double bytes = *amount * static_cast<double>(known.size);
      if (bytes < 1 || bytes > 1e18) {
        return ValueError{quote(text) + " is not a possible amount of memory", hint};
      }
      return static_cast<int64_t>(bytes);
    }
  }
  return ValueError{quote(text) + " is not an amount of memory", hint};
}

ParsedValue<Amount> parse_amount(std::string_view text) {
  std::optional<Decimal> decimal = parse_decimal(text);
  if (!decimal || decimal->digits > kAmountDigits || decimal->value <= 0 ||
      !rescale(*decimal, kAmountDigits)) {
    return ValueError{quote(text) +
                          " is not an amount: a number above 0 with at most four decimals "
                          "is needed",
                      ""};
  }
  return decimal->value;
}

ParsedValue<std::vector<std::string>> parse_range(std::string_view begin, std::string_view end,
                                                  std::string_view step) {
  std::array<Decimal, 3> numbers;
  const std::array<std::string_view, 3> texts = {begin, end, step};
  int digits = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto decimal = parse_decimal(texts[i]);
    if (!decimal) {
      return ValueError{quote(texts[i]) + " is not a decimal number",
                        "a range is [first, end, step], the end not included"};
    }
    numbers[i] = *decimal;
    digits = std::max(digits, decimal->digits);
  }
  for (Decimal& number : numbers) {
    if (!rescale(number, digits)) {
      return ValueError{"the numbers of the range have too many digits", ""};
    }
  }
  const int64_t move = numbers[2].value;
  if (move == 0) {
    return ValueError{"the step of the range is 0", "a range is [first, end, step]"};
  }
  const bool up = move > 0;
  if (up ? numbers[0].value >= numbers[1].value : numbers[0].value <= numbers[1].value) {
    return std::vector<std::string>();
  }
  const uint64_t span =
      up ? static_cast<uint64_t>(numbers[1].value) - static_cast<uint64_t>(numbers[0].value)
         : static_cast<uint64_t>(numbers[0].value) - static_cast<uint64_t>(numbers[1].value);
  const uint64_t stride = up ? static_cast<uint64_t>(move) : ~static_cast<uint64_t>(move) + 1;
  const uint64_t count = (span - 1) / stride + 1;
  if (count > kRangeItemsMax) {
    return ValueError{"the range has " + std::to_string(count) + " items, at most " +
                          std::to_string(kRangeItemsMax) + " are allowed",
                      ""};
  }
  std::vector<std::string> items;
  Decimal at = numbers[0];
  for (uint64_t i = 0; i < count; ++i) {
    items.push_back(print_decimal(at));
    at.value = i + 1 < count ? at.value + move : at.value;
  }
  return items;
}

bool is_name(std::string_view text) {
  if (text.empty() || std::isalpha(static_cast<unsigned char>(text[0])) == 0) {
    return false;
  }
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') {
      return false;
    }
  }
  return true;
}

std::string print_duration(Duration duration) {
  std::string text;
  int64_t left = duration.ns;
  for (const Unit& unit : kDurationUnits) {
    if (left >= unit.size) {
      text += std::to_string(left / unit.size) + std::string(unit.name);
      left %= unit.size;
    }
  }
  return text.empty() ? "0s" : text;
}

std::string print_memory(int64_t bytes) {
  for (const Unit& unit : {kMemoryUnits[9], kMemoryUnits[8], kMemoryUnits[7], kMemoryUnits[6]}) {
    if (bytes >= unit.size && bytes % unit.size == 0) {
      return std::to_string(bytes / unit.size) + std::string(unit.name);
    }
  }
  return std::to_string(bytes) + "B";
}

std::string print_amount(Amount amount) {
  if (amount % scheduler::kAmountUnit == 0) {
    return std::to_string(amount / scheduler::kAmountUnit);
  }
  std::string text = print_decimal({amount, kAmountDigits});
  text.erase(text.find_last_not_of('0') + 1);
  return text;
}

}  // namespace sluice::io
