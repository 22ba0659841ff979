#include "io/expression.h"

#include <cmath>
#include <limits>
#include <utility>

#include "io/numbers.h"

namespace sluice::io {

Value Value::of_text(std::string text) {
  Value value;
  value.text = std::move(text);
  return value;
}
Value Value::of_int(int64_t number) {
  Value value;
  value.kind = Kind::kInt;
  value.integer = number;
  value.text = std::to_string(number);
  return value;
}
Value Value::of_float(double number) {
  Value value;
  value.kind = Kind::kFloat;
  value.real = number;
  value.text = print_float(number);
  return value;
}
Value Value::of_bool(bool truth) {
  Value value;
  value.kind = Kind::kBool;
  value.truth = truth;
  value.text = truth ? "true" : "false";
  return value;
}
Value Value::of_string(std::string text) {
  Value value;
  value.kind = Kind::kString;
  value.text = std::move(text);
  return value;
}
Value Value::of_list(std::vector<std::string> texts) {
  Value value;
  value.kind = Kind::kList;
  value.list = std::move(texts);
  return value;
}

std::optional<Value> Value::of_type(ValueType type, const std::string& text) {
  Value value = of_string(text);
  if (type == ValueType::kInt) {
    const std::optional<int64_t> number = parse_int(text);
    if (!number) {
      return std::nullopt;
    }
    value.kind = Kind::kInt;
    value.integer = *number;
  } else if (type == ValueType::kFloat) {
    const std::optional<double> number = parse_float(text);
    if (!number) {
      return std::nullopt;
    }
    value.kind = Kind::kFloat;
    value.real = *number;
  } else if (type == ValueType::kBool) {
    if (text != "true" && text != "false") {
      return std::nullopt;
    }
    value.kind = Kind::kBool;
    value.truth = text == "true";
  }
  return value;
}

std::string Expression::Name::text() const {
  std::string out;
  for (const std::string& part : parts) {
    out += out.empty() ? part : "." + part;
  }
  return out;
}

// Walks the tree. A failure sets `error_` once; what is computed after it is not looked at.
class ExpressionEvaluator {
 public:
  ExpressionEvaluator(const Expression& expression, const Expression::Lookup& lookup)
      : expression_(expression), lookup_(lookup) {}

  std::variant<Value, ExpressionError> run() {
    Value value = evaluate(expression_.root_);
    if (error_) {
      return *error_;
    }
    return value;
  }

 private:
  using Op = Expression::Op;
  using Node = Expression::Node;

  // Both as int64 when both are, else both as double.
  struct Number {
    bool is_int = false;
    int64_t integer = 0;
    double real = 0;
    [[nodiscard]] double as_real() const { return is_int ? static_cast<double>(integer) : real; }
    // Every int64 and every double: comparison loses no digit.
    [[nodiscard]] long double exact() const {
      static_assert(std::numeric_limits<long double>::digits >= 64);
      return is_int ? static_cast<long double>(integer) : static_cast<long double>(real);
    }
  };

  void fail(size_t offset, std::string text, std::string hint = "") {
    if (!error_) {
      error_ = ExpressionError{offset, std::move(text), std::move(hint)};
    }
  }

  static std::string shown(const Value& value) {
    return value.kind == Value::Kind::kList ? "a list of " + std::to_string(value.list.size())
                                            : "'" + value.text + "'";
  }

  // A whole number that does not fit is no float: it would lose digits.
  static bool is_too_large(const Value& value) {
    return value.kind == Value::Kind::kText && !value.text.empty() &&
           value.text.find_first_not_of("0123456789", value.text.front() == '-' ? 1 : 0) ==
               std::string::npos &&
           value.text != "-" && !parse_int(value.text);
  }

  static std::optional<Number> as_number(const Value& value) {
    if (value.kind == Value::Kind::kInt) {
      return Number{true, value.integer, 0};
    }
    if (value.kind == Value::Kind::kFloat) {
      return Number{false, 0, value.real};
    }
    if (value.kind != Value::Kind::kText) {
      return std::nullopt;
    }
    if (const auto integer = parse_int(value.text)) {
      return Number{true, *integer, 0};
    }
    if (const auto real = parse_float(value.text)) {
      return Number{false, 0, *real};
    }
    return std::nullopt;
  }

  Number number(uint32_t index, const Value& value, std::string_view what) {
    const std::optional<Number> found = as_number(value);
    if (found && is_too_large(value)) {
      fail(expression_.nodes_[index].offset, shown(value) + " is a whole number beyond 64 bits",
           "write it with a point or an exponent to compute with floats");
      return {};
    }
    if (!found) {
      fail(expression_.nodes_[index].offset,
           std::string(what) + " needs a number, found " + shown(value),
           what == "'+'" ? "texts are joined by writing them side by side" : "");
      return {};
    }
    return *found;
  }

  bool truth(uint32_t index) {
    const Value value = evaluate(index);
    if (value.kind == Value::Kind::kBool) {
      return value.truth;
    }
    if (value.kind == Value::Kind::kText && (value.text == "true" || value.text == "false")) {
      return value.text == "true";
    }
    fail(expression_.nodes_[index].offset, "expected true or false, found " + shown(value));
    return false;
  }

  Value evaluate(uint32_t index) {
    if (error_) {
      return {};
    }
    const Node& node = expression_.nodes_[index];
    switch (node.op) {
      case Op::kLiteral:
        return node.literal;
      case Op::kName:
        return named(node);
      case Op::kOr:
        return Value::of_bool(truth(node.children[0]) || truth(node.children[1]));
      case Op::kAnd:
        return Value::of_bool(truth(node.children[0]) && truth(node.children[1]));
      case Op::kNot:
        return Value::of_bool(!truth(node.children[0]));
      case Op::kEqual:
      case Op::kNotEqual:
      case Op::kLess:
      case Op::kLessEqual:
      case Op::kGreater:
      case Op::kGreaterEqual:
        return compare(node);
      case Op::kNegate:
        return negate(node);
      case Op::kLen:
        return length(node);
      case Op::kMin:
      case Op::kMax:
        return extreme(node);
      default:
        return arithmetic(node);
    }
  }

  Value named(const Node& node) {
    const Expression::Name& name = expression_.names_[node.name];
    const Value* value = lookup_(name);
    if (value == nullptr) {
      fail(node.offset, "'" + name.text() + "' has no value here");
      return {};
    }
    return *value;
  }

  template <class T>
  static bool holds(Op op, const T& a, const T& b) {
    switch (op) {
      case Op::kEqual:
        return a == b;
      case Op::kNotEqual:
        return a != b;
      case Op::kLess:
        return a < b;
      case Op::kLessEqual:
        return a <= b;
      case Op::kGreater:
        return a > b;
      default:
        return a >= b;
    }
  }

  Value compare(const Node& node) {
    using Kind = Value::Kind;
    const Value a = evaluate(node.children[0]);
    const Value b = evaluate(node.children[1]);
    const auto x = as_number(a);
    const auto y = as_number(b);
    if (x && y) {
      return Value::of_bool(holds(node.op, x->exact(), y->exact()));
    }
    const auto textual = [](const Value& v) {
      return v.kind == Kind::kText || v.kind == Kind::kString;
    };
    if (textual(a) && textual(b)) {
      return Value::of_bool(holds(node.op, a.text, b.text));
    }
    const bool only_equality = node.op == Op::kEqual || node.op == Op::kNotEqual;
    const auto boolean = [](const Value& v) {
      return v.kind == Kind::kBool ||
             (v.kind == Kind::kText && (v.text == "true" || v.text == "false"));
    };
    if (only_equality && boolean(a) && boolean(b)) {
      return Value::of_bool(holds(node.op, a.text, b.text));
    }
    fail(node.offset, "cannot compare " + shown(a) + " with " + shown(b),
         "both sides must be numbers or both texts");
    return {};
  }

  Value negate(const Node& node) {
    const Number x = number(node.children[0], evaluate(node.children[0]), "'-'");
    if (!x.is_int) {
      return Value::of_float(-x.real);
    }
    if (x.integer == std::numeric_limits<int64_t>::min()) {
      return overflow(node);
    }
    return Value::of_int(-x.integer);
  }

  Value overflow(const Node& node) {
    fail(node.offset, "the result does not fit into a number: overflow");
    return {};
  }

  static std::string_view symbol(Op op) {
    switch (op) {
      case Op::kAdd:
        return "'+'";
      case Op::kSubtract:
        return "'-'";
      case Op::kMultiply:
        return "'*'";
      case Op::kDivide:
        return "'/'";
      case Op::kDivideDown:
        return "'//'";
      default:
        return "'%'";
    }
  }

  Value arithmetic(const Node& node) {
    const Value left = evaluate(node.children[0]);
    const Value right = evaluate(node.children[1]);
    const Number a = number(node.children[0], left, symbol(node.op));
    const Number b = number(node.children[1], right, symbol(node.op));
    if (error_) {
      return {};
    }
    const bool divides =
        node.op == Op::kDivide || node.op == Op::kDivideDown || node.op == Op::kRemainder;
    if (divides && b.as_real() == 0) {
      fail(node.offset, "division by zero");
      return {};
    }
    if (a.is_int && b.is_int && node.op != Op::kDivide) {
      return whole(node, a.integer, b.integer);
    }
    const double result = real(node.op, a.as_real(), b.as_real());
    return std::isfinite(result) ? Value::of_float(result) : overflow(node);
  }

  static double real(Op op, double a, double b) {
    switch (op) {
      case Op::kAdd:
        return a + b;
      case Op::kSubtract:
        return a - b;
      case Op::kMultiply:
        return a * b;
      case Op::kDivide:
        return a / b;
      case Op::kDivideDown:
        // Not floor(a / b), which is rounded: 0.1 goes 9 times into 1, and `%` leaves a rest.
        return std::round((a - remainder(a, b)) / b);
      default:
        return remainder(a, b);
    }
  }

  // With the sign of b.
  static double remainder(double a, double b) {
    const double rest = std::fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
  }

  Value whole(const Node& node, int64_t a, int64_t b) {
    int64_t result = 0;
    switch (node.op) {
      case Op::kAdd:
        return __builtin_add_overflow(a, b, &result) ? overflow(node) : Value::of_int(result);
      case Op::kSubtract:
        return __builtin_sub_overflow(a, b, &result) ? overflow(node) : Value::of_int(result);
      case Op::kMultiply:
        return __builtin_mul_overflow(a, b, &result) ? overflow(node) : Value::of_int(result);
      default:
        break;
    }
    if (b == -1) {  // the smallest integer has no negative
      if (node.op == Op::kRemainder) {
        return Value::of_int(0);
      }
      return a == std::numeric_limits<int64_t>::min() ? overflow(node) : Value::of_int(-a);
    }
    const int64_t rest = a % b;
    const bool adjust = rest != 0 && (rest < 0) != (b < 0);
    if (node.op == Op::kRemainder) {
      return Value::of_int(adjust ? rest + b : rest);
    }
    return Value::of_int(a / b - (adjust ? 1 : 0));
  }

  Value length(const Node& node) {
    const Value value = evaluate(node.children[0]);
    if (value.kind == Value::Kind::kList) {
      return Value::of_int(static_cast<int64_t>(value.list.size()));
    }
    int64_t characters = 0;
    for (const char c : value.text) {
      characters += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
    }
    return Value::of_int(characters);
  }

  // Gives back one of its arguments as it was typed.
  Value extreme(const Node& node) {
    std::optional<Value> best;
    Number best_number;
    const auto offer = [&](uint32_t child, Value value) {
      const Number found = number(child, value, node.op == Op::kMin ? "min" : "max");
      const bool better = node.op == Op::kMin ? found.exact() < best_number.exact()
                                              : found.exact() > best_number.exact();
      if (!best || better) {
        best = std::move(value);
        best_number = found;
      }
    };
    for (const uint32_t child : node.children) {
      Value value = evaluate(child);
      if (value.kind != Value::Kind::kList) {
        offer(child, std::move(value));
        continue;
      }
      for (std::string& text : value.list) {
        offer(child, Value::of_text(std::move(text)));
      }
    }
    if (!best) {
      fail(node.offset, "an empty list has no smallest and no largest value");
      return {};
    }
    return *best;
  }

  const Expression& expression_;
  const Expression::Lookup& lookup_;
  std::optional<ExpressionError> error_;
};

std::variant<Value, ExpressionError> Expression::evaluate(const Lookup& lookup) const {
  return ExpressionEvaluator(*this, lookup).run();
}

}  // namespace sluice::io
