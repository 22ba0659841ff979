// except: items that a task leaves out of its product.
#include <algorithm>
#include <map>
#include <unordered_map>

#include "io/spec_foreach.h"

namespace sluice::io {

namespace {

constexpr size_t kReportedMax = 20;

// Entries that give the same keys are put together: an item is looked up once in all of these,
// however many they are.
class ExceptReader {
 public:
  ExceptReader(SpecReading& reading, SpecTask& task, NodeIndex except)
      : reading_(reading),
        tree_(reading.tree),
        task_(task),
        except_(except),
        where_("'except' in foreach of task '" + task.name + "'") {}

  void run() {
    const size_t errors_before = reading_.diagnostics.errors();
    if (tree_[except_].kind != YamlNode::Kind::kList || tree_[except_].count == 0) {
      reading_.diagnostics.error(tree_[except_].mark, where_ + " must be a list of maps", kExample);
      return;
    }
    for (const NodeIndex child : tree_.children(except_)) {
      read_partial(child);
    }
    if (reading_.diagnostics.errors() > errors_before || task_.text.items.empty()) {
      return;
    }
    const std::vector<bool> matching = matching_items();
    report_unmatched();
    remove(matching);
  }

 private:
  static constexpr const char* kExample = "write except: [{grid: 64, alpha: 0.5}]";

  struct Partial {
    NodeIndex node = kNoNode;
    std::map<size_t, std::string> given;  // by column
    std::vector<size_t> columns;
    std::string values;  // joined
    bool matched = false;
    bool repeats = false;  // an earlier entry is the same
  };
  using ByValues = std::unordered_map<std::string, size_t>;  // the first such entry

  void read_partial(NodeIndex node) {
    if (!expect_map(reading_, node, "an entry of " + where_, "{grid: 64, alpha: 0.5}")) {
      return;
    }
    const std::vector<std::string>& keys = task_.text.keys;
    Partial partial;
    partial.node = node;
    for (const NodeIndex child : tree_.children(node)) {
      const auto key = std::find(keys.begin(), keys.end(), tree_[child].key);
      if (key == keys.end()) {
        reading_.diagnostics.error(tree_[child].key_mark,
                                   where_ + ": the items have no key '" + tree_[child].key + "'",
                                   suggestion(tree_[child].key, keys, "the keys are"));
      } else if (const auto text = read_text(reading_, child, "'" + *key + "' in " + where_)) {
        partial.given.emplace(key - keys.begin(), *text);
      }
    }
    if (tree_[node].count == 0) {
      reading_.diagnostics.error(tree_[node].mark, "an entry of " + where_ + " has no keys",
                                 kExample);
    }
    for (const auto& [column, value] : partial.given) {
      partial.columns.push_back(column);
      partial.values += joined_values({value}, {0});
    }
    partials_.push_back(std::move(partial));
  }

  // Which items match some entry. All entries are asked, so that each one's matches are known.
  std::vector<bool> matching_items() {
    std::map<std::vector<size_t>, ByValues> by_columns;
    for (size_t i = 0; i < partials_.size(); ++i) {
      ByValues& same_keys = by_columns[partials_[i].columns];
      partials_[i].repeats = !same_keys.emplace(partials_[i].values, i).second;
    }
    const auto& items = task_.text.items;
    std::vector<bool> matching(items.size(), false);
    for (size_t i = 0; i < items.size(); ++i) {
      for (const auto& [columns, by_values] : by_columns) {
        const auto found = by_values.find(joined_values(items[i], columns));
        if (found != by_values.end()) {
          partials_[found->second].matched = true;
          matching[i] = true;
        }
      }
    }
    return matching;
  }

  void report_unmatched() {
    size_t count = 0;
    for (const Partial& partial : partials_) {
      if (!partial.matched && !partial.repeats && ++count <= kReportedMax) {
        reading_.diagnostics.error(tree_[partial.node].mark,
                                   where_ + ": no item has " + named(partial), hint(partial));
      }
    }
    if (count > kReportedMax) {
      reading_.diagnostics.error(
          tree_[except_].mark,
          where_ + ": " + std::to_string(count - kReportedMax) + " more entries match no item");
    }
  }

  [[nodiscard]] std::string named(const Partial& partial) const {
    std::string all;
    for (const auto& [column, value] : partial.given) {
      all += (all.empty() ? "" : ", ") + task_.text.keys[column] + "=" + value;
    }
    return all;
  }

  // The value that no item has, or that they do not come together.
  [[nodiscard]] std::string hint(const Partial& partial) const {
    const auto& items = task_.text.items;
    for (const auto& [column, value] : partial.given) {
      const bool there = std::any_of(
          items.begin(), items.end(),
          [&column = column, &value = value](const auto& item) { return item[column] == value; });
      if (!there) {
        return value_hint(task_, column, value);
      }
    }
    return "each of these values is there, but no item has all of them";
  }

  void remove(const std::vector<bool>& matching) {
    auto& items = task_.text.items;
    size_t kept = 0;
    for (size_t i = 0; i < items.size(); ++i) {
      if (matching[i]) {
        continue;
      }
      if (kept != i) {
        items[kept] = std::move(items[i]);
      }
      ++kept;
    }
    items.resize(kept);
  }

  SpecReading& reading_;
  const YamlTree& tree_;
  SpecTask& task_;
  NodeIndex except_;
  std::string where_;
  std::vector<Partial> partials_;
};

}  // namespace

void leave_out_items(SpecReading& reading, SpecTask& task, NodeIndex except) {
  ExceptReader(reading, task, except).run();
}

}  // namespace sluice::io
