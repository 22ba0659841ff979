// retry: of a task: per cause, how many more attempts, and how the next one differs.
#include <algorithm>
#include <charconv>

#include "io/spec_reader.h"
#include "io/spec_schema.h"
#include "io/spec_values.h"

namespace sluice::io {

namespace {

using scheduler::Cause;
using scheduler::kFactorUnit;

constexpr int64_t kRetryMax = 100;
constexpr scheduler::Duration kDelayMax = scheduler::seconds(24 * 3600);
constexpr uint32_t kFactorMax = 100 * kFactorUnit;

// "x1.5" in thousandths; nothing if it is not a factor above 1 and up to 100.
std::optional<uint32_t> parse_factor(const std::string& text) {
  const size_t dot = text.find('.');
  const std::string whole = text.substr(0, dot);
  std::string decimals = dot == std::string::npos ? "" : text.substr(dot + 1);
  constexpr size_t kDecimalsMax = 3;
  if (whole.size() < 2 || whole.size() > 4 || whole[0] != 'x' || decimals.size() > kDecimalsMax ||
      (dot != std::string::npos && decimals.empty())) {
    return std::nullopt;
  }
  decimals.resize(kDecimalsMax, '0');
  const std::string digits = whole.substr(1) + decimals;
  uint32_t factor = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), factor);
  const bool number = error == std::errc() && end == digits.data() + digits.size();
  return number && factor > kFactorUnit && factor <= kFactorMax ? std::optional(factor)
                                                                : std::nullopt;
}

// One cause of one task.
class CauseReader {
 public:
  CauseReader(SpecReading& reading, SpecTask& task, NodeIndex node, Cause cause)
      : reading_(reading),
        tree_(reading.tree),
        node_(node),
        cause_(cause),
        name_(scheduler::cause_name(cause)),
        where_("retry of cause '" + name_ + "' of task '" + task.name + "'"),
        retry_(task.spec.retry) {}

  void run() {
    if (!expect_map(reading_, node_, where_, name_ + ": {max: 2}")) {
      return;
    }
    check_keys(tree_, node_, Level::kRetryCause, where_, reading_.diagnostics);
    scheduler::RetryChange& change = retry_.change[static_cast<size_t>(cause_)];
    read_max();
    read_codes(tree_.find(node_, "codes"));
    read_delay(tree_.find(node_, "delay"), change.delay);
    read_factor("memory", change.memory_factor);
    read_factor("timeout", change.timeout_factor);
  }

 private:
  void read_max() {
    const NodeIndex max = tree_.find(node_, "max");
    if (max == kNoNode) {
      reading_.diagnostics.error(tree_[node_].mark, where_ + " has no 'max'",
                                 "write " + name_ + ": {max: 2}");
    } else if (const auto number = read_int(reading_, max, "'max' in " + where_, 1, kRetryMax)) {
      retry_.max[static_cast<size_t>(cause_)] = static_cast<uint8_t>(*number);
    }
  }

  void read_codes(NodeIndex node) {
    if (node == kNoNode) {
      return;
    }
    if (cause_ != Cause::kExit) {
      reading_.diagnostics.error(
          tree_[node].key_mark, "'codes' in " + where_ + ": only 'exit' has statuses", "remove it");
      return;
    }
    if (tree_[node].kind != YamlNode::Kind::kList || tree_[node].count == 0) {
      reading_.diagnostics.error(tree_[node].mark,
                                 "'codes' in " + where_ + " must be a list of exit statuses",
                                 "write codes: [75]");
      return;
    }
    for (const NodeIndex child : tree_.children(node)) {
      if (const auto code = read_int(reading_, child, "a status in " + where_, 1, 255)) {
        retry_.exit_codes.push_back(static_cast<int32_t>(*code));
      }
    }
  }

  void read_delay(NodeIndex node, scheduler::Duration& delay) {
    if (node == kNoNode) {
      return;
    }
    const std::string what = "'delay' in " + where_;
    const auto text = read_text(reading_, node, what);
    if (!text) {
      return;
    }
    const auto parsed = parse_duration(*text);
    if (const auto* error = std::get_if<ValueError>(&parsed)) {
      report_value(reading_, node, what + ": " + error->text, error->hint);
      return;
    }
    delay = std::get<scheduler::Duration>(parsed);
    if (delay > kDelayMax) {
      report_value(reading_, node, what + " is " + *text + ", more than a day", "write delay: 30s");
    }
  }

  void read_factor(const std::string& key, uint32_t& factor) {
    const NodeIndex node = tree_.find(node_, key);
    if (node == kNoNode) {
      return;
    }
    const std::string what = "'" + key + "' in " + where_;
    const auto text = read_text(reading_, node, what);
    if (!text) {
      return;
    }
    const auto parsed = parse_factor(*text);
    if (parsed) {
      factor = *parsed;
    } else {
      report_value(
          reading_, node,
          what + " is '" + *text + "': a factor such as x1.5 is needed, at most x100",
          std::string("write ") + key + ": " + (parse_factor("x" + *text) ? "x" + *text : "x1.5"));
    }
  }

  SpecReading& reading_;
  const YamlTree& tree_;
  NodeIndex node_;
  Cause cause_;
  std::string name_;
  std::string where_;
  scheduler::RetryPolicy& retry_;
};

}  // namespace

void read_retry(SpecReading& reading, SpecTask& task) {
  const YamlTree& tree = reading.tree;
  const NodeIndex node = tree.find(task.node, "retry");
  if (node == kNoNode || !expect_map(reading, node, "'retry' of task '" + task.name + "'",
                                     "retry: {exit: {max: 2}, timeout: {max: 1}}")) {
    return;
  }
  if (const NodeIndex lost = tree.find(node, "lost"); lost != kNoNode) {
    reading.diagnostics.error(tree[lost].key_mark,
                              "'lost' in retry of task '" + task.name +
                                  "': attempts whose worker was lost are tried again anyway",
                              "remove it");
  }
  const std::vector<std::string> reported = {"lost"};
  check_keys(tree, node, Level::kRetry, "retry of task '" + task.name + "'", reading.diagnostics,
             reported);
  for (size_t i = 0; i < scheduler::kCauseCount; ++i) {
    const auto cause = static_cast<Cause>(i);
    const NodeIndex child = tree.find(node, scheduler::cause_name(cause));
    if (child != kNoNode && cause != Cause::kLost) {
      CauseReader(reading, task, child, cause).run();
    }
  }
}

}  // namespace sluice::io
