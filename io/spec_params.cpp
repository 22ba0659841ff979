// params:, limits: and --set.
#include <algorithm>
#include <cstdlib>

#include "io/spec_reader.h"
#include "io/spec_schema.h"
#include "io/spec_values.h"

namespace sluice::io {

namespace {

enum class ParamType : uint8_t { kInt, kFloat, kString, kBool, kList, kPath };

const std::vector<std::string>& type_names() {
  static const std::vector<std::string> kNames = {"int", "float", "string", "bool", "list", "path"};
  return kNames;
}

ValueType value_type(ParamType type) {
  switch (type) {
    case ParamType::kInt:
      return ValueType::kInt;
    case ParamType::kFloat:
      return ValueType::kFloat;
    case ParamType::kBool:
      return ValueType::kBool;
    default:
      return ValueType::kString;
  }
}

std::string type_hint(ParamType type) {
  switch (type) {
    case ParamType::kInt:
      return "write a whole number";
    case ParamType::kFloat:
      return "write a number such as 0.5 or 1e-4";
    case ParamType::kBool:
      return "write true or false";
    default:
      return "write a list: [a, b]";
  }
}

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? ""
                                    : text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

// "a, b" or "[a, b]" of the command line.
std::vector<std::string> split_list(std::string text) {
  text = trimmed(text);
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') {
    text = text.substr(1, text.size() - 2);
  }
  std::vector<std::string> items;
  if (trimmed(text).empty()) {
    return items;
  }
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    items.push_back(trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return items;
}

class ParamReader {
 public:
  ParamReader(SpecReading& reading, const std::vector<std::pair<std::string, std::string>>& set,
              bool set_is_recorded)
      : reading_(reading), tree_(reading.tree), set_(set), set_is_recorded_(set_is_recorded) {}

  void run(NodeIndex params) {
    if (params != kNoNode &&
        expect_map(reading_, params, "'params'", "params: {tol: {type: float, default: 1e-4}}")) {
      for (const NodeIndex child : tree_.children(params)) {
        read(child);
      }
    }
    check_set();
  }

 private:
  void read(NodeIndex node) {
    const YamlNode& param = tree_[node];
    if (!check_name(reading_, param, "a param")) {
      return;
    }
    reading_.param_names.push_back(param.key);
    if (param.kind != YamlNode::Kind::kMap) {
      const std::string value = param.kind == YamlNode::Kind::kList ? "[...]"
                                : param.text.empty()                ? "\"\""
                                                                    : param.text;
      reading_.diagnostics.error(
          param.mark, "param '" + param.key + "' has no type",
          "write " + param.key + ": {type: " + guessed_type(param) + ", default: " + value + "}");
      return;
    }
    const std::string where = "param '" + param.key + "'";
    check_keys(tree_, node, Level::kParam, where, reading_.diagnostics);
    const NodeIndex type_node = tree_.find(node, "type");
    if (type_node == kNoNode) {
      reading_.diagnostics.error(param.key_mark, where + " has no type",
                                 "add type: int, float, string, bool, list or path");
      return;
    }
    if (const std::optional<ParamType> type = read_type(type_node, where)) {
      read_value_of(node, *type, where);
    }
  }

  static std::string guessed_type(const YamlNode& node) {
    if (node.kind == YamlNode::Kind::kList) {
      return "list";
    }
    return Value::of_type(ValueType::kInt, node.text)     ? "int"
           : Value::of_type(ValueType::kFloat, node.text) ? "float"
           : Value::of_type(ValueType::kBool, node.text)  ? "bool"
                                                          : "string";
  }

  std::optional<ParamType> read_type(NodeIndex node, const std::string& where) {
    const std::string& text = tree_[node].text;
    const auto& names = type_names();
    const auto found = std::find(names.begin(), names.end(), text);
    if (found != names.end()) {
      return static_cast<ParamType>(found - names.begin());
    }
    reading_.diagnostics.error(tree_[node].mark, where + ": there is no type " + shown(tree_[node]),
                               suggestion(text, names, "the types are"));
    return std::nullopt;
  }

  // The last --set of a name counts.
  [[nodiscard]] const std::string* set_text(const std::string& name) const {
    const std::string* text = nullptr;
    for (const auto& [set_name, value] : set_) {
      text = set_name == name ? &value : text;
    }
    return text;
  }

  void read_value_of(NodeIndex node, ParamType type, const std::string& where) {
    const std::string& name = tree_[node].key;
    const NodeIndex fallback = tree_.find(node, "default");
    const std::string variable = read_variable(node, type, where);
    const std::optional<std::string> expected = read_expected(node, type, where);
    std::optional<Value> value;
    if (fallback != kNoNode) {
      value = default_value(fallback, type, where);  // checked also when another value replaces it
    }
    Mark mark = fallback == kNoNode ? tree_[node].key_mark : tree_[fallback].mark;
    std::string origin = "the default of " + where;
    if (const std::optional<Given> given = given_text(name, variable, where)) {
      mark = tree_[node].key_mark;
      origin = given->origin;
      value = parse(type, given->text);
      if (!value) {
        reading_.diagnostics.error(mark,
                                   origin + ": '" + given->text + "' is not of type " +
                                       type_names()[static_cast<size_t>(type)],
                                   type_hint(type));
      }
    } else if (fallback == kNoNode) {
      report_unset(node, variable, where);
    }
    if (value) {
      add(name, type, *value);
      if (expected) {
        check_expected(*expected, mark, origin, variable);
      }
    }
  }

  // A text that counts instead of the default.
  struct Given {
    std::string text;
    std::string origin;
  };

  [[nodiscard]] std::optional<Given> given_text(const std::string& name,
                                                const std::string& variable,
                                                const std::string& where) const {
    if (const std::string* text = set_text(name)) {
      return Given{*text, set_shown(name, *text)};
    }
    const char* text = variable.empty() ? nullptr : std::getenv(variable.c_str());
    if (text == nullptr || *text == '\0') {
      return std::nullopt;
    }
    return Given{text, where + ", from the variable " + variable};
  }

  void report_unset(NodeIndex node, const std::string& variable, const std::string& where) {
    const std::string& name = tree_[node].key;
    const std::string set = "give --set " + name + "=VALUE";
    if (variable.empty()) {
      reading_.diagnostics.error(tree_[node].key_mark, where + " has no default and is not set",
                                 "add 'default:', or " + set);
    } else {
      reading_.diagnostics.error(
          tree_[node].key_mark,
          where + " is not set, nor is the variable " + variable + ", and it has no default",
          "export " + variable + "=PATH, or " + set);
    }
  }

  // `key` of a param that is for paths only; kNoNode also when it was refused.
  NodeIndex find_of_path(NodeIndex node, const char* key, ParamType type,
                         const std::string& where) {
    const NodeIndex found = tree_.find(node, key);
    if (found == kNoNode || type == ParamType::kPath) {
      return found;
    }
    reading_.diagnostics.error(tree_[found].key_mark,
                               "'" + std::string(key) + "' of " + where + ": its type is " +
                                   type_names()[static_cast<size_t>(type)] +
                                   ", only a path can have '" + key + "'",
                               "remove it, or write type: path");
    return kNoNode;
  }

  std::string read_variable(NodeIndex param, ParamType type, const std::string& where) {
    const NodeIndex node = find_of_path(param, "env", type, where);
    if (node == kNoNode) {
      return "";
    }
    const YamlNode& found = tree_[node];
    if (found.kind == YamlNode::Kind::kScalar && is_variable_name(found.text)) {
      return found.text;
    }
    reading_.diagnostics.error(found.mark, "'env' of " + where + " must be the name of a variable",
                               "write env: DATA_DIR");
    return "";
  }

  std::optional<std::string> read_expected(NodeIndex param, ParamType type,
                                           const std::string& where) {
    static const std::vector<std::string> kExpected = {"file", "directory", "exists"};
    const NodeIndex node = find_of_path(param, "expect", type, where);
    if (node == kNoNode) {
      return std::nullopt;
    }
    const std::string& text = tree_[node].text;
    if (std::find(kExpected.begin(), kExpected.end(), text) != kExpected.end()) {
      return text;
    }
    reading_.diagnostics.error(tree_[node].mark,
                               "'expect' of " + where + " is '" + text + "', a path cannot be that",
                               suggestion(text, kExpected, "it can be"));
    return std::nullopt;
  }

  // What is at the path of the param that was added last.
  void check_expected(const std::string& expected, Mark mark, const std::string& origin,
                      const std::string& variable) {
    const std::string& name = reading_.params.back().name;
    const std::string& path = reading_.params.back().value.text;
    std::error_code code;
    const std::filesystem::file_status status = std::filesystem::status(path, code);
    const bool is_directory = std::filesystem::is_directory(status);
    const bool good = expected == "file"        ? std::filesystem::exists(status) && !is_directory
                      : expected == "directory" ? is_directory
                                                : std::filesystem::exists(status);
    if (good) {
      return;
    }
    const std::string what = expected == "exists" ? "" : ", a " + expected + " is expected";
    const std::string found =
        !std::filesystem::exists(status)
            ? "there is no '" + path + "'" +
                  (code && code != std::errc::no_such_file_or_directory ? ": " + code.message()
                                                                        : "")
            : "'" + path + "' is a " + (is_directory ? "directory" : "file");
    const std::string also = variable.empty() ? "" : ", or in the variable " + variable;
    reading_.diagnostics.error(mark, origin + ": " + found + what,
                               "give its path with --set " + name + "=PATH" + also);
  }

  static std::string set_shown(const std::string& name, const std::string& value) {
    return std::string("--set ").append(name).append("=").append(value);
  }

  void add(const std::string& name, ParamType type, const Value& value) {
    Param param{name, value, value};
    if (type == ParamType::kPath) {
      param.value.text = in_folder(reading_.folder, value.text).string();
    }
    reading_.params.push_back(std::move(param));
  }

  static std::optional<Value> parse(ParamType type, const std::string& text) {
    if (type == ParamType::kList) {
      return Value::of_list(split_list(text));
    }
    return Value::of_type(value_type(type), text);
  }

  std::optional<Value> default_value(NodeIndex node, ParamType type, const std::string& where) {
    const YamlNode& found = tree_[node];
    if (type == ParamType::kList) {
      return default_list(node, where);
    }
    if (found.kind != YamlNode::Kind::kScalar) {
      reading_.diagnostics.error(found.mark,
                                 "the default of " + where + " is a " +
                                     (found.kind == YamlNode::Kind::kList ? "list" : "map") +
                                     ", its type is " + type_names()[static_cast<size_t>(type)]);
      return std::nullopt;
    }
    if (found.style == YamlNode::Style::kAbsent) {
      reading_.diagnostics.error(found.mark, "the default of " + where + " has no value",
                                 "write a value, or \"\" for an empty text");
      return std::nullopt;
    }
    if (!is_plain(node, where)) {
      return std::nullopt;
    }
    std::optional<Value> value = parse(type, found.text);
    if (!value) {
      reading_.diagnostics.error(found.mark,
                                 "the default of " + where + " is '" + found.text +
                                     "', which is not of type " +
                                     type_names()[static_cast<size_t>(type)],
                                 type_hint(type));
    }
    return value;
  }

  std::optional<Value> default_list(NodeIndex node, const std::string& where) {
    if (tree_[node].kind != YamlNode::Kind::kList) {
      reading_.diagnostics.error(tree_[node].mark, "the default of " + where + " is not a list",
                                 type_hint(ParamType::kList));
      return std::nullopt;
    }
    std::vector<std::string> items;
    for (const NodeIndex child : tree_.children(node)) {
      const YamlNode& item = tree_[child];
      if (item.kind != YamlNode::Kind::kScalar || item.style == YamlNode::Style::kAbsent) {
        reading_.diagnostics.error(item.mark, "an item of " + where + " must be a single value");
        return std::nullopt;
      }
      if (!is_plain(child, where)) {
        return std::nullopt;
      }
      items.push_back(item.text);
    }
    return Value::of_list(std::move(items));
  }

  // Params are what expressions are made of, so there are none in them.
  bool is_plain(NodeIndex node, const std::string& where) {
    const size_t at = tree_[node].text.find("${{");
    if (at == std::string::npos) {
      return true;
    }
    reading_.diagnostics.error(
        tree_.place(node, at),
        "the default of " + where + " holds '${{', but no expression is evaluated there",
        "write the value itself; texts of tasks can join params");
    return false;
  }

  void check_set() {
    if (set_is_recorded_) return;
    for (const auto& [name, value] : set_) {
      if (std::find(reading_.param_names.begin(), reading_.param_names.end(), name) !=
          reading_.param_names.end()) {
        continue;
      }
      const std::string hint = suggestion(name, reading_.param_names, "the params are");
      reading_.diagnostics.error({}, set_shown(name, value) + ": there is no param '" + name + "'",
                                 hint.empty() ? "this spec has no params" : hint);
    }
  }

  SpecReading& reading_;
  const YamlTree& tree_;
  const std::vector<std::pair<std::string, std::string>>& set_;
  bool set_is_recorded_;
};

}  // namespace

void read_params(SpecReading& reading, NodeIndex params,
                 const std::vector<std::pair<std::string, std::string>>& set,
                 bool set_is_recorded) {
  ParamReader(reading, set, set_is_recorded).run(params);
}

void read_limits(SpecReading& reading, NodeIndex limits) {
  if (limits == kNoNode || !expect_map(reading, limits, "'limits'", "limits: {licence: 5}")) {
    return;
  }
  for (const NodeIndex child : reading.tree.children(limits)) {
    const YamlNode& node = reading.tree[child];
    if (!check_name(reading, node, "a limit")) {
      continue;
    }
    if (find_rule(Level::kResources, node.key) != nullptr) {
      reading.diagnostics.error(node.key_mark,
                                "'" + node.key + "' is a resource of the machine, not a limit",
                                "choose another name");
      continue;
    }
    const std::optional<std::string> text = read_text(reading, child, "limit '" + node.key + "'");
    if (!text) {
      continue;
    }
    const auto amount = parse_amount(*text);
    if (const auto* error = std::get_if<ValueError>(&amount)) {
      report_value(reading, child, "limit '" + node.key + "': " + error->text, error->hint);
      continue;
    }
    reading.limits.push_back({node.key, std::get<scheduler::Amount>(amount)});
  }
}

}  // namespace sluice::io
