// Scalars of the spec: their templates, the names in them, and their values.
#include <algorithm>

#include "io/numbers.h"
#include "io/spec_reader.h"
#include "io/spec_values.h"

namespace sluice::io {

namespace {

using Use = TemplatePart::Use;

template <class T>
size_t index_of(const std::vector<T>& all, const std::string& name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const T& one) { return one.name == name; });
  return static_cast<size_t>(found - all.begin());
}

// Looks at the names of one template part.
class PartClassifier {
 public:
  PartClassifier(SpecReading& reading, const SpecTask* task, NodeIndex node, TemplatePart& part,
                 AllowedNames allowed)
      : reading_(reading), task_(task), node_(node), part_(part), allowed_(allowed) {}

  void run() {
    for (const Expression::Name& name : part_.expression.front().names()) {
      name_ = &name;
      const std::string& root = name.parts[0];
      if (root == "params") {
        member("params", reading_.param_names, 2);
      } else if (root == "item") {
        item();
      } else if (root == "dir") {
        folder();
      } else if (root == "in") {
        input();
      } else if (root == "out") {
        output();
      } else {
        unknown_root(root);
      }
    }
  }

 private:
  void fail(const std::string& text, const std::string& hint = "") {
    reading_.diagnostics.error(reading_.tree.place(node_, part_.offset + name_->offset), text,
                               hint);
  }

  // The second part of the name is one of `known`, and there are no more parts than `parts_max`.
  bool member(const std::string& root, const std::vector<std::string>& known, size_t parts_max) {
    if (name_->parts.size() < 2 || name_->parts.size() > parts_max) {
      fail("'" + name_->text() + "' is not a name here", "write " + root + ".NAME");
      return false;
    }
    if (std::find(known.begin(), known.end(), name_->parts[1]) != known.end()) {
      return true;
    }
    fail("there is no '" + root + "." + name_->parts[1] + "' here", member_hint(root, known));
    return false;
  }

  [[nodiscard]] std::string member_hint(const std::string& root,
                                        const std::vector<std::string>& known) const {
    const std::string& word = name_->parts[1];
    if (did_you_mean(word, known).empty()) {
      for (const std::string& full : all_names()) {
        if (full.substr(full.find('.') + 1) == word) {
          return "did you mean '" + full + "'?";
        }
      }
    }
    return known.empty() ? "none is declared" : suggestion(word, known, "known here:", root + ".");
  }

  [[nodiscard]] std::vector<std::string> all_names() const {
    std::vector<std::string> all;
    const auto add = [&](const std::string& root, const std::vector<std::string>& names) {
      for (const std::string& name : names) {
        all.push_back(std::string(root).append(".").append(name));
      }
    };
    add("params", reading_.param_names);
    if (task_ != nullptr) {
      add("item", task_->text.keys);
      add("in", names_of(task_->inputs));
      add("out", names_of(task_->outputs));
    }
    return all;
  }

  // `sampl`, `True`, `input`.
  [[nodiscard]] std::string lone_hint(const std::string& word) const {
    for (const char* constant : {"true", "false"}) {
      if (did_you_mean(word, std::vector<std::string>{constant}) == constant) {
        return "did you mean '" + std::string(constant) + "'?";
      }
    }
    std::vector<std::string> members;
    for (const std::string& full : all_names()) {
      members.push_back(full.substr(full.find('.') + 1));
    }
    if (const std::string near = did_you_mean(word, members); !near.empty()) {
      const auto at = std::find(members.begin(), members.end(), near) - members.begin();
      return "did you mean '" + all_names()[static_cast<size_t>(at)] + "'?";
    }
    const bool dir = did_you_mean(word, std::vector<std::string>{"dir"}) == "dir";
    return dir ? "did you mean 'dir'?" : suggestion(word, all_names(), "known here:");
  }

  // `inputs.x`, `param.tol`, `items.k`: the rest of the name tells what is meant.
  [[nodiscard]] std::string root_hint(const std::string& root) const {
    for (const std::string& full : all_names()) {
      const std::string known = full.substr(0, full.find('.'));
      const bool alike = root.compare(0, known.size(), known) == 0 ||
                         known.compare(0, root.size(), root) == 0 ||
                         did_you_mean(root, std::vector<std::string>{known}) == known;
      if (alike && full.substr(full.find('.') + 1) == name_->parts[1]) {
        return "did you mean '" + full + "'?";
      }
    }
    const std::vector<std::string> roots = {"params", "item", "in", "out"};
    const std::string near = did_you_mean(root, roots);
    return near.empty() ? suggestion(name_->text(), all_names(), "known here:")
                        : "did you mean '" + near + "." + name_->parts[1] + "'?";
  }

  void unknown_root(const std::string& root) {
    std::string hint;
    for (const std::string& full : all_names()) {
      if (full.substr(full.find('.') + 1) == root && name_->parts.size() == 1) {
        hint = "did you mean '" + full + "'?";
        break;
      }
    }
    if (hint.empty()) {
      hint = name_->parts.size() == 1 ? lone_hint(root) : root_hint(root);
    }
    fail("'" + name_->text() + "' is not known here", hint);
  }

  void item() {
    if (!allowed_.items || task_ == nullptr) {
      fail("'" + name_->text() +
               "': values of items cannot be used here, this is one value for "
               "the whole task",
           "use params");
      return;
    }
    if (task_->items_known) {
      member("item", task_->text.keys, 2);
    }
  }

  void folder() {
    if (!allowed_.folder || name_->parts.size() != 1) {
      fail("'" + name_->text() + "' cannot be used here",
           "a relative path already means the pipeline folder");
    } else if (alone("the pipeline folder")) {
      part_.use = Use::kFolder;
    }
  }

  bool alone(const std::string& what) {
    if (!part_.expression.front().is_name()) {
      fail("'" + name_->text() + "' is the path of " + what + ", which cannot be computed with",
           "write ${{ " + name_->text() + " }} by itself, text may stand before and behind it");
      return false;
    }
    return true;
  }

  bool path_allowed(const std::string& what) {
    if (!allowed_.paths) {
      fail("'" + name_->text() + "' is the path of " + what +
               ", which is known only inside an attempt",
           "use it in 'run:', or $IN_x and $OUT_x in 'sh:'");
      return false;
    }
    return alone(what);
  }

  void input() {
    if (task_ == nullptr) {
      fail("'" + name_->text() + "' cannot be used here", "use params");
      return;
    }
    const bool paths = name_->parts.size() == 3 && name_->parts[2] == "paths";
    if (!member("in", names_of(task_->inputs), paths ? 3 : 2)) {
      return;
    }
    const size_t index = index_of(task_->inputs, name_->parts[1]);
    if (is_value(task_->inputs[index])) {
      value_input(paths);
    } else if (path_allowed("an input")) {
      part_.use = paths ? Use::kInputPaths : Use::kInput;
      part_.index = static_cast<uint32_t>(index);
    }
  }

  void value_input(bool paths) {
    if (paths) {
      fail("'" + name_->text() + "': input '" + name_->parts[1] + "' is a value and has no path",
           "write in." + name_->parts[1]);
    } else if (!allowed_.run_time) {
      fail("'" + name_->text() + "' is known only when its producer is done, too late here",
           "use params");
    } else {
      part_.use = Use::kRunTime;
    }
  }

  [[nodiscard]] bool is_value(const SpecInput& input) const {
    return input.resolved && reading_.tasks[input.producer].outputs[input.output].kind ==
                                 scheduler::OutputKind::kValue;
  }

  void output() {
    if (task_ == nullptr) {
      fail("'" + name_->text() + "' cannot be used here", "use params");
      return;
    }
    if (member("out", names_of(task_->outputs), 2) && path_allowed("an output")) {
      part_.use = Use::kOutput;
      part_.index = static_cast<uint32_t>(index_of(task_->outputs, name_->parts[1]));
    }
  }

  SpecReading& reading_;
  const SpecTask* task_;
  NodeIndex node_;
  TemplatePart& part_;
  AllowedNames allowed_;
  const Expression::Name* name_ = nullptr;
};

}  // namespace

void classify(SpecReading& reading, const SpecTask* task, NodeIndex node, Template& parts,
              AllowedNames allowed) {
  for (TemplatePart& part : parts) {
    if (part.use != Use::kText) {
      PartClassifier(reading, task, node, part, allowed).run();
    }
  }
}

bool has_values(const Scope& scope, const TemplatePart& part) {
  const auto& names = part.expression.front().names();
  return std::all_of(names.begin(), names.end(),
                     [&](const Expression::Name& name) { return scope.find(name) != nullptr; });
}

void report(SpecReading& reading, NodeIndex node, const std::vector<ExpressionError>& errors) {
  for (const ExpressionError& error : errors) {
    reading.diagnostics.error(reading.tree.place(node, error.offset), error.text, error.hint);
  }
}

void report_value(SpecReading& reading, NodeIndex node, const std::string& text,
                  const std::string& hint) {
  const YamlNode& scalar = reading.tree[node];
  const bool computed = scalar.text.find("${{") != std::string::npos;
  reading.diagnostics.error(scalar.mark, text + (computed ? " (from '" + scalar.text + "')" : ""),
                            hint);
}

std::optional<Value> read_value(SpecReading& reading, NodeIndex node, const std::string& what) {
  const YamlNode& scalar = reading.tree[node];
  if (scalar.kind != YamlNode::Kind::kScalar) {
    reading.diagnostics.error(scalar.mark,
                              what + " must be a single value, found " + shown(scalar));
    return std::nullopt;
  }
  if (scalar.style == YamlNode::Style::kAbsent) {
    reading.diagnostics.error(scalar.mark, what + " has no value",
                              "write a value, \"\" for an empty text, or leave the key out");
    return std::nullopt;
  }
  ParsedTemplate parsed = parse_template(scalar.text);
  report(reading, node, parsed.errors);
  const size_t errors_before = reading.diagnostics.errors();
  classify(reading, nullptr, node, parsed.parts, {});
  if (!parsed.errors.empty() || reading.diagnostics.errors() > errors_before) {
    return std::nullopt;
  }
  static const TaskText kNoTask{{}, {{}}, {}, {}, {}, "", {}, {}, {}};
  const Scope scope(reading.params, kNoTask, 0);
  std::string text;
  for (const TemplatePart& part : parsed.parts) {
    if (part.use == Use::kText) {
      text += part.text;
      continue;
    }
    if (!has_values(scope, part)) {
      return std::nullopt;  // a param that was refused: reported there
    }
    auto result = scope.evaluate(part);
    if (auto* error = std::get_if<ExpressionError>(&result)) {
      error->offset += part.offset;
      report(reading, node, {*error});
      return std::nullopt;
    }
    auto& value = std::get<Value>(result);
    if (parsed.parts.size() == 1) {
      return std::move(value);
    }
    if (value.kind == Value::Kind::kList) {
      reading.diagnostics.error(
          reading.tree.place(node, part.offset),
          "a list of " + std::to_string(value.list.size()) + " cannot stand within a text",
          "let the expression stand alone");
      return std::nullopt;
    }
    text += value.text;
  }
  return Value::of_text(std::move(text));
}

std::optional<std::string> read_text(SpecReading& reading, NodeIndex node,
                                     const std::string& what) {
  std::optional<Value> value = read_value(reading, node, what);
  if (!value) {
    return std::nullopt;
  }
  if (value->kind == Value::Kind::kList) {
    report_value(reading, node, what + " must be a single value, found a list", "");
    return std::nullopt;
  }
  return std::move(value->text);
}

std::optional<int64_t> read_int(SpecReading& reading, NodeIndex node, const std::string& what,
                                int64_t least, int64_t most) {
  const std::optional<std::string> text = read_text(reading, node, what);
  if (!text) {
    return std::nullopt;
  }
  const std::optional<int64_t> number = parse_int(*text);
  if (!number || *number < least || *number > most) {
    report_value(reading, node,
                 what + " is '" + *text + "', a whole number from " + std::to_string(least) +
                     " to " + std::to_string(most) + " is needed",
                 "");
    return std::nullopt;
  }
  return number;
}

std::string shown(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::kScalar) {
    return node.kind == YamlNode::Kind::kMap ? "a map" : "a list";
  }
  if (node.style == YamlNode::Style::kAbsent) {
    return "nothing";
  }
  constexpr size_t kShownMax = 60;
  const size_t end = std::min(node.text.find('\n'), kShownMax);
  return "'" + node.text.substr(0, end) + (node.text.size() > end ? "…'" : "'");
}

bool expect_map(SpecReading& reading, NodeIndex node, const std::string& what,
                const std::string& example) {
  const YamlNode& found = reading.tree[node];
  if (found.kind == YamlNode::Kind::kMap) {
    return true;
  }
  reading.diagnostics.error(found.mark, what + " must be a map, found " + shown(found),
                            "write for example " + example);
  return false;
}

namespace {

// The nearest name that is allowed, when little has to change.
std::string name_hint(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '-' || c == ' ' || c == '.'; }, '_');
  return is_name(name) ? "write '" + name + "'" : "";
}

}  // namespace

bool check_name(SpecReading& reading, const YamlNode& node, const std::string& what) {
  if (is_name(node.key)) {
    return true;
  }
  if (node.key.rfind("x-", 0) != 0 && node.key != kMergeKey) {
    reading.diagnostics.error(node.key_mark,
                              "'" + node.key + "' cannot be the name of " + what +
                                  ": a letter, then letters, digits and _ are allowed",
                              name_hint(node.key));
  }
  return false;
}

}  // namespace sluice::io
