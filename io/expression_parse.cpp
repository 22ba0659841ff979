#include <cctype>
#include <utility>

#include "io/expression.h"
#include "io/numbers.h"

namespace sluice::io {

namespace {

// Bounds the depth of the tree, and so of the recursion that walks it.
constexpr size_t kExpressionBytesMax = 1000;

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_name_character(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

struct Token {
  enum class Kind : uint8_t { kEnd, kNumber, kText, kName, kSymbol };
  Kind kind = Kind::kEnd;
  size_t offset = 0;
  std::string text;
};

std::string shown(const Token& token) {
  return token.kind == Token::Kind::kEnd ? "the end of the expression" : "'" + token.text + "'";
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  // Throws ExpressionError; caught in Expression::parse.
  Token next() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
      ++at_;
    }
    if (at_ == text_.size()) {
      return {Token::Kind::kEnd, at_, ""};
    }
    const char c = text_[at_];
    if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) {
      return number();
    }
    if (is_letter(c) || c == '_') {
      return name();
    }
    if (c == '\'' || c == '"') {
      return quoted(c);
    }
    return symbol();
  }

 private:
  Token take(Token::Kind kind, size_t end) {
    Token token{kind, at_, std::string(text_.substr(at_, end - at_))};
    at_ = end;
    return token;
  }

  Token number() {
    size_t end = at_;
    while (end < text_.size()) {
      const char c = text_[end];
      const bool sign = (c == '+' || c == '-') && (text_[end - 1] == 'e' || text_[end - 1] == 'E');
      if (!is_name_character(c) && c != '.' && !(sign && end > at_)) {
        break;
      }
      ++end;
    }
    Token token = take(Token::Kind::kNumber, end);
    if (!parse_float(token.text)) {
      throw ExpressionError{token.offset, "'" + token.text + "' is not a number", ""};
    }
    return token;
  }

  Token name() {
    size_t end = at_;
    while (end < text_.size() && is_name_character(text_[end])) {
      ++end;
    }
    return take(Token::Kind::kName, end);
  }

  Token quoted(char quote) {
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) {
      throw ExpressionError{at_, "the text that begins here has no closing quote", ""};
    }
    Token token{Token::Kind::kText, at_, std::string(text_.substr(at_ + 1, end - at_ - 1))};
    at_ = end + 1;
    return token;
  }

  Token symbol() {
    const std::string_view two = text_.substr(at_, 2);
    for (const std::string_view known : {"==", "!=", "<=", ">=", "//"}) {
      if (two == known) {
        return take(Token::Kind::kSymbol, at_ + 2);
      }
    }
    for (const auto& [wrong, right] :
         {std::pair<std::string_view, const char*>{"&&", "and"}, {"||", "or"}, {"**", "x * x"}}) {
      if (two == wrong) {
        throw ExpressionError{at_, "there is no operator '" + std::string(two) + "'",
                              std::string("write '") + right + "'"};
      }
    }
    const char c = text_[at_];
    if (std::string_view("+-*/%<>().,").find(c) != std::string_view::npos) {
      return take(Token::Kind::kSymbol, at_ + 1);
    }
    const std::string found(1, c);
    if (c == '=' || c == '!') {
      throw ExpressionError{at_, "there is no operator '" + found + "'",
                            c == '=' ? "to compare write '=='" : "write 'not' or '!='"};
    }
    throw ExpressionError{at_, "unexpected character '" + found + "' in an expression",
                          c == '{'   ? "an expression has two braces: ${{ name }}"
                          : c == '[' ? "a list is a param or an input; its items have no numbers"
                                     : ""};
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) : scanner_(text) { advance(); }

  Expression run() {
    expression_.root_ = parse_or();
    if (token_.kind != Token::Kind::kEnd) {
      throw ExpressionError{token_.offset,
                            "expected an operator or the end, found " + shown(token_),
                            "the operators are + - * / // % == != < <= > >= and or not"};
    }
    return std::move(expression_);
  }

 private:
  using Op = Expression::Op;
  using Kind = Token::Kind;

  void advance() { token_ = scanner_.next(); }
  [[nodiscard]] bool is(Kind kind, std::string_view text) const {
    return token_.kind == kind && token_.text == text;
  }
  bool accept(Kind kind, std::string_view text) {
    if (!is(kind, text)) {
      return false;
    }
    advance();
    return true;
  }
  uint32_t add(Op op, size_t offset, std::vector<uint32_t> children) {
    Expression::Node node;
    node.op = op;
    node.offset = offset;
    node.children = std::move(children);
    expression_.nodes_.push_back(std::move(node));
    return static_cast<uint32_t>(expression_.nodes_.size() - 1);
  }

  uint32_t parse_or() {
    uint32_t left = parse_and();
    while (is(Kind::kName, "or")) {
      const size_t offset = token_.offset;
      advance();
      left = add(Op::kOr, offset, {left, parse_and()});
    }
    return left;
  }

  uint32_t parse_and() {
    uint32_t left = parse_not();
    while (is(Kind::kName, "and")) {
      const size_t offset = token_.offset;
      advance();
      left = add(Op::kAnd, offset, {left, parse_not()});
    }
    return left;
  }

  uint32_t parse_not() {
    const size_t offset = token_.offset;
    if (accept(Kind::kName, "not")) {
      return add(Op::kNot, offset, {parse_not()});
    }
    return parse_compare();
  }

  std::optional<Op> operator_among(
      std::initializer_list<std::pair<std::string_view, Op>> operators) const {
    for (const auto& [text, op] : operators) {
      if (is(Kind::kSymbol, text)) {
        return op;
      }
    }
    return std::nullopt;
  }

  std::optional<Op> comparison() const {
    return operator_among({{"==", Op::kEqual},
                           {"!=", Op::kNotEqual},
                           {"<", Op::kLess},
                           {"<=", Op::kLessEqual},
                           {">", Op::kGreater},
                           {">=", Op::kGreaterEqual}});
  }

  uint32_t parse_compare() {
    const uint32_t left = parse_sum();
    const std::optional<Op> op = comparison();
    if (!op) {
      return left;
    }
    const size_t offset = token_.offset;
    advance();
    const uint32_t result = add(*op, offset, {left, parse_sum()});
    if (comparison()) {
      throw ExpressionError{token_.offset, "two comparisons in a row", "join them with 'and'"};
    }
    return result;
  }

  uint32_t parse_sum() {
    uint32_t left = parse_product();
    while (const auto op = operator_among({{"+", Op::kAdd}, {"-", Op::kSubtract}})) {
      const size_t offset = token_.offset;
      advance();
      left = add(*op, offset, {left, parse_product()});
    }
    return left;
  }

  uint32_t parse_product() {
    uint32_t left = parse_sign();
    while (const auto op = operator_among({{"*", Op::kMultiply},
                                           {"/", Op::kDivide},
                                           {"//", Op::kDivideDown},
                                           {"%", Op::kRemainder}})) {
      const size_t offset = token_.offset;
      advance();
      left = add(*op, offset, {left, parse_sign()});
    }
    return left;
  }

  uint32_t parse_sign() {
    const size_t offset = token_.offset;
    if (accept(Kind::kSymbol, "-")) {
      return add(Op::kNegate, offset, {parse_sign()});
    }
    return parse_primary();
  }

  uint32_t literal(Value value) {
    const uint32_t index = add(Op::kLiteral, token_.offset, {});
    expression_.nodes_[index].literal = std::move(value);
    advance();
    return index;
  }

  uint32_t parse_primary() {
    if (token_.kind == Kind::kNumber) {
      const bool is_int = parse_int(token_.text).has_value();
      if (!is_int && token_.text.find_first_not_of("0123456789") == std::string::npos) {
        throw ExpressionError{token_.offset, shown(token_) + " is a whole number beyond 64 bits",
                              "write it with a point or an exponent to compute with floats"};
      }
      return literal(*Value::of_type(is_int ? ValueType::kInt : ValueType::kFloat, token_.text));
    }
    if (token_.kind == Kind::kText) {
      return literal(Value::of_string(token_.text));
    }
    if (is(Kind::kName, "true") || is(Kind::kName, "false")) {
      return literal(Value::of_bool(token_.text == "true"));
    }
    if (accept(Kind::kSymbol, "(")) {
      const uint32_t inner = parse_or();
      expect(")");
      return inner;
    }
    const bool keyword = is(Kind::kName, "and") || is(Kind::kName, "or") || is(Kind::kName, "not");
    if (token_.kind != Kind::kName || keyword) {
      throw ExpressionError{token_.offset, "expected a value, found " + shown(token_), ""};
    }
    return parse_name_or_call();
  }

  uint32_t parse_name_or_call() {
    Expression::Name name{{token_.text}, token_.offset};
    advance();
    if (is(Kind::kSymbol, "(")) {
      return parse_call(name);
    }
    while (accept(Kind::kSymbol, ".")) {
      if (token_.kind != Kind::kName) {
        throw ExpressionError{token_.offset, "expected a name after '.', found " + shown(token_),
                              ""};
      }
      name.parts.push_back(token_.text);
      advance();
    }
    const uint32_t index = add(Op::kName, name.offset, {});
    expression_.nodes_[index].name = static_cast<uint32_t>(expression_.names_.size());
    expression_.names_.push_back(std::move(name));
    return index;
  }

  uint32_t parse_call(const Expression::Name& name) {
    const std::string& function = name.parts[0];
    if (function != "len" && function != "min" && function != "max") {
      throw ExpressionError{name.offset, "there is no function '" + function + "'",
                            "the functions are len, min and max"};
    }
    advance();
    std::vector<uint32_t> arguments{parse_or()};
    while (accept(Kind::kSymbol, ",")) {
      arguments.push_back(parse_or());
    }
    expect(")");
    if (function == "len" && arguments.size() != 1) {
      throw ExpressionError{
          name.offset, "len takes one argument, found " + std::to_string(arguments.size()), ""};
    }
    const Op op = function == "len" ? Op::kLen : function == "min" ? Op::kMin : Op::kMax;
    return add(op, name.offset, std::move(arguments));
  }

  void expect(std::string_view symbol) {
    if (!accept(Kind::kSymbol, symbol)) {
      throw ExpressionError{token_.offset,
                            "expected '" + std::string(symbol) + "', found " + shown(token_), ""};
    }
  }

  Scanner scanner_;
  Token token_;
  Expression expression_;
};

std::variant<Expression, ExpressionError> Expression::parse(std::string_view text) {
  if (text.size() > kExpressionBytesMax) {
    return ExpressionError{0,
                           "the expression has " + std::to_string(text.size()) +
                               " bytes, at most " + std::to_string(kExpressionBytesMax) +
                               " are allowed",
                           ""};
  }
  try {
    return ExpressionParser(text).run();
  } catch (const ExpressionError& error) {
    return error;
  }
}

}  // namespace sluice::io
