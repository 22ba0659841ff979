// foreach: the items of a task.
#include <algorithm>
#include <set>

#include "io/spec_reader.h"
#include "io/spec_schema.h"
#include "io/spec_values.h"

namespace sluice::io {

namespace {

constexpr size_t kItemsMax = 10'000'000;
using Texts = std::vector<std::string>;

class ForeachReader {
 public:
  ForeachReader(SpecReading& reading, SpecTask& task)
      : reading_(reading), tree_(reading.tree), task_(task) {}

  void run(NodeIndex foreach) {
    const size_t errors_before = reading_.diagnostics.errors();
    if (tree_[foreach].kind == YamlNode::Kind::kList) {
      read_cases(foreach);
    } else if (expect_map(reading_, foreach, "'foreach' of task '" + task_.name + "'",
                          "foreach: {grid: [64, 128]}")) {
      read_product(foreach);
    }
    task_.items_known = reading_.diagnostics.errors() == errors_before;
    if (!task_.items_known) {
      task_.text.items.clear();
    }
  }

 private:
  std::string what(const std::string& key) const {
    return "foreach key '" + key + "' of task '" + task_.name + "'";
  }

  bool check_key(const YamlNode& node) {
    if (const KeyRule* rule = find_rule(Level::kForeach, node.key)) {
      reading_.diagnostics.error(node.key_mark, "'" + std::string(rule->key) +
                                                    "' in foreach of task '" + task_.name +
                                                    "' is not supported yet");
      return false;
    }
    return check_name(reading_, node, "a foreach key");
  }

  void read_product(NodeIndex foreach) {
    std::vector<Texts> values;
    for (const NodeIndex child : tree_.children(foreach)) {
      const YamlNode& node = tree_[child];
      if (!check_key(node)) {
        continue;
      }
      task_.text.keys.push_back(node.key);
      values.push_back(read_values(child));
      check_distinct(child, values.back());
    }
    if (tree_[foreach].count == 0) {
      reading_.diagnostics.error(tree_[foreach].mark,
                                 "foreach of task '" + task_.name + "' has no keys",
                                 "leave it out for a single instance");
    }
    if (!task_.text.keys.empty()) {
      multiply(foreach, values);
    }
  }

  // The last key is the fastest.
  void multiply(NodeIndex foreach, const std::vector<Texts>& values) {
    size_t total = 1;
    for (const Texts& texts : values) {
      if (texts.empty()) {
        return;  // reported
      }
      if (total > kItemsMax / texts.size()) {
        reading_.diagnostics.error(tree_[foreach].mark, "foreach of task '" + task_.name +
                                                            "' has more than " +
                                                            std::to_string(kItemsMax) + " items");
        return;
      }
      total *= texts.size();
    }
    task_.text.items.assign(total, Texts(values.size()));
    size_t block = total;
    for (size_t k = 0; k < values.size(); ++k) {
      block /= values[k].size();
      for (size_t i = 0; i < total; ++i) {
        task_.text.items[i][k] = values[k][i / block % values[k].size()];
      }
    }
  }

  Texts read_values(NodeIndex node) {
    const YamlNode& found = tree_[node];
    if (found.kind == YamlNode::Kind::kMap) {
      return read_value_map(node);
    }
    if (found.kind == YamlNode::Kind::kList) {
      return read_list(node);
    }
    const std::optional<Value> value = read_value(reading_, node, what(found.key));
    if (!value) {
      return {};
    }
    if (value->kind != Value::Kind::kList) {
      report_value(reading_, node, what(found.key) + " must be a list, found '" + value->text + "'",
                   list_hint(found.text));
      return {};
    }
    return not_empty(node, value->list);
  }

  // `grid: grids` or `grid: params.grids`: probably a param is meant.
  [[nodiscard]] std::string list_hint(const std::string& text) const {
    for (const Param& param : reading_.params) {
      if (text == param.name || text == "params." + param.name) {
        return "to use the param write \"${{ params." + param.name + " }}\"";
      }
    }
    return "write [" + text +
           "] for a list of one, or \"${{ params.NAME }}\" for a param of type list";
  }

  Texts not_empty(NodeIndex node, Texts texts) {
    if (texts.empty()) {
      report_value(reading_, node,
                   what(tree_[node].key) + " has no values, so the task would have no instance",
                   "give at least one value");
    }
    return texts;
  }

  Texts read_list(NodeIndex node) {
    Texts texts;
    const std::string name = "a value of " + what(tree_[node].key);
    for (const NodeIndex child : tree_.children(node)) {
      if (std::optional<std::string> text = read_text(reading_, child, name)) {
        texts.push_back(std::move(*text));
      }
    }
    return tree_[node].count == 0 ? not_empty(node, {}) : texts;
  }

  Texts read_value_map(NodeIndex node) {
    const std::string where = what(tree_[node].key);
    check_keys(tree_, node, Level::kForeachValue, where, reading_.diagnostics);
    const NodeIndex range = tree_.find(node, "range");
    if (range == kNoNode) {
      return {};
    }
    Texts numbers;
    for (const NodeIndex child : tree_.children(range)) {
      if (std::optional<std::string> text = read_text(reading_, child, "a number of the range")) {
        numbers.push_back(std::move(*text));
      }
    }
    if (tree_[range].count == 2 && numbers.size() == 2) {
      numbers.emplace_back("1");
    }
    if (tree_[range].kind != YamlNode::Kind::kList || numbers.size() != 3) {
      reading_.diagnostics.error(tree_[range].mark,
                                 "the range of " + where + " must have two or three numbers",
                                 "write {range: [first, end, step]}, the end not included");
      return {};
    }
    auto parsed = parse_range(numbers[0], numbers[1], numbers[2]);
    if (const auto* error = std::get_if<ValueError>(&parsed)) {
      reading_.diagnostics.error(tree_[range].mark, where + ": " + error->text, error->hint);
      return {};
    }
    return std::get<Texts>(std::move(parsed));
  }

  void check_distinct(NodeIndex node, const Texts& texts) {
    std::set<std::string> seen;
    for (const std::string& text : texts) {
      if (!seen.insert(text).second) {
        report_value(reading_, node, what(tree_[node].key) + " has the value '" + text + "' twice",
                     "two instances with the same item cannot be told apart");
        return;
      }
    }
  }

  // A list of maps with equal keys.
  void read_cases(NodeIndex foreach) {
    std::set<Texts> seen;
    for (const NodeIndex child : tree_.children(foreach)) {
      if (!expect_map(reading_, child, "a case of foreach of task '" + task_.name + "'",
                      "foreach: [{name: a, size: 1}, {name: b, size: 2}]")) {
        continue;
      }
      if (task_.text.keys.empty()) {
        read_case_keys(child);
      }
      Texts item = read_case(child);
      if (!item.empty() && !seen.insert(item).second) {
        reading_.diagnostics.error(
            tree_[child].mark, "this case of foreach of task '" + task_.name + "' is there twice",
            "remove one of them");
      }
      task_.text.items.push_back(std::move(item));
    }
    if (tree_[foreach].count == 0) {
      reading_.diagnostics.error(tree_[foreach].mark,
                                 "foreach of task '" + task_.name + "' has no items",
                                 "leave it out for a single instance");
    }
  }

  void read_case_keys(NodeIndex first) {
    for (const NodeIndex child : tree_.children(first)) {
      if (check_key(tree_[child])) {
        task_.text.keys.push_back(tree_[child].key);
      }
    }
  }

  Texts read_case(NodeIndex node) {
    Texts item;
    for (const std::string& key : task_.text.keys) {
      const NodeIndex value = tree_.find(node, key);
      if (value == kNoNode) {
        reading_.diagnostics.error(
            tree_[node].mark,
            "this case of foreach of task '" + task_.name + "' lacks the key '" + key + "'",
            "all cases need the same keys");
        return {};
      }
      item.push_back(read_text(reading_, value, what(key)).value_or(""));
    }
    for (const NodeIndex child : tree_.children(node)) {
      const Texts& keys = task_.text.keys;
      if (std::find(keys.begin(), keys.end(), tree_[child].key) == keys.end()) {
        reading_.diagnostics.error(tree_[child].key_mark,
                                   "the first case of foreach of task '" + task_.name +
                                       "' has no key '" + tree_[child].key + "'",
                                   suggestion(tree_[child].key, keys, "all cases need the keys"));
      }
    }
    return item;
  }

  SpecReading& reading_;
  const YamlTree& tree_;
  SpecTask& task_;
};

}  // namespace

void read_foreach(SpecReading& reading, SpecTask& task, NodeIndex foreach) {
  if (foreach == kNoNode) {
    task.text.items = {{}};
    return;
  }
  ForeachReader(reading, task).run(foreach);
}

}  // namespace sluice::io
