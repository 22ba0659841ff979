// The natural join: which instances of a producer an instance of a consumer reads.
//
// Both sides are cut to the keys they share; equal texts of these make a group. What the producer
// has beside them is gathered over, what the consumer has beside them is broadcast to.
#include <algorithm>
#include <set>

#include "io/numbers.h"
#include "io/spec_reader.h"

namespace sluice::io {

namespace {

constexpr size_t kNamedMax = 3;

// The shared values of an item, each with its length before it: no two items give one text.
std::string shared_values(const std::vector<std::string>& item,
                          const std::vector<size_t>& columns) {
  std::string out;
  for (const size_t column : columns) {
    out += std::to_string(item[column].size()) + ":" + item[column];
  }
  return out;
}

class Joiner {
 public:
  Joiner(SpecReading& reading, SpecTask& consumer, const SpecInput& input)
      : reading_(reading),
        consumer_(consumer),
        producer_(reading.tasks[input.producer]),
        input_(input) {}

  TaskInput run(std::vector<JoinGroup>& groups) {
    TaskInput result;
    result.name = input_.name;
    result.producer = scheduler::TaskId(input_.producer);
    result.output = static_cast<uint32_t>(input_.output);
    match_keys(result);
    if (consumer_.items_known && producer_.items_known) {
      make_groups(groups);
      check(groups);
    }
    return result;
  }

 private:
  void match_keys(TaskInput& result) {
    const auto& keys = consumer_.text.keys;
    for (size_t p = 0; p < producer_.text.keys.size(); ++p) {
      const auto found = std::find(keys.begin(), keys.end(), producer_.text.keys[p]);
      if (found == keys.end()) {
        result.over.push_back(producer_.text.keys[p]);
      } else {
        producer_columns_.push_back(p);
        consumer_columns_.push_back(static_cast<size_t>(found - keys.begin()));
      }
    }
    result.is_list = !result.over.empty();
    result.join = result.is_list                           ? JoinKind::kGather
                  : keys.size() > producer_columns_.size() ? JoinKind::kBroadcast
                                                           : JoinKind::kOneToOne;
  }

  // Groups in the order of the producer's items.
  void make_groups(std::vector<JoinGroup>& groups) {
    std::map<std::string, size_t> index;
    for (uint32_t i = 0; i < producer_.text.items.size(); ++i) {
      const std::string values = shared_values(producer_.text.items[i], producer_columns_);
      const auto [found, fresh] = index.emplace(values, groups.size());
      if (fresh) {
        groups.emplace_back();
      }
      groups[found->second].producers.push_back(i);
    }
    for (uint32_t i = 0; i < consumer_.text.items.size(); ++i) {
      const auto found = index.find(shared_values(consumer_.text.items[i], consumer_columns_));
      if (found == index.end()) {
        without_producer_.push_back(i);
      } else {
        groups[found->second].consumers.push_back(i);
      }
    }
  }

  void check(const std::vector<JoinGroup>& groups) {
    std::vector<uint32_t> unused;
    for (const JoinGroup& group : groups) {
      if (group.consumers.empty()) {
        unused.insert(unused.end(), group.producers.begin(), group.producers.end());
      }
    }
    if (without_producer_.empty() && unused.empty()) {
      return;
    }
    const std::string where = "input '" + input_.name + "' of task '" + consumer_.name + "'";
    const std::string hint =
        "items join by equal keys: give both tasks the same values of " + shared_keys();
    if (check_spelling(where)) {
      return;
    }
    if (without_producer_.size() == consumer_.text.items.size()) {
      fail(where + " matches nothing: '" + producer_.name + "' has " + named(producer_, unused) +
               ", '" + consumer_.name + "' has " + named(consumer_, without_producer_),
           hint);
      return;
    }
    if (!without_producer_.empty()) {
      fail(where + ": '" + producer_.name + "' has no instance for " +
               named(consumer_, without_producer_),
           hint);
    }
    if (!unused.empty()) {
      fail(where + ": no instance of '" + consumer_.name + "' reads " + named(producer_, unused) +
               " of '" + producer_.name + "'",
           hint);
    }
  }

  void fail(const std::string& text, const std::string& hint) {
    reading_.diagnostics.error(reading_.tree[input_.node].mark, text, hint);
  }

  [[nodiscard]] std::string shared_keys() const {
    std::string all;
    for (const size_t column : consumer_columns_) {
      all += (all.empty() ? "'" : ", '") + consumer_.text.keys[column] + "'";
    }
    return all;
  }

  static std::string named(const SpecTask& task, const std::vector<uint32_t>& items) {
    std::string all;
    for (size_t i = 0; i < std::min(items.size(), kNamedMax); ++i) {
      all += (i == 0 ? "[" : ", [") + item_text(task.text, items[i]) + "]";
    }
    if (items.size() > kNamedMax) {
      all += " and " + std::to_string(items.size() - kNamedMax) + " more";
    }
    return all;
  }

  // "0.1" here and "0.10" there are one number to people, and two items to us.
  bool check_spelling(const std::string& where) {
    bool any = false;
    for (size_t k = 0; k < consumer_columns_.size(); ++k) {
      std::map<double, std::string> numbers;
      std::set<std::string> texts;
      for (const auto& item : producer_.text.items) {
        const std::string& text = item[producer_columns_[k]];
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
        std::string message = where;
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
  std::vector<size_t> producer_columns_;  // of the shared keys, in parallel
  std::vector<size_t> consumer_columns_;
  std::vector<uint32_t> without_producer_;
};

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
      }
      task.text.inputs.push_back(std::move(result));
      task.templates.source_paths.push_back(input.path);
      task.templates.group_order.push_back(input.is_source ? UINT32_MAX : order++);
    }
  }
}

}  // namespace sluice::io
