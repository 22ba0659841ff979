#include "io/spec_schema.h"

#include <algorithm>
#include <array>

namespace sluice::io {

namespace {

constexpr bool kYes = true;
constexpr bool kLater = false;

constexpr std::array kRules = {
    KeyRule{Level::kTop, "sluice", kYes, "1", "required", "version of the spec's language"},
    KeyRule{Level::kTop, "name", kYes, "text", "the file's stem", "what people call this pipeline"},
    KeyRule{Level::kTop, "params", kYes, "map of params", "none",
            "values that `--set name=value` can change"},
    KeyRule{Level::kTop, "limits", kYes, "map of numbers", "none",
            "run-wide counters such as licences; tasks take from them under `resources`"},
    KeyRule{Level::kTop, "tasks", kYes, "map of tasks", "required", "the work"},
    KeyRule{Level::kTop, "defaults", kLater, "map", "none", "keys for every task"},
    KeyRule{Level::kTop, "keep_env", kLater, "list of names", "none",
            "variables of the batch system that programs shall see"},

    KeyRule{Level::kParam, "type", kYes, "int, float, string, bool, list or path", "required",
            "what the value must be; a path is relative to the pipeline folder"},
    KeyRule{Level::kParam, "default", kYes, "of that type", "none: `--set` is needed",
            "the value without `--set`"},

    KeyRule{Level::kTask, "foreach", kYes, "map of lists, or list of maps", "one instance",
            "one instance per item; a map is the product with the last key fastest, a list of "
            "maps are the cases"},
    KeyRule{Level::kTask, "run", kYes, "text or list of texts", "`run` or `sh` is required",
            "a program and its arguments, no shell"},
    KeyRule{Level::kTask, "sh", kYes, "text", "`run` or `sh` is required",
            "a script for `bash -euo pipefail`, verbatim"},
    KeyRule{Level::kTask, "inputs", kYes, "map of inputs", "none", "what is read"},
    KeyRule{Level::kTask, "outputs", kYes, "map of outputs", "none", "what is made"},
    KeyRule{Level::kTask, "resources", kYes, "map", "1 cpu", "what an attempt occupies"},
    KeyRule{Level::kTask, "timeout", kYes, "duration", "none",
            "an attempt that takes longer is "
            "stopped"},
    KeyRule{Level::kTask, "grace", kYes, "duration", "10s", "between the stop signal and SIGKILL"},
    KeyRule{Level::kTask, "retry", kYes, "map of causes", "no retry",
            "how often a failed attempt is tried again"},
    KeyRule{Level::kTask, "env", kYes, "map of texts", "none", "environment variables"},
    KeyRule{Level::kTask, "uses", kYes, "list of paths", "none",
            "files of the pipeline folder whose content decides whether to run again"},
    KeyRule{Level::kTask, "priority", kYes, "integer", "0", "higher first"},
    KeyRule{Level::kTask, "on_failure", kYes, "stop, continue or ignore", "continue",
            "after a failure: start nothing new, go on with what does not depend on it, or count "
            "it as no failure of the run"},
    KeyRule{Level::kTask, "kernel", kLater, "text", "none", "a function of a plug-in"},
    KeyRule{Level::kTask, "call", kLater, "text", "none", "a call of a service"},
    KeyRule{Level::kTask, "args", kLater, "map", "none", "arguments of a kernel"},
    KeyRule{Level::kTask, "setup", kLater, "text", "none", "bash before the body"},
    KeyRule{Level::kTask, "after", kLater, "list of tasks", "none", "order without data"},
    KeyRule{Level::kTask, "stdin", kLater, "input", "none", "an input as standard input"},
    KeyRule{Level::kTask, "stdout", kLater, "output", "none", "standard output as an output"},
    KeyRule{Level::kTask, "cwd", kLater, "pipeline", "attempt directory", "where programs start"},
    KeyRule{Level::kTask, "ranks", kLater, "integer", "none", "an MPI program as an attempt"},
    KeyRule{Level::kTask, "container", kLater, "text", "none", "an image to run in"},
    KeyRule{Level::kTask, "repeat", kLater, "map", "none", "iteration"},
    KeyRule{Level::kTask, "when", kLater, "expression", "none", "a condition"},
    KeyRule{Level::kTask, "keep_env", kLater, "list of names", "none",
            "variables of the batch system that programs shall see"},

    KeyRule{Level::kForeach, "product", kLater, "list", "none", "factors to multiply"},
    KeyRule{Level::kForeach, "except", kLater, "list of maps", "none", "items to leave out"},
    KeyRule{Level::kForeach, "allow_empty", kLater, "true", "false", "zero items are fine"},
    KeyRule{Level::kForeachValue, "range", kYes, "[first, end, step]", "step 1",
            "numbers from first to end, the end not included"},
    KeyRule{Level::kForeachValue, "lines", kLater, "path", "none", "the lines of a file"},
    KeyRule{Level::kForeachValue, "glob", kLater, "pattern", "none", "the files that match"},

    KeyRule{Level::kInput, "from", kYes, "task.output", "`from` or `file` is required",
            "an output of another task; `x: task.output` for short"},
    KeyRule{Level::kInput, "file", kYes, "path", "`from` or `file` is required",
            "a file that exists, relative to the pipeline folder; may name params and items"},
    KeyRule{Level::kInput, "join", kLater, "all or list of keys", "by equal keys",
            "which instances"},
    KeyRule{Level::kInput, "where", kLater, "map", "none", "only these items"},
    KeyRule{Level::kInput, "missing", kLater, "error or skip", "error", "partial matches"},
    KeyRule{Level::kInput, "as", kLater, "name", "none", "its name in the attempt directory"},
    KeyRule{Level::kInput, "any_of", kLater, "list", "none", "the first that is there"},

    KeyRule{Level::kOutput, "file", kYes, "name", "`file`, `h5` or `value` is required",
            "a file; beside `value` the name of the value's file (default: the output's name)"},
    KeyRule{Level::kOutput, "h5", kYes, "name", "`file`, `h5` or `value` is required",
            "an HDF5 file, opened and checked before it counts"},
    KeyRule{Level::kOutput, "value", kYes, "int, float, bool, string or list",
            "`file`, `h5` or `value` is required", "a small value, at most 64 KiB of text"},
    KeyRule{Level::kOutput, "keep", kYes, "true", "only what no task reads",
            "a copy in `results/` also when other tasks read it"},
    KeyRule{Level::kOutput, "dir", kLater, "name", "none", "a directory"},
    KeyRule{Level::kOutput, "lines", kLater, "name", "none", "items for a later task"},
    KeyRule{Level::kOutput, "check", kLater, "map", "none", "datasets that must be there"},

    KeyRule{Level::kResources, "cpus", kYes, "integer", "1", "cores"},
    KeyRule{Level::kResources, "memory", kYes, "memory", "not counted", "main memory"},
    KeyRule{Level::kResources, "gpus", kLater, "number", "0", "GPUs"},
    KeyRule{Level::kResources, "gpu_memory", kLater, "memory", "0", "memory of a GPU"},
    KeyRule{Level::kResources, "any_of", kLater, "list of maps", "none", "alternatives"},

    KeyRule{Level::kRetry, "exit", kYes, "map", "no retry", "the program ended with a status"},
    KeyRule{Level::kRetry, "signal", kYes, "map", "no retry", "the program was killed"},
    KeyRule{Level::kRetry, "timeout", kYes, "map", "no retry", "`timeout` was over"},
    KeyRule{Level::kRetry, "oom", kYes, "map", "no retry", "memory was exhausted"},
    KeyRule{Level::kRetry, "output", kYes, "map", "no retry", "an output was missing or damaged"},
    KeyRule{Level::kRetry, "setup", kYes, "map", "no retry", "preparing the attempt failed"},
    KeyRule{Level::kRetry, "start", kYes, "map", "no retry", "the program could not be started"},
    KeyRule{Level::kRetry, "staging", kYes, "map", "no retry", "an input could not be brought"},
    KeyRule{Level::kRetry, "disk", kYes, "map", "no retry", "no space was left"},

    KeyRule{Level::kRetryCause, "max", kYes, "integer, 1 to 100", "required",
            "how many more attempts"},
    KeyRule{Level::kRetryCause, "codes", kYes, "list of 1 to 255", "all",
            "only for `exit`: the statuses that are worth another attempt"},
    KeyRule{Level::kRetryCause, "delay", kLater, "duration", "none", "wait before"},
    KeyRule{Level::kRetryCause, "memory", kLater, "factor", "none", "more memory next time"},
    KeyRule{Level::kRetryCause, "timeout", kLater, "factor", "none", "more time next time"},
};

constexpr std::array<std::string_view, kLevelCount> kTitles = {
    "the top level", "a param",   "a task",    "foreach", "a foreach key",
    "an input",      "an output", "resources", "retry",   "a cause of retry"};

// "'cpus' belongs in resources", when another level has the key.
std::string belongs_elsewhere(Level level, std::string_view key) {
  for (const KeyRule& rule : kRules) {
    if (rule.level != level && rule.key == key && rule.supported) {
      return "'" + std::string(key) + "' is a key of " + std::string(level_title(rule.level));
    }
  }
  return "";
}

std::string known_keys_hint(Level level, std::string_view key, std::span<const std::string> more) {
  std::vector<std::string> known(more.begin(), more.end());
  std::vector<std::string> later;
  for (const KeyRule& rule : kRules) {
    if (rule.level == level) {
      (rule.supported ? known : later).emplace_back(rule.key);
    }
  }
  const std::string near_later = did_you_mean(key, later);
  if (did_you_mean(key, known).empty() && !near_later.empty()) {
    return "did you mean '" + near_later + "'? It is not supported yet";
  }
  return suggestion(key, known, "the keys of " + std::string(level_title(level)) + " are");
}

}  // namespace

std::string_view level_title(Level level) { return kTitles[static_cast<size_t>(level)]; }

std::span<const KeyRule> key_rules() { return kRules; }

const KeyRule* find_rule(Level level, std::string_view key) {
  const auto* found = std::find_if(kRules.begin(), kRules.end(), [&](const KeyRule& rule) {
    return rule.level == level && rule.key == key;
  });
  return found == kRules.end() ? nullptr : found;
}

void check_keys(const YamlTree& tree, NodeIndex map, Level level, const std::string& where,
                Diagnostics& diagnostics, std::span<const std::string> more) {
  for (const NodeIndex child : tree.children(map)) {
    const YamlNode& node = tree[child];
    const KeyRule* rule = find_rule(level, node.key);
    const bool note = node.key.rfind("x-", 0) == 0 || node.key == kMergeKey;
    if (note || (rule != nullptr && rule->supported) ||
        std::find(more.begin(), more.end(), node.key) != more.end()) {
      continue;
    }
    if (rule != nullptr) {
      diagnostics.error(node.key_mark, "'" + node.key + "' in " + where + " is not supported yet");
      continue;
    }
    std::string hint = belongs_elsewhere(level, node.key);
    if (hint.empty()) {
      hint = known_keys_hint(level, node.key, more);
    }
    diagnostics.error(node.key_mark, "unknown key '" + node.key + "' in " + where, hint);
  }
}

std::string reference_row(const KeyRule& rule) {
  const std::string key(rule.key);
  if (!rule.supported) {
    return "| `" + key + "` | not supported yet | | " + std::string(rule.meaning) + " |";
  }
  return "| `" + key + "` | " + std::string(rule.type) + " | " + std::string(rule.fallback) +
         " | " + std::string(rule.meaning) + " |";
}

}  // namespace sluice::io
