// Fuzzes `${{ }}`: texts with expressions, the words of `run:`, and the evaluation. A place in a
// message lies within the text; a computed number prints in a form that reads back.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/expression.h"
#include "io/numbers.h"
#include "io/template.h"
#include "tests/support/fuzz.h"

namespace {

using namespace sluice::io;

const Value* lookup(const Expression::Name& name) {
  static const std::vector<Value> kValues = {
      Value::of_text("64"),       Value::of_text("no"), Value::of_int(INT64_MIN),
      Value::of_float(1e-300),    Value::of_bool(true), Value::of_string("3.10"),
      Value::of_list({"1", "2"}), Value::of_list({}),   Value::of_list({"x"}),
  };
  const size_t index = name.text().size() % (kValues.size() + 1);
  return index < kValues.size() ? &kValues[index] : nullptr;
}

void check_error(const ExpressionError& error, std::string_view text) {
  sluice::test::must(error.offset <= text.size(), "an error has its place in the text");
  sluice::test::must(!error.text.empty(), "an error says something");
}

void check_expression(const Expression& expression, std::string_view text) {
  const auto result = expression.evaluate(lookup);
  if (const auto* error = std::get_if<ExpressionError>(&result)) {
    check_error(*error, text);
    return;
  }
  const Value& value = std::get<Value>(result);
  sluice::test::must(value.kind != Value::Kind::kInt || parse_int(value.text) == value.integer,
                     "an integer reads back");
  sluice::test::must(value.kind != Value::Kind::kFloat || parse_float(value.text) == value.real,
                     "a float reads back");
}

void check_parts(const Template& parts, std::string_view text) {
  for (const TemplatePart& part : parts) {
    if (part.use != TemplatePart::Use::kText) {
      sluice::test::must(text.substr(part.offset, part.text.size()) == part.text,
                         "a part knows its place");
      check_expression(part.expression.front(), part.text);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto parsed = Expression::parse(text);
  if (const auto* error = std::get_if<ExpressionError>(&parsed)) {
    check_error(*error, text);
  } else {
    check_expression(std::get<Expression>(parsed), text);
  }
  const ParsedTemplate whole = parse_template(text);
  for (const ExpressionError& error : whole.errors) check_error(error, text);
  check_parts(whole.parts, text);
  const ParsedCommand command = split_command(text);
  for (const ExpressionError& error : command.errors) check_error(error, text);
  for (const Template& word : command.words) check_parts(word, text);
  return 0;
}
