// defaults: merged into the tasks before they are read, so that every rule for a key of a task
// holds for it too. What is wrong there is reported once, at its place, though each task reads it.
#include <algorithm>
#include <array>

#include "io/spec_reader.h"
#include "io/spec_schema.h"

namespace sluice::io {

namespace {

// What a task is; the other keys say how its attempts run.
constexpr std::array<std::string_view, 15> kOwnKeys = {
    "foreach", "run",    "sh",    "kernel", "call", "args",  "inputs",   "outputs",
    "stdin",   "stdout", "after", "repeat", "when", "ranks", "container"};
constexpr std::array<std::string_view, 3> kDeepKeys = {"resources", "env", "retry"};

template <size_t n>
bool is_one_of(const std::array<std::string_view, n>& all, std::string_view key) {
  return std::find(all.begin(), all.end(), key) != all.end();
}

void report_once_within(const YamlTree& tree, NodeIndex defaults, Diagnostics& diagnostics) {
  const Mark begin = tree[defaults].key_mark;
  const NodeIndex next = tree[defaults].next;
  const Mark end = next == kNoNode ? Mark{UINT32_MAX, 0} : tree[next].key_mark;
  diagnostics.report_once(begin, end);
}

// The entries that tasks can have from there; the others are reported.
std::vector<NodeIndex> check_entries(const YamlTree& tree, NodeIndex defaults,
                                     Diagnostics& diagnostics) {
  std::vector<std::string> reported;
  std::vector<NodeIndex> good;
  for (const NodeIndex child : tree.children(defaults)) {
    const YamlNode& node = tree[child];
    if (is_one_of(kOwnKeys, node.key)) {
      diagnostics.error(node.key_mark, "'" + node.key + "' in 'defaults': each task has its own",
                        "write it in the tasks");
      reported.push_back(node.key);
    } else if (const KeyRule* rule = find_rule(Level::kTask, node.key);
               rule != nullptr && rule->supported) {
      good.push_back(child);
    }
  }
  check_keys(tree, defaults, Level::kTask, "'defaults'", diagnostics, reported);
  return good;
}

}  // namespace

void apply_defaults(YamlTree& tree, Diagnostics& diagnostics) {
  if (tree[tree.root()].kind != YamlNode::Kind::kMap) {
    return;
  }
  const NodeIndex defaults = tree.find(tree.root(), "defaults");
  const NodeIndex tasks = tree.find(tree.root(), "tasks");
  if (defaults == kNoNode) {
    return;
  }
  report_once_within(tree, defaults, diagnostics);
  if (tree[defaults].kind != YamlNode::Kind::kMap) {
    diagnostics.error(tree[defaults].mark, "'defaults' must be a map of keys of a task",
                      "write for example defaults: {timeout: 1h, retry: {exit: {max: 1}}}");
    return;
  }
  const std::vector<NodeIndex> entries = check_entries(tree, defaults, diagnostics);
  if (tasks == kNoNode) {
    return;
  }
  for (const NodeIndex task : tree.children(tasks)) {
    for (const NodeIndex entry : entries) {
      if (tree[task].kind == YamlNode::Kind::kMap) {
        tree.inherit(task, entry, is_one_of(kDeepKeys, tree[entry].key));
      }
    }
  }
}

}  // namespace sluice::io
