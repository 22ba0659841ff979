// Random expressions against a naive oracle. The oracle walks the random tree itself, knows nothing
// of the parser, and computes by other means: whole numbers in 128 bits, floats for // and exact
// comparison as multiples of 2^-72, printing by trying precisions. It also says at which byte an
// error must be found. SLUICE_SEED=<n> repeats one seed, SLUICE_SEEDS=<n> sets how many.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "io/expression.h"
#include "tests/support/seeds.h"

namespace {

using namespace sluice::io;
using Wide = __int128;

constexpr Wide kLeast = INT64_MIN;
constexpr Wide kMost = INT64_MAX;

struct Bad {
  size_t offset = 0;
};
struct Unknown {};  // outside of what the oracle can compute exactly
struct Whole {
  Wide value = 0;
};
struct Real {
  double value = 0;
};
struct Words {  // texts: typed ones may be numbers
  std::string text;
  bool may_be_number = false;
};
struct Many {
  std::vector<std::string> texts;
};
// What a tree is worth, and how it prints when it is untouched.
struct Worth {
  std::variant<Unknown, Whole, Real, bool, Words, Many> is;
  std::string typed;  // empty: computed
};
using Answer = std::variant<Bad, Worth>;

struct Tree {
  std::string op;  // a symbol, "len", "min", "max", "neg", "not", "and", "or", or "" for a leaf
  std::vector<std::unique_ptr<Tree>> parts;
  std::string leaf;  // as written
  Worth worth;       // of a leaf
  size_t offset = 0;
};

const std::map<std::string, std::pair<Value, Worth>>& names() {
  static const std::map<std::string, std::pair<Value, Worth>> kNames = {
      {"params.n", {*Value::of_type(ValueType::kInt, "010"), {Whole{10}, "010"}}},
      {"params.big",
       {*Value::of_type(ValueType::kInt, "9007199254740993"),
        {Whole{9007199254740993}, "9007199254740993"}}},
      {"params.tol", {*Value::of_type(ValueType::kFloat, "2.50e-1"), {Real{0.25}, "2.50e-1"}}},
      {"params.fast", {*Value::of_type(ValueType::kBool, "true"), {true, "true"}}},
      {"params.name", {Value::of_string("3.10"), {Words{"3.10", false}, "3.10"}}},
      {"params.grids",
       {Value::of_list({"64", "0128", "-3.5"}), {Many{{"64", "0128", "-3.5"}}, ""}}},
      {"params.none", {Value::of_list({}), {Many{}, ""}}},
      {"params.mixed", {Value::of_list({"1", "x"}), {Many{{"1", "x"}}, ""}}},
      {"item.grid", {Value::of_text("+64"), {Words{"+64", true}, "+64"}}},
      {"item.alpha", {Value::of_text("0.10"), {Words{"0.10", true}, "0.10"}}},
      {"item.country", {Value::of_text("no"), {Words{"no", true}, "no"}}},
      {"item.flag", {Value::of_text("false"), {Words{"false", true}, "false"}}}};
  return kNames;
}

// ---- random trees ----
class Gardener {
 public:
  explicit Gardener(uint64_t seed) : random_(seed) {}

  std::unique_ptr<Tree> number(int depth) {
    if (depth == 0 || chance(15)) {
      return chance(8) ? anything(0) : number_leaf();
    }
    static const std::array<const char*, 6> kBinary = {"+", "-", "*", "/", "//", "%"};
    const int which = below(9);
    if (which < 6) {
      return node(kBinary[static_cast<size_t>(which)], operand(depth), operand(depth));
    }
    if (which == 6) {
      return node("neg", operand(depth));
    }
    if (which == 7) {
      return node("len", chance(70) ? name_leaf("params.grids") : anything(0));
    }
    auto tree = node(chance(50) ? "min" : "max", chance(30) ? list_leaf() : operand(depth));
    while (chance(50)) {
      tree->parts.push_back(chance(20) ? list_leaf() : operand(depth));
    }
    return tree;
  }

  std::unique_ptr<Tree> truth(int depth) {
    if (depth == 0 || chance(10)) {
      return chance(70)   ? literal(chance(50) ? "true" : "false")
             : chance(50) ? name_leaf("params.fast")
                          : name_leaf("item.flag");
    }
    static const std::array<const char*, 6> kCompare = {"==", "!=", "<", "<=", ">", ">="};
    switch (below(4)) {
      case 0:
        return node("not", truth(depth - 1));
      case 1:
        return node(chance(50) ? "and" : "or", truth(depth - 1), truth(depth - 1));
      case 2:
        return node(kCompare[static_cast<size_t>(below(6))], anything(depth - 1),
                    anything(depth - 1));
      default:
        return node(kCompare[static_cast<size_t>(below(6))], operand(depth), operand(depth));
    }
  }

  std::unique_ptr<Tree> anything(int depth) {
    switch (below(5)) {
      case 0:
        return number(depth);
      case 1:
        return truth(depth);
      case 2:
        return list_leaf();
      case 3:
        return literal(chance(50) ? "'a b'" : "\"3.10\"");
      default: {
        auto at = names().begin();
        std::advance(at, below(static_cast<int>(names().size())));
        return name_leaf(at->first);
      }
    }
  }

  // Writes the tree; brackets where they are needed, and sometimes where not.
  void write(Tree& tree, int least, std::string& out) {
    const int own = strength(tree.op);
    const bool brackets = own < least || chance(10);
    if (brackets) out += "(";
    blank(out);
    if (tree.op.empty()) {
      tree.offset = out.size();
      out += tree.leaf;
    } else if (tree.op == "len" || tree.op == "min" || tree.op == "max") {
      tree.offset = out.size();
      out += tree.op + "(";
      for (size_t i = 0; i < tree.parts.size(); ++i) {
        if (i > 0) out += ",";
        write(*tree.parts[i], 0, out);
      }
      out += ")";
    } else if (tree.op == "neg" || tree.op == "not") {
      tree.offset = out.size();
      out += tree.op == "neg" ? "-" : "not ";
      write(*tree.parts[0], own, out);
    } else {
      // A comparison does not stand in another; the others group to the left.
      write(*tree.parts[0], own == 4 ? own + 1 : own, out);
      out += " ";
      tree.offset = out.size();
      out += tree.op + " ";
      write(*tree.parts[1], own + 1, out);
    }
    blank(out);
    if (brackets) out += ")";
  }

  bool chance(int percent) { return below(100) < percent; }

 private:
  int below(int end) { return std::uniform_int_distribution<int>(0, end - 1)(random_); }
  void blank(std::string& out) {
    if (chance(20)) out += chance(50) ? " " : "  ";
  }

  static int strength(const std::string& op) {
    static const std::map<std::string, int> kStrengths = {
        {"or", 1}, {"and", 2}, {"not", 3}, {"==", 4}, {"!=", 4}, {"<", 4},  {"<=", 4}, {">", 4},
        {">=", 4}, {"+", 5},   {"-", 5},   {"*", 6},  {"/", 6},  {"//", 6}, {"%", 6},  {"neg", 7}};
    const auto found = kStrengths.find(op);
    return found == kStrengths.end() ? 8 : found->second;
  }

  template <class... Parts>
  std::unique_ptr<Tree> node(const std::string& op, Parts... parts) {
    auto tree = std::make_unique<Tree>();
    tree->op = op;
    (tree->parts.push_back(std::move(parts)), ...);
    return tree;
  }

  std::unique_ptr<Tree> operand(int depth) {
    return chance(95) ? number(depth - 1) : anything(depth - 1);
  }

  std::unique_ptr<Tree> name_leaf(const std::string& name) {
    auto tree = std::make_unique<Tree>();
    tree->leaf = name;
    tree->worth = names().at(name).second;
    return tree;
  }
  std::unique_ptr<Tree> list_leaf() {
    return name_leaf(chance(60) ? "params.grids" : chance(50) ? "params.none" : "params.mixed");
  }

  std::unique_ptr<Tree> literal(const std::string& text) {
    auto tree = std::make_unique<Tree>();
    tree->leaf = text;
    if (text == "true" || text == "false") {
      tree->worth = {text == "true", text};
    } else if (text[0] == '\'' || text[0] == '"') {
      tree->worth = {Words{text.substr(1, text.size() - 2), false},
                     text.substr(1, text.size() - 2)};
    } else if (text.find_first_of(".e") != std::string::npos) {
      tree->worth = {Real{std::strtod(text.c_str(), nullptr)}, text};
    } else {
      tree->worth = {Whole{static_cast<Wide>(std::strtoull(text.c_str(), nullptr, 10))}, text};
    }
    return tree;
  }

  std::unique_ptr<Tree> number_leaf() {
    static const std::array<const char*, 7> kEdges = {"9223372036854775807",
                                                      "9223372036854775806",
                                                      "9007199254740992",
                                                      "9007199254740993.0",
                                                      "4611686018427387904",
                                                      "1e308",
                                                      "0"};
    static const std::array<const char*, 6> kReals = {"0.1", "0.5", "2.0", "1e-3", ".25", "3.7"};
    static const std::array<const char*, 5> kNames = {"params.n", "params.big", "params.tol",
                                                      "item.grid", "item.alpha"};
    switch (below(5)) {
      case 0:
        return literal(kEdges[static_cast<size_t>(below(7))]);
      case 1:
        return literal(kReals[static_cast<size_t>(below(6))]);
      case 2:
        return name_leaf(kNames[static_cast<size_t>(below(5))]);
      default:
        return literal(std::to_string(below(12)));
    }
  }

  std::mt19937_64 random_;
};

// ---- the oracle ----
using Number = std::variant<std::monostate, Whole, Real>;

Number number_in(const std::string& text) {
  char* end = nullptr;
  const double real = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || text == "no") return {};
  if (text.find_first_of(".e") == std::string::npos) {
    return Whole{static_cast<Wide>(std::strtoll(text.c_str(), nullptr, 10))};
  }
  return Real{real};
}

Number number_of(const Worth& worth) {
  if (const auto* whole = std::get_if<Whole>(&worth.is)) return *whole;
  if (const auto* real = std::get_if<Real>(&worth.is)) return *real;
  const auto* words = std::get_if<Words>(&worth.is);
  return words != nullptr && words->may_be_number ? number_in(words->text) : Number{};
}

double as_double(const Number& number) {
  const auto* whole = std::get_if<Whole>(&number);
  return whole != nullptr ? static_cast<double>(static_cast<int64_t>(whole->value))
                          : std::get<Real>(number).value;
}

// As a multiple of 2^-72, where that is exact.
std::optional<Wide> scaled(double value) {
  if (value != 0 && (std::fabs(value) > 0x1p50 || std::fabs(value) < 0x1p-20)) return std::nullopt;
  return static_cast<Wide>(std::ldexp(value, 72));
}

Wide floor_divide(Wide a, Wide b) {
  Wide quotient = a / b;
  while (b > 0 ? quotient * b > a : quotient * b < a) --quotient;
  return quotient;
}

// -1, 0, 1: a whole number against a float by its whole part first.
int compare_mixed(Wide whole, double real) {
  if (real >= 0x1p63) return -1;
  if (real < -0x1p63) return 1;
  const Wide below = static_cast<int64_t>(std::floor(real));
  if (whole != below) return whole < below ? -1 : 1;
  return real > std::floor(real) ? -1 : 0;
}

int compare(const Number& a, const Number& b) {
  const auto* x = std::get_if<Whole>(&a);
  const auto* y = std::get_if<Whole>(&b);
  if (x != nullptr && y != nullptr) return x->value < y->value ? -1 : x->value > y->value ? 1 : 0;
  if (x != nullptr) return compare_mixed(x->value, std::get<Real>(b).value);
  if (y != nullptr) return -compare_mixed(y->value, std::get<Real>(a).value);
  const double p = std::get<Real>(a).value;
  const double q = std::get<Real>(b).value;
  return p < q ? -1 : p > q ? 1 : 0;
}

bool holds(const std::string& op, int order) {
  if (op == "==") return order == 0;
  if (op == "!=") return order != 0;
  if (op == "<") return order < 0;
  if (op == "<=") return order <= 0;
  return op == ">" ? order > 0 : order >= 0;
}

class Oracle {
 public:
  Answer ask(const Tree& tree) {
    if (tree.op.empty()) return tree.worth;
    if (tree.op == "and" || tree.op == "or" || tree.op == "not") return logic(tree);
    if (tree.op == "min" || tree.op == "max") return extreme(tree);
    if (tree.op == "len") return length(tree);
    std::vector<Worth> worth;
    for (const auto& part : tree.parts) {
      Answer answer = ask(*part);
      if (std::holds_alternative<Bad>(answer)) return answer;
      worth.push_back(std::get<Worth>(answer));
      if (unknown(worth.back())) return Worth{};
    }
    if (tree.op == "neg") return negate(tree, worth[0]);
    if (std::string("+-*/%").find(tree.op[0]) != std::string::npos) {
      return arithmetic(tree, worth[0], worth[1]);
    }
    return comparison(tree, worth[0], worth[1]);
  }

 private:
  static bool unknown(const Worth& worth) { return std::holds_alternative<Unknown>(worth.is); }

  static Answer whole(const Tree& tree, Wide value) {
    return value < kLeast || value > kMost ? Answer(Bad{tree.offset}) : Worth{Whole{value}, ""};
  }
  static Answer real(const Tree& tree, double value) {
    return std::isfinite(value) ? Answer(Worth{Real{value}, ""}) : Bad{tree.offset};
  }

  Answer logic(const Tree& tree) {
    bool result = tree.op == "and";
    for (const auto& part : tree.parts) {
      const Answer answer = ask(*part);
      if (std::holds_alternative<Bad>(answer)) return answer;
      const Worth& worth = std::get<Worth>(answer);
      if (unknown(worth)) return Worth{};
      const auto* words = std::get_if<Words>(&worth.is);
      const auto* truth = std::get_if<bool>(&worth.is);
      const bool is_word = words != nullptr && words->may_be_number &&
                           (words->text == "true" || words->text == "false");
      if (truth == nullptr && !is_word) return Bad{part->offset};
      const bool value = truth != nullptr ? *truth : words->text == "true";
      if (tree.op == "not") return Worth{!value, ""};
      result = value;
      if (value == (tree.op == "or")) break;
    }
    return Worth{result, ""};
  }

  Answer length(const Tree& tree) {
    const Answer answer = ask(*tree.parts[0]);
    if (std::holds_alternative<Bad>(answer)) return answer;
    const Worth& worth = std::get<Worth>(answer);
    if (const auto* many = std::get_if<Many>(&worth.is)) {
      return Worth{Whole{static_cast<Wide>(many->texts.size())}, ""};
    }
    if (worth.typed.empty()) return Worth{};  // of something computed
    return Worth{Whole{static_cast<Wide>(worth.typed.size())}, ""};
  }

  Answer extreme(const Tree& tree) {
    std::optional<Worth> best;
    for (const auto& part : tree.parts) {
      const Answer answer = ask(*part);
      if (std::holds_alternative<Bad>(answer)) return answer;
      const Worth& worth = std::get<Worth>(answer);
      if (unknown(worth)) return Worth{};
      std::vector<Worth> offered = {worth};
      if (const auto* many = std::get_if<Many>(&worth.is)) {
        offered.clear();
        for (const std::string& text : many->texts) offered.push_back({Words{text, true}, text});
      }
      for (const Worth& one : offered) {
        if (std::holds_alternative<std::monostate>(number_of(one))) return Bad{part->offset};
        const int order = best ? compare(number_of(one), number_of(*best)) : 0;
        if (!best || (tree.op == "min" ? order < 0 : order > 0)) best = one;
      }
    }
    return best ? Answer(*best) : Bad{tree.offset};
  }

  static Answer negate(const Tree& tree, const Worth& worth) {
    const Number number = number_of(worth);
    if (std::holds_alternative<std::monostate>(number)) return Bad{tree.parts[0]->offset};
    if (const auto* value = std::get_if<Whole>(&number)) return whole(tree, -value->value);
    return Worth{Real{-std::get<Real>(number).value}, ""};
  }

  static Answer arithmetic(const Tree& tree, const Worth& left, const Worth& right) {
    const Number a = number_of(left);
    const Number b = number_of(right);
    if (std::holds_alternative<std::monostate>(a)) return Bad{tree.parts[0]->offset};
    if (std::holds_alternative<std::monostate>(b)) return Bad{tree.parts[1]->offset};
    const bool divides = tree.op[0] == '/' || tree.op == "%";
    if (divides && as_double(b) == 0) return Bad{tree.offset};
    const auto* x = std::get_if<Whole>(&a);
    const auto* y = std::get_if<Whole>(&b);
    if (x != nullptr && y != nullptr && tree.op != "/")
      return whole(tree, wide(tree.op, x->value, y->value));
    return reals(tree, as_double(a), as_double(b));
  }

  static Wide wide(const std::string& op, Wide a, Wide b) {
    if (op == "+") return a + b;
    if (op == "-") return a - b;
    if (op == "*") return a * b;
    return op == "//" ? floor_divide(a, b) : a - b * floor_divide(a, b);
  }

  static Answer reals(const Tree& tree, double a, double b) {
    if (tree.op == "+") return real(tree, a + b);
    if (tree.op == "-") return real(tree, a - b);
    if (tree.op == "*") return real(tree, a * b);
    if (tree.op == "/") return real(tree, a / b);
    const auto x = scaled(a);
    const auto y = scaled(b);
    if (!x || !y || *y == 0) return Worth{};
    const Wide quotient = floor_divide(*x, *y);
    if (tree.op == "//") {
      const bool exact = quotient < (Wide{1} << 53) && quotient > -(Wide{1} << 53);
      return exact ? Answer(Worth{Real{static_cast<double>(static_cast<int64_t>(quotient))}, ""})
                   : Worth{};
    }
    return Worth{Real{std::ldexp(static_cast<double>(*x - quotient * *y), -72)}, ""};
  }

  static Answer comparison(const Tree& tree, const Worth& left, const Worth& right) {
    const Number a = number_of(left);
    const Number b = number_of(right);
    if (a.index() != 0 && b.index() != 0) return Worth{holds(tree.op, compare(a, b)), ""};
    const auto* p = std::get_if<Words>(&left.is);
    const auto* q = std::get_if<Words>(&right.is);
    if (p != nullptr && q != nullptr) return Worth{holds(tree.op, p->text.compare(q->text)), ""};
    const auto x = truth_of(left);
    const auto y = truth_of(right);
    if (x && y && (tree.op == "==" || tree.op == "!=")) {
      return Worth{(*x == *y) == (tree.op == "=="), ""};
    }
    return Bad{tree.offset};
  }

  static std::optional<bool> truth_of(const Worth& worth) {
    if (const auto* truth = std::get_if<bool>(&worth.is)) return *truth;
    const auto* words = std::get_if<Words>(&worth.is);
    if (words == nullptr || !words->may_be_number) return std::nullopt;
    if (words->text != "true" && words->text != "false") return std::nullopt;
    return words->text == "true";
  }
};

size_t digits_in(const std::string& number) {
  const std::string mantissa = number.substr(0, number.find('e'));
  std::string digits;
  for (const char c : mantissa) {
    if (c >= '0' && c <= '9') digits += c;
  }
  const size_t first = digits.find_first_not_of('0');
  if (first == std::string::npos) return 1;
  return digits.find_last_not_of('0') + 1 - first;
}

// The shortest decimal form has as many digits as the first precision that reads back the same.
size_t fewest_digits(double value) {
  std::array<char, 64> buffer{};
  for (int precision = 1; precision < 17; ++precision) {
    std::snprintf(buffer.data(), buffer.size(), "%.*e", precision - 1, value);
    if (std::strtod(buffer.data(), nullptr) == value) return digits_in(buffer.data());
  }
  return digits_in((std::snprintf(buffer.data(), buffer.size(), "%.16e", value), buffer.data()));
}

void check_value(const Value& found, const Worth& worth) {
  if (const auto* many = std::get_if<Many>(&worth.is)) {
    CHECK(found.list == many->texts);
  } else if (!worth.typed.empty()) {
    CHECK(found.text == worth.typed);
  } else if (const auto* whole = std::get_if<Whole>(&worth.is)) {
    CHECK(found.text == std::to_string(static_cast<int64_t>(whole->value)));
  } else if (const auto* real = std::get_if<Real>(&worth.is)) {
    CHECK(std::strtod(found.text.c_str(), nullptr) == real->value);
    // Large numbers print all their digits where that is shorter than an exponent.
    if (found.text.find('e') != std::string::npos || std::fabs(real->value) < 1e15) {
      CHECK(digits_in(found.text) == fewest_digits(real->value));
    }
    CHECK(found.text.find_first_of(".e") != std::string::npos);
  } else if (const auto* truth = std::get_if<bool>(&worth.is)) {
    CHECK(found.text == (*truth ? "true" : "false"));
  }
}

}  // namespace

TEST_CASE("expression: random expressions are worth what a naive oracle computes") {
  size_t values = 0;
  size_t errors = 0;
  sluice::tests::for_each_seed([&](uint64_t seed) {
    Gardener gardener(seed);
    for (int i = 0; i < 200; ++i) {
      const auto tree = gardener.chance(50) ? gardener.number(4) : gardener.truth(4);
      std::string text;
      gardener.write(*tree, 0, text);
      if (text.size() > 1000) continue;
      CAPTURE(text);
      const auto parsed = Expression::parse(text);
      REQUIRE(std::holds_alternative<Expression>(parsed));
      const auto found = std::get<Expression>(parsed).evaluate(
          [](const Expression::Name& name) { return &names().at(name.text()).first; });
      const Answer right = Oracle().ask(*tree);
      if (const auto* bad = std::get_if<Bad>(&right)) {
        REQUIRE(std::holds_alternative<ExpressionError>(found));
        CHECK(std::get<ExpressionError>(found).offset == bad->offset);
        ++errors;
      } else if (!std::holds_alternative<Unknown>(std::get<Worth>(right).is)) {
        REQUIRE_MESSAGE(std::holds_alternative<Value>(found),
                        std::get<ExpressionError>(found).text);
        check_value(std::get<Value>(found), std::get<Worth>(right));
        ++values;
      }
    }
  });
  // Neither side alone would prove much.
  CHECK(values > errors / 4);
  CHECK(errors > values / 10);
}
