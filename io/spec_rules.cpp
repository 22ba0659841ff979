// What an attempt occupies and how it is treated: resources, timeout, grace, retry, priority,
// on_failure. What follows a failed attempt is in spec_retry.cpp.
#include <algorithm>

#include "io/spec_reader.h"
#include "io/spec_schema.h"
#include "io/spec_values.h"

namespace sluice::io {

namespace {

constexpr int64_t kCpusMax = 100'000;

class RulesReader {
 public:
  RulesReader(SpecReading& reading, SpecTask& task)
      : reading_(reading), tree_(reading.tree), task_(task) {}

  void run() {
    read_resources(find("resources"));
    read_duration("timeout", task_.spec.timeout);
    read_duration("grace", task_.spec.grace);
    read_priority();
    read_on_failure();
    read_retry(reading_, task_);
  }

 private:
  NodeIndex find(std::string_view key) const { return tree_.find(task_.node, key); }
  std::string of_task(std::string_view what) const {
    return "'" + std::string(what) + "' of task '" + task_.name + "'";
  }

  void read_duration(const char* key, scheduler::Duration& duration) {
    const NodeIndex node = find(key);
    if (node == kNoNode) {
      return;
    }
    if (const auto text = read_text(reading_, node, of_task(key))) {
      const auto parsed = parse_duration(*text);
      if (const auto* error = std::get_if<ValueError>(&parsed)) {
        report_value(reading_, node, of_task(key) + ": " + error->text, error->hint);
      } else {
        duration = std::get<scheduler::Duration>(parsed);
      }
    }
  }

  void read_priority() {
    const NodeIndex node = find("priority");
    if (node == kNoNode) {
      return;
    }
    constexpr int64_t kMost = 1'000'000;
    if (const auto number = read_int(reading_, node, of_task("priority"), -kMost, kMost)) {
      task_.spec.priority = static_cast<int32_t>(*number);
    }
  }

  void read_on_failure() {
    const NodeIndex node = find("on_failure");
    if (node == kNoNode) {
      return;
    }
    static const std::vector<std::string> kWays = {"stop", "continue", "ignore"};
    const auto text = read_text(reading_, node, of_task("on_failure"));
    if (!text) {
      return;
    }
    const auto found = std::find(kWays.begin(), kWays.end(), *text);
    if (found == kWays.end()) {
      report_value(
          reading_, node,
          of_task("on_failure") + " is '" + *text + "', stop, continue or ignore is needed",
          suggestion(*text, kWays, "the ways are"));
      return;
    }
    task_.spec.on_failure = static_cast<scheduler::OnFailure>(found - kWays.begin());
  }

  void read_resources(NodeIndex node) {
    if (node == kNoNode ||
        !expect_map(reading_, node, of_task("resources"), "resources: {cpus: 4, memory: 8GiB}")) {
      return;
    }
    const std::vector<std::string> limits = names_of(reading_.limits);
    check_keys(tree_, node, Level::kResources, "resources of task '" + task_.name + "'",
               reading_.diagnostics, limits);
    for (const NodeIndex child : tree_.children(node)) {
      const std::string& key = tree_[child].key;
      if (key == "cpus") {
        const auto cpus = read_int(reading_, child, of_task("cpus"), 1, kCpusMax);
        task_.request.resources.cpus = static_cast<int32_t>(cpus.value_or(1));
      } else if (key == "memory") {
        read_memory(child);
      } else {
        read_limit_use(child);
      }
    }
    std::sort(task_.request.limits.begin(), task_.request.limits.end());
  }

  void read_memory(NodeIndex node) {
    const auto text = read_text(reading_, node, of_task("memory"));
    if (!text) {
      return;
    }
    const auto parsed = parse_memory(*text);
    if (const auto* error = std::get_if<ValueError>(&parsed)) {
      report_value(reading_, node, of_task("memory") + ": " + error->text, error->hint);
    } else {
      task_.request.resources.memory_bytes = std::get<int64_t>(parsed);
    }
  }

  void read_limit_use(NodeIndex node) {
    const std::string& key = tree_[node].key;
    const auto limit = std::find_if(reading_.limits.begin(), reading_.limits.end(),
                                    [&](const scheduler::Limit& one) { return one.name == key; });
    if (limit == reading_.limits.end()) {
      return;  // reported as an unknown key
    }
    const auto text = read_text(reading_, node, of_task(key));
    if (!text) {
      return;
    }
    const auto parsed = parse_amount(*text);
    if (const auto* error = std::get_if<ValueError>(&parsed)) {
      report_value(reading_, node, of_task(key) + ": " + error->text, error->hint);
      return;
    }
    const auto amount = std::get<scheduler::Amount>(parsed);
    if (amount > limit->total) {
      report_value(reading_, node,
                   of_task(key) + " asks for " + *text + " of " + print_amount(limit->total) +
                       " in all: it could never start",
                   "ask for less, or raise the number under 'limits'");
      return;
    }
    task_.request.limits.push_back(
        {scheduler::LimitId(static_cast<size_t>(limit - reading_.limits.begin())), amount});
  }

  SpecReading& reading_;
  const YamlTree& tree_;
  SpecTask& task_;
};

}  // namespace

void read_attempt_rules(SpecReading& reading, SpecTask& task) { RulesReader(reading, task).run(); }

}  // namespace sluice::io
