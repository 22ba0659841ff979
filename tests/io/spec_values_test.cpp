#include "io/spec_values.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace {

using namespace sluice;
using namespace sluice::io;

template <class T>
std::string error_of(const ParsedValue<T>& parsed) {
  const auto* error = std::get_if<ValueError>(&parsed);
  return error == nullptr ? "" : error->text;
}

int64_t seconds_of(const char* text) {
  return std::get<scheduler::Duration>(parse_duration(text)).ns / 1'000'000'000;
}

std::vector<std::string> range(const char* begin, const char* end, const char* step) {
  const auto parsed = parse_range(begin, end, step);
  const auto* items = std::get_if<std::vector<std::string>>(&parsed);
  return items == nullptr ? std::vector<std::string>{"error: " + error_of(parsed)} : *items;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("spec_values: durations have units or three fields") {
  CHECK(seconds_of("90s") == 90);
  CHECK(seconds_of("45m") == 2700);
  CHECK(seconds_of("1h30m") == 5400);
  CHECK(seconds_of("2d") == 172'800);
  CHECK(seconds_of("12:30:45") == 45'045);
  CHECK(seconds_of("0:01:30") == 90);
  CHECK(std::get<scheduler::Duration>(parse_duration("500ms")).ns == 500'000'000);
}

TEST_CASE("spec_values: bare numbers, two fields and nonsense are no durations") {
  CHECK(error_of(parse_duration("90")) == "'90' has no unit of time");
  CHECK(error_of(parse_duration("1:30")) ==
        "'1:30' may mean hours and minutes or minutes and seconds");
  CHECK(error_of(parse_duration("1:3:00")) == "'1:3:00' is not a duration");
  CHECK(error_of(parse_duration("1:60:00")) == "'1:60:00' is not a duration");
  CHECK(error_of(parse_duration("30m1h")) == "'30m1h' is not a duration");
  CHECK(error_of(parse_duration("9999999999d")) == "'9999999999d' is not a duration");
  CHECK(error_of(parse_duration("0s")) == "'0s' is no time at all");
  CHECK(error_of(parse_duration("")) == "'' is not a duration");
  CHECK(error_of(parse_duration("-5s")) == "'-5s' is not a duration");
}

TEST_CASE("spec_values: memory needs a unit") {
  CHECK(std::get<int64_t>(parse_memory("8GiB")) == int64_t{8} << 30U);
  CHECK(std::get<int64_t>(parse_memory("1.5GB")) == 1'500'000'000);
  CHECK(std::get<int64_t>(parse_memory("100kB")) == 100'000);
  CHECK(error_of(parse_memory("8")) == "'8' has no unit of memory");
  CHECK(error_of(parse_memory("8G")) == "'8G' is not an amount of memory");
  CHECK(error_of(parse_memory("GiB")) == "'GiB' is not an amount of memory");
  CHECK(error_of(parse_memory("0GiB")) == "'0GiB' is not a possible amount of memory");
}

TEST_CASE("spec_values: amounts of counters have four decimals") {
  CHECK(std::get<scheduler::Amount>(parse_amount("5")) == 5 * scheduler::kAmountUnit);
  CHECK(std::get<scheduler::Amount>(parse_amount("0.25")) == scheduler::kAmountUnit / 4);
  for (const char* text : {"0", "-1", "0.00001", "many", "", "99999999999999999"}) {
    CHECK_FALSE(error_of(parse_amount(text)).empty());
  }
}

TEST_CASE("spec_values: ranges are half-open and exact") {
  CHECK(range("0", "3", "1") == Texts{"0", "1", "2"});
  CHECK(range("0", "0.3", "0.1") == Texts{"0.0", "0.1", "0.2"});
  CHECK(range("3", "0", "-1") == Texts{"3", "2", "1"});
  CHECK(range("-0.5", "0.5", "0.25") == Texts{"-0.50", "-0.25", "0.00", "0.25"});
  CHECK(range("0", "3", "0")[0] == "error: the step of the range is 0");
  CHECK(range("3", "0", "1").empty());
  CHECK(range("3", "3", "1").empty());
  CHECK(range("a", "0", "1")[0] == "error: 'a' is not a decimal number");
  CHECK(range("0", "99999999999", "1")[0] ==
        "error: the range has 99999999999 items, at most 10000000 are allowed");
}

TEST_CASE("spec_values: names are letters, digits and underscores") {
  CHECK(is_name("grid_2"));
  CHECK_FALSE(is_name("2grid"));
  CHECK_FALSE(is_name("my-task"));
  CHECK_FALSE(is_name("_x"));
  CHECK_FALSE(is_name(""));
}

TEST_CASE("spec_values: durations and memory print in units that read back") {
  CHECK(print_duration({5'400'000'000'000}) == "1h30m");
  CHECK(print_duration({90'000'000'000}) == "1m30s");
  CHECK(print_memory(int64_t{8} << 30U) == "8GiB");
  CHECK(print_memory(1500) == "1500B");
  CHECK(print_amount(5 * scheduler::kAmountUnit) == "5");
  CHECK(print_amount(scheduler::kAmountUnit / 4) == "0.25");
}
