// foreach: the items of a task.
//
// A factor is a table of items: a map of lists (their product) or a list of maps (the cases). The
// items are the product of the factors, the last one fastest, without those that `except` names.
#include "io/spec_foreach.h"

#include <algorithm>
#include <numeric>

#include "io/spec_schema.h"
#include "io/spec_values.h"

namespace sluice::io {

namespace {

constexpr size_t kItemsMax = 10'000'000;
using Texts = std::vector<std::string>;

struct Factor {
  Texts keys;
  std::vector<Texts> rows;  // values, parallel to keys
};

class ForeachReader {
 public:
  ForeachReader(SpecReading& reading, SpecTask& task, NodeIndex foreach)
      : reading_(reading),
        tree_(reading.tree),
        task_(task),
        foreach_(foreach),
        where_("foreach of task '" + task.name + "'") {}

  void run() {
    const size_t errors_before = reading_.diagnostics.errors();
    read();
    task_.items_known = reading_.diagnostics.errors() == errors_before;
    if (!task_.items_known) {
      task_.text.items.clear();
    }
  }

 private:
  static constexpr const char* kCases = "foreach: [{name: a, size: 1}, {name: b, size: 2}]";

  void read() {
    if (tree_[foreach_].kind == YamlNode::Kind::kList) {
      multiply({read_cases(foreach_)});
    } else if (expect_map(reading_, foreach_, "'foreach' of task '" + task_.name + "'",
                          "foreach: {grid: [64, 128]}")) {
      read_map();
    }
  }

  void read_map() {
    const size_t errors_before = reading_.diagnostics.errors();
    read_allow_empty();
    const NodeIndex product = tree_.find(foreach_, "product");
    multiply(product == kNoNode ? read_keys(foreach_) : read_factors(product));
    const NodeIndex except = tree_.find(foreach_, "except");
    if (except == kNoNode || reading_.diagnostics.errors() > errors_before) {
      return;
    }
    const bool had_items = !task_.text.items.empty();
    leave_out_items(reading_, task_, except);
    if (had_items && task_.text.items.empty() && !allow_empty_) {
      reading_.diagnostics.error(tree_[except].key_mark, "'except' leaves no item in " + where_,
                                 "if that is fine write allow_empty: true");
    }
  }

  void read_allow_empty() {
    const NodeIndex node = tree_.find(foreach_, "allow_empty");
    if (node == kNoNode) {
      return;
    }
    const std::string what = "'allow_empty' in " + where_;
    if (const auto text = read_text(reading_, node, what)) {
      allow_empty_ = *text == "true";
      if (*text != "true" && *text != "false") {
        report_value(reading_, node, what + " is '" + *text + "', true or false is needed", "");
      }
    }
  }

  // `product: [factors]`
  std::vector<Factor> read_factors(NodeIndex product) {
    refuse_keys_beside(product);
    if (tree_[product].kind != YamlNode::Kind::kList || tree_[product].count == 0) {
      reading_.diagnostics.error(tree_[product].mark,
                                 "'product' in " + where_ + " must be a list of factors",
                                 "write product: [{grid: [64, 128]}, [{name: a, size: 1}, {name: "
                                 "b, size: 2}]]");
      return {};
    }
    std::vector<Factor> factors;
    for (const NodeIndex child : tree_.children(product)) {
      if (tree_[child].kind == YamlNode::Kind::kList) {
        factors.push_back(read_cases(child));
      } else if (expect_map(reading_, child, "a factor of 'product' in " + where_,
                            "{grid: [64, 128]}, or [{name: a, size: 1}] for cases")) {
        std::vector<Factor> keys = read_keys(child);
        std::move(keys.begin(), keys.end(), std::back_inserter(factors));
      }
    }
    return factors;
  }

  void refuse_keys_beside(NodeIndex product) {
    for (const NodeIndex child : tree_.children(foreach_)) {
      const YamlNode& node = tree_[child];
      if (find_rule(Level::kForeach, node.key) == nullptr && !is_note(node)) {
        reading_.diagnostics.error(
            node.key_mark, "'" + node.key + "' stands beside 'product' in " + where_,
            "make it a factor: " + tree_[product].key + ": [{" + node.key + ": ...}, ...]");
      }
    }
  }

  // One factor for each key of a map.
  std::vector<Factor> read_keys(NodeIndex map) {
    std::vector<Factor> factors;
    size_t keys = 0;
    for (const NodeIndex child : tree_.children(map)) {
      const YamlNode& node = tree_[child];
      if (map == foreach_ && find_rule(Level::kForeach, node.key) != nullptr) {
        continue;
      }
      if (is_note(node)) {
        continue;
      }
      ++keys;
      const bool twice = std::any_of(factors.begin(), factors.end(), [&](const Factor& factor) {
        return factor.keys[0] == node.key;
      });
      if (twice || !check_key(node)) {
        continue;  // reported
      }
      Factor factor{{node.key}, {}};
      if (auto texts = read_foreach_values(reading_, task_, child, allow_empty_)) {
        factor.rows.reserve(texts->size());
        for (std::string& text : *texts) {
          factor.rows.emplace_back().push_back(std::move(text));
        }
      }
      factors.push_back(std::move(factor));
    }
    if (keys == 0) {
      reading_.diagnostics.error(
          tree_[map].mark, (map == foreach_ ? where_ : "a factor in " + where_) + " has no keys",
          "leave it out for a single instance");
    }
    return factors;
  }

  static bool is_note(const YamlNode& node) { return node.key.rfind("x-", 0) == 0; }

  bool check_key(const YamlNode& node) {
    if (find_rule(Level::kForeach, node.key) != nullptr) {
      reading_.diagnostics.error(node.key_mark,
                                 "'" + node.key + "' is a word of foreach and no key of items",
                                 "it stands in foreach itself, not in a factor or a case");
      return false;
    }
    if (find_rule(Level::kForeachValue, node.key) != nullptr) {
      reading_.diagnostics.error(
          node.key_mark, "'" + node.key + "' stands where a foreach key is expected in " + where_,
          "give the key a name: {x: {" + node.key + ": ...}}");
      return false;
    }
    return check_name(reading_, node, "a foreach key");
  }

  // A list of maps with equal keys.
  Factor read_cases(NodeIndex list) {
    Factor factor;
    std::vector<NodeIndex> nodes;  // parallel to the rows
    for (const NodeIndex child : tree_.children(list)) {
      if (!expect_map(reading_, child, "a case of " + where_, kCases)) {
        continue;
      }
      if (factor.keys.empty()) {
        factor.keys = case_keys(child);
      }
      Texts row = read_case(child, factor.keys);
      if (!row.empty()) {
        factor.rows.push_back(std::move(row));
        nodes.push_back(child);
      }
    }
    if (tree_[list].count == 0 && !allow_empty_) {
      reading_.diagnostics.error(tree_[list].mark, where_ + " has no items",
                                 "leave it out for a single instance");
    }
    check_distinct(factor.rows, nodes);
    return factor;
  }

  Texts case_keys(NodeIndex first) {
    const auto cells = tree_.children(first);
    if (std::all_of(cells.begin(), cells.end(),
                    [this](NodeIndex child) { return is_note(tree_[child]); })) {
      reading_.diagnostics.error(tree_[first].mark, "this case of " + where_ + " has no keys",
                                 std::string("write for example ") + kCases);
    }
    Texts keys;
    for (const NodeIndex child : cells) {
      if (!is_note(tree_[child]) && check_key(tree_[child])) {
        keys.push_back(tree_[child].key);
      }
    }
    return keys;
  }

  Texts read_case(NodeIndex node, const Texts& keys) {
    Texts row;
    for (const std::string& key : keys) {
      const NodeIndex value = tree_.find(node, key);
      if (value == kNoNode) {
        reading_.diagnostics.error(tree_[node].mark,
                                   "this case of " + where_ + " lacks the key '" + key + "'",
                                   "all cases need the same keys");
        return {};
      }
      row.push_back(
          read_text(reading_, value, "foreach key '" + key + "' of task '" + task_.name + "'")
              .value_or(""));
    }
    for (const NodeIndex child : tree_.children(node)) {
      const std::string& key = tree_[child].key;
      if (std::find(keys.begin(), keys.end(), key) == keys.end() && is_other_key(tree_[child])) {
        reading_.diagnostics.error(tree_[child].key_mark,
                                   "the first case of " + where_ + " has no key '" + key + "'",
                                   suggestion(key, keys, "all cases need the keys"));
      }
    }
    return row;
  }

  // Reported already, or a note.
  static bool is_other_key(const YamlNode& node) {
    return is_name(node.key) && find_rule(Level::kForeach, node.key) == nullptr &&
           find_rule(Level::kForeachValue, node.key) == nullptr;
  }

  void check_distinct(const std::vector<Texts>& rows, const std::vector<NodeIndex>& nodes) {
    std::vector<size_t> order(rows.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return rows[a] != rows[b] ? rows[a] < rows[b] : a < b; });
    for (size_t i = 1; i < order.size(); ++i) {
      if (rows[order[i - 1]] == rows[order[i]]) {
        reading_.diagnostics.error(tree_[nodes[order[i]]].mark,
                                   "this case of " + where_ + " is there twice",
                                   "remove one of them");
      }
    }
  }

  void multiply(std::vector<Factor> factors) {
    for (const Factor& factor : factors) {
      for (const std::string& key : factor.keys) {
        Texts& keys = task_.text.keys;
        if (std::find(keys.begin(), keys.end(), key) != keys.end()) {
          reading_.diagnostics.error(tree_[foreach_].mark,
                                     "two factors of " + where_ + " have the key '" + key + "'",
                                     "give one of them another name");
        } else {
          keys.push_back(key);
        }
      }
    }
    if (factors.size() == 1) {
      task_.text.items = std::move(factors[0].rows);
    } else if (const auto total = item_count(factors); total && !task_.text.keys.empty()) {
      fill_items(factors, *total);
    }
  }

  std::optional<size_t> item_count(const std::vector<Factor>& factors) {
    size_t total = 1;
    for (const Factor& factor : factors) {
      if (!factor.rows.empty() && total > kItemsMax / factor.rows.size()) {
        reading_.diagnostics.error(tree_[foreach_].mark, where_ + " has more than " +
                                                             std::to_string(kItemsMax) + " items");
        return std::nullopt;
      }
      total *= factor.rows.size();
    }
    return total;
  }

  // The last factor is the fastest.
  void fill_items(const std::vector<Factor>& factors, size_t total) {
    std::vector<Texts>& items = task_.text.items;
    items.resize(total);
    for (size_t i = 0; i < total; ++i) {
      items[i].reserve(task_.text.keys.size());
      size_t block = total;
      for (const Factor& factor : factors) {
        block /= factor.rows.size();
        const Texts& row = factor.rows[i / block % factor.rows.size()];
        items[i].insert(items[i].end(), row.begin(), row.end());
      }
    }
  }

  SpecReading& reading_;
  const YamlTree& tree_;
  SpecTask& task_;
  NodeIndex foreach_;
  std::string where_;
  bool allow_empty_ = false;
};

}  // namespace

void read_foreach(SpecReading& reading, SpecTask& task, NodeIndex foreach) {
  if (foreach == kNoNode) {
    task.text.items = {{}};
    return;
  }
  ForeachReader(reading, task, foreach).run();
}

}  // namespace sluice::io
