// The join: which instances of a producer an instance of a consumer reads.
//
// Both sides are cut to the keys they are joined by: those that both have, or those in `join`.
// Equal texts of these make a group. What the producer has beside them is gathered over, what the
// consumer has beside them is broadcast to. `where` chooses among the producer's items first, and
// its keys count no more.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "io/numbers.h"
#include "io/spec_reader.h"

namespace sluice::io {

namespace {

constexpr uint32_t kNoGroup = UINT32_MAX;

struct HashOfHash {
  size_t operator()(const scheduler::Hash128& hash) const { return hash.low; }
};

template <class T>
bool contains(const std::vector<T>& all, const T& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

class Joiner {
 public:
  Joiner(SpecReading& reading, SpecTask& consumer, const SpecInput& input)
      : reading_(reading),
        consumer_(consumer),
        producer_(reading.tasks[input.producer]),
        input_(input),
        where_((input.is_order ? "'after'" : "input '" + input.name + "'") +
               (" of task '" + consumer.name + "'")) {}

  TaskInput run(JoinGroups& groups) {
    TaskInput result;
    result.name = input_.name;
    result.producer = scheduler::TaskId(input_.producer);
    result.output = static_cast<uint32_t>(input_.output);
    const size_t errors_before = reading_.diagnostics.errors();
    match_keys(result);
    if (reading_.diagnostics.errors() == errors_before && consumer_.items_known &&
        producer_.items_known && select_items()) {
      is_list_ = result.is_list || input_.is_order;
      number_groups();
      check();
      groups = make_groups();
    }
    return result;
  }

 private:
  // ---- keys ----

  void match_keys(TaskInput& result) {
    find_where_columns(result);
    check_join_keys();
    const auto& keys = consumer_.text.keys;
    for (size_t p = 0; p < producer_.text.keys.size(); ++p) {
      const std::string& key = producer_.text.keys[p];
      const auto found = std::find(keys.begin(), keys.end(), key);
      if (contains(where_columns_, p)) {
        continue;
      }
      if (found == keys.end() || !joins_by(key)) {
        result.over.push_back(key);
      } else {
        producer_columns_.push_back(p);
        consumer_columns_.push_back(static_cast<size_t>(found - keys.begin()));
      }
    }
    result.is_list = input_.join.all || !result.over.empty();
    result.join = result.is_list                           ? JoinKind::kGather
                  : keys.size() > producer_columns_.size() ? JoinKind::kBroadcast
                                                           : JoinKind::kOneToOne;
  }

  [[nodiscard]] bool joins_by(const std::string& key) const {
    const JoinRule& rule = input_.join;
    return rule.keys_node == kNoNode ? !rule.all : contains(rule.keys, key);
  }

  void find_where_columns(TaskInput& result) {
    const auto& keys = producer_.text.keys;
    for (const JoinRule::Where& where : input_.join.where) {
      const auto found = std::find(keys.begin(), keys.end(), where.key);
      const Mark mark = reading_.tree[where.node].key_mark;
      if (found == keys.end()) {
        report_unknown_key(mark, "where", where.key, producer_);
        continue;
      }
      if (contains(input_.join.keys, where.key)) {
        reading_.diagnostics.error(mark,
                                   where_ + ": '" + where.key + "' is in 'where' and in 'join'",
                                   "a key of 'where' has one value, so there is nothing to join");
      }
      where_columns_.push_back(static_cast<size_t>(found - keys.begin()));
      result.where += (result.where.empty() ? "" : ",") + where.key + "=" + where.value;
    }
  }

  void check_join_keys() {
    for (const std::string& key : input_.join.keys) {
      for (const SpecTask* task : {&producer_, static_cast<const SpecTask*>(&consumer_)}) {
        if (!contains(task->text.keys, key)) {
          report_unknown_key(reading_.tree[input_.join.keys_node].mark, "join", key, *task);
          break;
        }
      }
    }
  }

  void report_unknown_key(Mark mark, const std::string& word, const std::string& key,
                          const SpecTask& task) {
    if (!task.items_known) {
      return;
    }
    reading_.diagnostics.error(
        mark, where_ + ", " + word + ": task '" + task.name + "' has no foreach key '" + key + "'",
        task.text.keys.empty() ? "it has no foreach"
                               : suggestion(key, task.text.keys, "its keys are"));
  }

  // ---- items ----

  // The producer's items that `where` leaves. False: reported.
  bool select_items() {
    const auto& items = producer_.text.items;
    const auto& rules = input_.join.where;
    std::vector<bool> seen(rules.size(), false);
    for (uint32_t i = 0; i < items.size(); ++i) {
      bool all = true;
      for (size_t w = 0; w < rules.size(); ++w) {
        const bool equal = items[i][where_columns_[w]] == rules[w].value;
        seen[w] = seen[w] || equal;
        all = all && equal;
      }
      if (all) {
        selected_.push_back(i);
      }
    }
    if (!selected_.empty() || items.empty()) {
      return true;
    }
    report_nothing_selected(seen);
    return false;
  }

  void report_nothing_selected(const std::vector<bool>& seen) {
    for (size_t w = 0; w < seen.size(); ++w) {
      const JoinRule::Where& rule = input_.join.where[w];
      if (!seen[w]) {
        reading_.diagnostics.error(reading_.tree[rule.node].mark,
                                   where_ + ", where: no item of '" + producer_.name + "' has " +
                                       rule.key + "=" + rule.value,
                                   value_hint(producer_, where_columns_[w], rule.value));
        return;
      }
    }
    reading_.diagnostics.error(
        reading_.tree[input_.join.where[0].node].key_mark,
        where_ + ", where: no item of '" + producer_.name + "' has all of these values",
        "each of them is there, but they do not come together");
  }

  // Numbers the groups in the order of the producer's items. Values are compared by their hashes,
  // which costs less than a copy of them.
  void number_groups() {
    std::unordered_map<scheduler::Hash128, uint32_t, HashOfHash> index;
    index.reserve(selected_.size());
    for (const uint32_t i : selected_) {
      const auto key = hash_text(joined_values(producer_.text.items[i], producer_columns_));
      const auto [found, fresh] = index.emplace(key, group_count_);
      group_count_ += fresh ? 1 : 0;
      producer_group_.push_back(found->second);
    }
    for (uint32_t i = 0; i < consumer_.text.items.size(); ++i) {
      const auto found =
          index.find(hash_text(joined_values(consumer_.text.items[i], consumer_columns_)));
      consumer_group_.push_back(found == index.end() ? kNoGroup : found->second);
      if (found == index.end()) {
        without_producer_.push_back(i);
      }
    }
    has_consumers_.resize(group_count_, false);
    for (const uint32_t group : consumer_group_) {
      if (group != kNoGroup) {
        has_consumers_[group] = true;
      }
    }
  }

  // Objects without consumers need no group; consumers without producers share an empty one.
  [[nodiscard]] JoinGroups make_groups() const {
    std::vector<uint32_t> number(group_count_, kNoGroup);
    uint32_t count = 0;
    for (uint32_t group = 0; group < group_count_; ++group) {
      number[group] = has_consumers_[group] ? count++ : kNoGroup;
    }
    const uint32_t empty = without_producer_.empty() ? kNoGroup : count++;
    JoinGroups groups;
    const auto producer_row = [&](size_t i) { return number[producer_group_[i]]; };
    const auto consumer_row = [&](size_t i) {
      return consumer_group_[i] == kNoGroup ? empty : number[consumer_group_[i]];
    };
    fill_rows(
        count, selected_.size(), producer_row, [&](size_t i) { return selected_[i]; },
        groups.producers_begin, groups.producers);
    fill_rows(
        count, consumer_group_.size(), consumer_row,
        [](size_t i) { return static_cast<uint32_t>(i); }, groups.consumers_begin,
        groups.consumers);
    return groups;
  }

  // Value i goes to row row_of(i), if it has one; the order within a row is kept.
  template <class RowOf, class ValueOf>
  static void fill_rows(size_t rows, size_t count, const RowOf& row_of, const ValueOf& value_of,
                        std::vector<uint32_t>& begin, std::vector<uint32_t>& values) {
    begin.assign(rows + 1, 0);
    for (size_t i = 0; i < count; ++i) {
      if (row_of(i) != kNoGroup) {
        ++begin[row_of(i) + 1];
      }
    }
    for (size_t row = 0; row < rows; ++row) {
      begin[row + 1] += begin[row];
    }
    values.resize(begin[rows]);
    std::vector<uint32_t> next(begin.begin(), begin.end() - 1);
    for (size_t i = 0; i < count; ++i) {
      if (row_of(i) != kNoGroup) {
        values[next[row_of(i)]++] = value_of(i);
      }
    }
  }

  // ---- what does not fit ----

  void check() {
    std::vector<uint32_t> unread;
    for (size_t i = 0; i < selected_.size(); ++i) {
      if (!has_consumers_[producer_group_[i]]) {
        unread.push_back(selected_[i]);
      }
    }
    // An empty foreach was allowed where it stands.
    const bool nobody_reads = consumer_.text.items.empty();
    const bool nothing_made = producer_.text.items.empty() && is_list_;
    if ((without_producer_.empty() && unread.empty()) || nobody_reads || nothing_made ||
        check_spelling()) {
      return;
    }
    const bool skip = input_.join.skip_missing;
    if (!without_producer_.empty() && !(skip && is_list_)) {
      report_without_producer(unread);
    }
    if (!unread.empty() && !skip && without_producer_.size() < consumer_.text.items.size()) {
      fail(where_ + ": no instance of '" + consumer_.name +
               (input_.is_order ? "' comes after " : "' reads ") + named_items(producer_, unread) +
               " of '" + producer_.name + "'",
           join_hint() + (input_.is_order ? "" : ", or write missing: skip"));
    }
  }

  void report_without_producer(const std::vector<uint32_t>& unread) {
    const std::string consumers = named_items(consumer_, without_producer_);
    if (producer_.text.items.empty()) {
      fail(where_ + ": '" + producer_.name + "' has no instances, and this input is no list",
           "give '" + consumer_.name + "' the items of '" + producer_.name + "'");
    } else if (input_.join.skip_missing) {
      fail(where_ + ": '" + producer_.name + "' has no instance for " + consumers,
           "missing: skip can leave a list empty, but this input is one object; leave the items "
           "out with 'except'");
    } else if (without_producer_.size() == consumer_.text.items.size()) {
      fail(where_ + " matches nothing: '" + producer_.name + "' has " +
               named_items(producer_, unread) + ", '" + consumer_.name + "' has " + consumers,
           join_hint());
    } else {
      fail(where_ + ": '" + producer_.name + "' has no instance for " + consumers,
           join_hint() +
               (is_list_ && !input_.is_order ? ", or write missing: skip for an empty list" : ""));
    }
  }

  void fail(const std::string& text, const std::string& hint) {
    reading_.diagnostics.error(reading_.tree[input_.node].mark, text, hint);
  }

  [[nodiscard]] std::string join_hint() const {
    std::string all;
    for (const size_t column : consumer_columns_) {
      all += (all.empty() ? "'" : ", '") + consumer_.text.keys[column] + "'";
    }
    return "items join by equal keys: give both tasks the same values of " + all;
  }

  // "0.1" here and "0.10" there are one number to people, and two items to us.
  bool check_spelling() {
    bool any = false;
    for (size_t k = 0; k < consumer_columns_.size(); ++k) {
      std::map<double, std::string> numbers;
      std::set<std::string> texts;
      for (const uint32_t i : selected_) {
        const std::string& text = producer_.text.items[i][producer_columns_[k]];
        if (texts.insert(text).second) {
          if (const auto number = parse_float(text)) {
            numbers.emplace(*number, text);
          }
        }
      }
      std::set<std::string> reported;
      for (const auto& item : consumer_.text.items) {
        const std::string& text = item[consumer_columns_[k]];
        const auto number = parse_float(text);
        const auto other = number ? numbers.find(*number) : numbers.end();
        if (texts.count(text) != 0 || other == numbers.end() || !reported.insert(text).second) {
          continue;
        }
        any = true;
        const std::string& key = consumer_.text.keys[consumer_columns_[k]];
        std::string message = where_;
        message.append(": '")
            .append(key)
            .append("' is '")
            .append(text)
            .append("' in '")
            .append(consumer_.name)
            .append("' and '");
        message.append(other->second).append("' in '").append(producer_.name);
        fail(message + "': one number, but items join by equal text",
             "write the number in one way");
      }
    }
    return any;
  }

  SpecReading& reading_;
  SpecTask& consumer_;
  const SpecTask& producer_;
  const SpecInput& input_;
  std::string where_;
  bool is_list_ = false;
  std::vector<size_t> where_columns_;     // parallel to the rules of `where`
  std::vector<uint32_t> selected_;        // the producer's items
  std::vector<size_t> producer_columns_;  // of the keys to join by, in parallel
  std::vector<size_t> consumer_columns_;
  uint32_t group_count_ = 0;
  std::vector<uint32_t> producer_group_;  // parallel to selected_
  std::vector<uint32_t> consumer_group_;  // by the consumer's item, kNoGroup: none
  std::vector<bool> has_consumers_;       // by group
  std::vector<uint32_t> without_producer_;
};

// Notes which items' objects are read. Most inputs read all of them.
void mark_read(const std::vector<uint32_t>& items, size_t item_count, SpecOutput& output) {
  if (items.size() == item_count) {
    output.consumed = true;
    return;
  }
  output.read.resize(item_count, false);
  for (const uint32_t item : items) {
    output.read[item] = true;
  }
}

// Several inputs may read all items together.
void finish_reading(std::vector<SpecTask>& tasks) {
  for (SpecTask& task : tasks) {
    for (SpecOutput& output : task.outputs) {
      if (!output.read.empty() && !contains(output.read, false)) {
        output.consumed = true;
      }
    }
  }
}

}  // namespace

void join_inputs(SpecReading& reading) {
  for (SpecTask& task : reading.tasks) {
    task.groups.resize(task.inputs.size());
    uint32_t order = 0;
    for (size_t i = 0; i < task.inputs.size(); ++i) {
      const SpecInput& input = task.inputs[i];
      TaskInput result;
      result.name = input.name;
      if (input.resolved) {
        result = Joiner(reading, task, input).run(task.groups[i]);
        SpecTask& producer = reading.tasks[input.producer];
        mark_read(task.groups[i].producers, producer.text.items.size(),
                  producer.outputs[input.output]);
      }
      result.view = view_text(input);
      task.text.inputs.push_back(std::move(result));
      task.templates.views.push_back({input.view, kNoIndex});
      task.templates.source_paths.push_back(input.path);
      task.templates.group_order.push_back(input.is_source ? UINT32_MAX : order++);
    }
    task.after_groups.resize(task.after.size());
    for (size_t i = 0; i < task.after.size(); ++i) {
      if (task.after[i].resolved) {
        (void)Joiner(reading, task, task.after[i]).run(task.after_groups[i]);
      }
    }
  }
  finish_reading(reading.tasks);
}

}  // namespace sluice::io
