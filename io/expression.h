// The expressions inside `${{ }}`: names, numbers, texts, arithmetic, comparison, and/or/not, len,
// min, max. No files, no environment, no loops; overflow and wrong types are errors with their
// place.
//
//   or:      and ("or" and)*            sum:     product (("+" | "-") product)*
//   and:     not ("and" not)*           product: sign (("*" | "/" | "//" | "%") sign)*
//   not:     "not" not | compare        sign:    "-" sign | primary
//   compare: sum (op sum)?              primary: number | "text" | true | false | name ("." name)*
//                                                | len|min|max "(" or ("," or)* ")" | "(" or ")"
//
// "/" is float division, "//" rounds down, "%" has the sign of its right side. A value that is only
// passed on prints as it was typed; a computed one in the shortest form that reads back the same.
// Values; any thread. Test: tests/io/expression_test.cpp
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io/attempt_spec.h"

namespace sluice::io {

struct Value {
  // kText: typed by the user without a declared type (an item): a number where one is needed.
  enum class Kind : uint8_t { kText, kInt, kFloat, kBool, kString, kList };
  Kind kind = Kind::kText;
  std::string text;  // not for lists
  int64_t integer = 0;
  double real = 0;
  bool truth = false;
  std::vector<std::string> list;

  [[nodiscard]] static Value of_text(std::string text);
  [[nodiscard]] static Value of_int(int64_t value);
  [[nodiscard]] static Value of_float(double value);
  [[nodiscard]] static Value of_bool(bool value);
  [[nodiscard]] static Value of_string(std::string text);
  [[nodiscard]] static Value of_list(std::vector<std::string> texts);
  // A text of a declared type, kept as typed; none when it is not of that type. Not for lists.
  [[nodiscard]] static std::optional<Value> of_type(ValueType type, const std::string& text);
};

struct ExpressionError {
  size_t offset = 0;  // in bytes, in the text that was parsed
  std::string text;
  std::string hint;
};

class Expression {
 public:
  struct Name {
    std::vector<std::string> parts;  // {"params", "tol"}
    size_t offset = 0;
    [[nodiscard]] std::string text() const;
  };
  // The value of a name; null: not known (the caller has checked names before and has its reason).
  using Lookup = std::function<const Value*(const Name&)>;

  [[nodiscard]] static std::variant<Expression, ExpressionError> parse(std::string_view text);
  [[nodiscard]] const std::vector<Name>& names() const { return names_; }
  // A name and nothing else.
  [[nodiscard]] bool is_name() const { return nodes_[root_].op == Op::kName; }
  [[nodiscard]] std::variant<Value, ExpressionError> evaluate(const Lookup& lookup) const;

 private:
  friend class ExpressionParser;
  friend class ExpressionEvaluator;
  enum class Op : uint8_t {
    kLiteral,
    kName,
    kOr,
    kAnd,
    kNot,
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kDivideDown,
    kRemainder,
    kNegate,
    kLen,
    kMin,
    kMax,
  };
  struct Node {
    Op op = Op::kLiteral;
    size_t offset = 0;
    std::vector<uint32_t> children;
    uint32_t name = 0;  // kName: index into names_
    Value literal;
  };
  std::vector<Node> nodes_;
  std::vector<Name> names_;
  uint32_t root_ = 0;
};

}  // namespace sluice::io
