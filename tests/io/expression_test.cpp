#include "io/expression.h"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "io/numbers.h"

namespace {

using namespace sluice::io;

const std::map<std::string, Value> kNames = {
    {"params.n", *Value::of_type(ValueType::kInt, "010")},
    {"params.tol", *Value::of_type(ValueType::kFloat, "1.0e-4")},
    {"params.fast", *Value::of_type(ValueType::kBool, "true")},
    {"params.name", Value::of_string("3.10")},
    {"params.grids", Value::of_list({"64", "128", "32"})},
    {"params.none", Value::of_list({})},
    {"item.grid", Value::of_text("64")},
    {"item.alpha", Value::of_text("0.10")},
    {"item.country", Value::of_text("no")},
};

std::variant<Value, ExpressionError> evaluate(const std::string& text) {
  const auto parsed = Expression::parse(text);
  if (const auto* error = std::get_if<ExpressionError>(&parsed)) {
    return *error;
  }
  return std::get<Expression>(parsed).evaluate([](const Expression::Name& name) {
    const auto found = kNames.find(name.text());
    return found == kNames.end() ? nullptr : &found->second;
  });
}

std::string text_of(const std::string& text) {
  const auto result = evaluate(text);
  if (const auto* error = std::get_if<ExpressionError>(&result)) {
    return "error at " + std::to_string(error->offset) + ": " + error->text;
  }
  return std::get<Value>(result).text;
}

}  // namespace

TEST_CASE("expression: values that are only passed on print as typed") {
  CHECK(text_of("params.n") == "010");
  CHECK(text_of("params.tol") == "1.0e-4");
  CHECK(text_of("item.alpha") == "0.10");
  CHECK(text_of("item.country") == "no");
  CHECK(text_of("min(params.grids)") == "32");
  CHECK(text_of("max(item.alpha, 0.05)") == "0.10");
}

TEST_CASE("expression: computed values print in the shortest form that reads back") {
  CHECK(text_of("params.n + 1") == "11");
  CHECK(text_of("item.grid * 2") == "128");
  CHECK(text_of("params.tol / 3") == "3.3333333333333335e-05");
  CHECK(text_of("6 / 3") == "2.0");
  CHECK(text_of("0.1 + 0.2") == "0.30000000000000004");
}

TEST_CASE("expression: precedence is that of arithmetic") {
  CHECK(text_of("2 + 3 * 4 - 1") == "13");
  CHECK(text_of("(2 + 3) * -4") == "-20");
  CHECK(text_of("10 - 4 - 3") == "3");
  CHECK(text_of("not 1 == 2 and 2 < 3 or false") == "true");
  CHECK(text_of("false and 1 / 0 == 1") == "false");
}

TEST_CASE("expression: // rounds down and % has the sign of its right side") {
  CHECK(text_of("7 // 2") == "3");
  CHECK(text_of("-7 // 2") == "-4");
  CHECK(text_of("7 // -2") == "-4");
  CHECK(text_of("-7 % 3") == "2");
  CHECK(text_of("7 % -3") == "-2");
  CHECK(text_of("-6 % 3") == "0");
  CHECK(text_of("-7.5 // 2") == "-4.0");
  CHECK(text_of("-7.5 % 2") == "0.5");
}

TEST_CASE("expression: comparison is by number where both are, else by text") {
  CHECK(text_of("item.alpha == 0.1") == "true");
  CHECK(text_of("item.grid < 100") == "true");
  CHECK(text_of("params.name == '3.1'") == "false");
  CHECK(text_of("item.country == 'no'") == "true");
  CHECK(text_of("params.fast == true") == "true");
  CHECK(text_of("9223372036854775807 > 9223372036854775806") == "true");
}

TEST_CASE("expression: len counts items and characters") {
  CHECK(text_of("len(params.grids)") == "3");
  CHECK(text_of("len('naïve')") == "5");
}

TEST_CASE("expression: what is too large or undefined is an error at its operator") {
  CHECK(text_of("9223372036854775807 + 1") ==
        "error at 20: the result does not fit into a number: overflow");
  CHECK(text_of("1e308 * 10").find("overflow") != std::string::npos);
  CHECK(text_of("(-9223372036854775807 - 1) // -1").find("overflow") != std::string::npos);
  CHECK(text_of("(-9223372036854775807 - 1) % -1") == "0");
  CHECK(text_of("1 // 0") == "error at 2: division by zero");
  CHECK(text_of("max(params.none)") ==
        "error at 0: an empty list has no smallest and no largest value");
}

TEST_CASE("expression: wrong types name what was found") {
  CHECK(text_of("1 + item.country") == "error at 4: '+' needs a number, found 'no'");
  CHECK(text_of("params.grids * 2") == "error at 0: '*' needs a number, found a list of 3");
  CHECK(text_of("params.n and true") == "error at 0: expected true or false, found '010'");
  CHECK(text_of("item.country < 3") == "error at 13: cannot compare 'no' with '3'");
  CHECK(text_of("params.name + 1").find("found '3.10'") != std::string::npos);
}

TEST_CASE("expression: syntax errors have exact places") {
  CHECK(text_of("") == "error at 0: expected a value, found the end of the expression");
  CHECK(text_of("1 +") == "error at 3: expected a value, found the end of the expression");
  CHECK(text_of("(1 + 2") == "error at 6: expected ')', found the end of the expression");
  CHECK(text_of("params.") ==
        "error at 7: expected a name after '.', found the end of the expression");
  CHECK(text_of("a b") == "error at 2: expected an operator or the end, found 'b'");
  CHECK(text_of("1 = 2") == "error at 2: there is no operator '='");
  CHECK(text_of("a && b") == "error at 2: there is no operator '&&'");
  CHECK(text_of("2 ** 3") == "error at 2: there is no operator '**'");
  CHECK(text_of("1 < 2 < 3") == "error at 6: two comparisons in a row");
  CHECK(text_of("open('x')") == "error at 0: there is no function 'open'");
  CHECK(text_of("'abc") == "error at 0: the text that begins here has no closing quote");
  CHECK(text_of("12ab") == "error at 0: '12ab' is not a number");
  CHECK(text_of("a $ b") == "error at 2: unexpected character '$' in an expression");
  CHECK(text_of("1 + and") == "error at 4: expected a value, found 'and'");
}

TEST_CASE("expression: an endless nesting is refused, not a crash") {
  CHECK(text_of(std::string(5000, '(')).find("bytes") != std::string::npos);
  CHECK(text_of(std::string(999, '-') + "1") == "-1");
}

TEST_CASE("expression: a lone name is told from one in a computation") {
  const auto is_name = [](const char* text) {
    return std::get<Expression>(Expression::parse(text)).is_name();
  };
  CHECK(is_name(" in.mesh.paths "));
  CHECK_FALSE(is_name("in.mesh + 1"));
}

TEST_CASE("numbers: whole texts only, in range, and no locale") {
  CHECK(parse_int("+7") == 7);
  CHECK(parse_int("010") == 10);
  CHECK_FALSE(parse_int("1.0"));
  CHECK_FALSE(parse_int("+-3"));
  CHECK_FALSE(parse_int(""));
  CHECK_FALSE(parse_int("9223372036854775808"));
  CHECK(parse_float("1.0e-4") == 1.0e-4);
  CHECK(parse_float(".5") == 0.5);
  CHECK_FALSE(parse_float("inf"));
  CHECK_FALSE(parse_float("nan"));
  CHECK_FALSE(parse_float("0x10"));
  CHECK_FALSE(parse_float("1e999"));
  CHECK_FALSE(parse_float("1,5"));
}
