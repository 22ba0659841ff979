#include "io/spec_schema.h"

#include <algorithm>
#include <array>

namespace sluice::io {

namespace {

constexpr bool kYes = true;
constexpr bool kLater = false;

constexpr std::array kRules = {
    KeyRule{Level::kTop, "sluice", kYes, Shape::kVersion, "1", "required",
            "version of the spec's language"},
    KeyRule{Level::kTop, "name", kYes, Shape::kText, "text", "the file's stem",
            "what people call this pipeline"},
    KeyRule{Level::kTop, "params", kYes, Shape::kParams, "map of params", "none",
            "values that `--set name=value` can change"},
    KeyRule{Level::kTop, "limits", kYes, Shape::kLimits, "map of numbers", "none",
            "run-wide counters such as licences; tasks take from them under `resources`"},
    KeyRule{Level::kTop, "tasks", kYes, Shape::kTasks, "map of tasks", "required", "the work"},
    KeyRule{Level::kTop, "defaults", kYes, Shape::kDefaults, "map of keys of a task", "none",
            "what holds for each task that does not say otherwise"},
    KeyRule{Level::kTop, "keep_env", kYes, Shape::kTexts, "list of names", "none",
            "variables of the batch system and of MPI that programs shall see"},

    KeyRule{Level::kParam, "type", kYes, Shape::kChoice, "int, float, string, bool, list or path",
            "required", "what the value must be; a path is relative to the pipeline folder"},
    KeyRule{Level::kParam, "default", kYes, Shape::kAnything, "of that type",
            "none: `--set` is needed", "the value without `--set`"},
    KeyRule{Level::kParam, "env", kYes, Shape::kText, "name of a variable", "none",
            "of a path: where its value comes from without `--set`, before `default`"},
    KeyRule{Level::kParam, "expect", kYes, Shape::kChoice, "file, directory or exists",
            "not looked at", "of a path: what must be there when the spec is read"},

    KeyRule{Level::kTask, "foreach", kYes, Shape::kForeach, "map of lists, or list of maps",
            "one instance",
            "one instance per item; a map is the product with the last key fastest, a list of "
            "maps are the cases"},
    KeyRule{Level::kTask, "run", kYes, Shape::kCommand, "text or list of texts",
            "`run` or `sh` is required", "a program and its arguments, no shell"},
    KeyRule{Level::kTask, "sh", kYes, Shape::kScript, "text", "`run` or `sh` is required",
            "a script for `bash -euo pipefail`, verbatim"},
    KeyRule{Level::kTask, "inputs", kYes, Shape::kInputs, "map of inputs", "none", "what is read"},
    KeyRule{Level::kTask, "outputs", kYes, Shape::kOutputs, "map of outputs", "none",
            "what is made"},
    KeyRule{Level::kTask, "resources", kYes, Shape::kResources, "map", "1 cpu",
            "what an attempt occupies"},
    KeyRule{Level::kTask, "timeout", kYes, Shape::kDuration, "duration", "none",
            "an attempt that takes longer is "
            "stopped"},
    KeyRule{Level::kTask, "grace", kYes, Shape::kDuration, "duration", "10s",
            "between the stop signal and SIGKILL"},
    KeyRule{Level::kTask, "retry", kYes, Shape::kRetry, "map of causes", "no retry",
            "how often a failed attempt is tried again"},
    KeyRule{Level::kTask, "env", kYes, Shape::kEnvironment, "map of texts", "none",
            "environment variables"},
    KeyRule{Level::kTask, "uses", kYes, Shape::kTexts, "list of paths", "none",
            "files of the pipeline folder whose content decides whether to run again"},
    KeyRule{Level::kTask, "priority", kYes, Shape::kInteger, "integer", "0", "higher first"},
    KeyRule{Level::kTask, "on_failure", kYes, Shape::kChoice, "stop, continue or ignore",
            "continue",
            "after a failure: stop the run in order, go on with what does not depend on it, or "
            "count it as no failure of the run"},
    KeyRule{Level::kTask, "kernel", kLater, Shape::kText, "text", "none",
            "a function of a plug-in"},
    KeyRule{Level::kTask, "call", kLater, Shape::kText, "text", "none", "a call of a service"},
    KeyRule{Level::kTask, "args", kLater, Shape::kEnvironment, "map", "none",
            "arguments of a kernel"},
    KeyRule{Level::kTask, "setup", kYes, Shape::kScript, "text", "none",
            "a bash script before `run` or `sh`, which start in the environment that it leaves"},
    KeyRule{Level::kTask, "after", kYes, Shape::kTexts, "list of tasks", "none",
            "order without data: tasks that come first, joined like an input"},
    KeyRule{Level::kTask, "stdin", kYes, Shape::kName, "input", "/dev/null",
            "the input that programs read as standard input"},
    KeyRule{Level::kTask, "stdout", kYes, Shape::kName, "output", "goes to the log",
            "the output that standard output becomes"},
    KeyRule{Level::kTask, "cwd", kYes, Shape::kChoice, "pipeline", "the attempt's directory",
            "programs start in the pipeline folder"},
    KeyRule{Level::kTask, "ranks", kLater, Shape::kCount, "integer", "none",
            "an MPI program as an attempt"},
    KeyRule{Level::kTask, "container", kLater, Shape::kText, "text", "none", "an image to run in"},
    KeyRule{Level::kTask, "repeat", kLater, Shape::kAnything, "map", "none", "iteration"},
    KeyRule{Level::kTask, "when", kLater, Shape::kText, "expression", "none", "a condition"},
    KeyRule{Level::kTask, "keep_env", kYes, Shape::kTexts, "list of names", "none",
            "as at the top level, for this task besides"},

    KeyRule{Level::kForeach, "product", kYes, Shape::kList, "list of maps and lists",
            "the keys beside it",
            "factors to multiply, the last one fastest: a map of lists, or a list of maps (cases)"},
    KeyRule{Level::kForeach, "except", kYes, Shape::kCases, "list of maps", "none",
            "items to leave out: each map gives some keys and must match an item"},
    KeyRule{Level::kForeach, "allow_empty", kYes, Shape::kChoice, "true or false", "false",
            "zero items are fine: lists that are made of them are empty"},
    KeyRule{Level::kForeachValue, "range", kYes, Shape::kRange, "[first, end, step]", "step 1",
            "numbers from first to end, the end not included"},
    KeyRule{Level::kForeachValue, "lines", kYes, Shape::kText, "path", "none",
            "the lines of a file, relative to the pipeline folder"},
    KeyRule{Level::kForeachValue, "glob", kYes, Shape::kText, "pattern", "none",
            "the files that match, relative to the pipeline folder"},
    KeyRule{Level::kForeachValue, "shards", kYes, Shape::kCount, "integer, 1 to 100000", "none",
            "so many parts of a dataset, numbered from 0: an input takes one by `shard`"},

    KeyRule{Level::kInput, "from", kYes, Shape::kReference, "task.output",
            "`from` or `file` is required",
            "an output of another task; `x: task.output` for short"},
    KeyRule{Level::kInput, "file", kYes, Shape::kText, "path", "`from` or `file` is required",
            "a file that exists, relative to the pipeline folder; may name params and items"},
    KeyRule{Level::kInput, "join", kYes, Shape::kJoin, "all or list of keys",
            "all keys that both tasks have",
            "the keys to join by; `all`: every instance of the producer, as a list"},
    KeyRule{Level::kInput, "where", kYes, Shape::kEnvironment, "map", "all items",
            "only the producer's items with these values; its keys neither join nor make a list"},
    KeyRule{Level::kInput, "missing", kYes, Shape::kChoice, "error or skip", "error",
            "`skip`: a list may be empty, and items of the producer may stay unread"},
    KeyRule{Level::kInput, "as", kYes, Shape::kFileName, "name", "`in/<input>/<file>`",
            "its name at the top of the attempt's directory; not for lists and values"},
    KeyRule{Level::kInput, "dataset", kYes, Shape::kText, "path", "all of the file",
            "of HDF5 files: a file with this dataset alone, such as `/u`"},
    KeyRule{Level::kInput, "rows", kYes, Shape::kRows, "[first, end]", "all",
            "of HDF5 files: these rows, the end not included; a row is an index of the first axis"},
    KeyRule{Level::kInput, "shard", kYes, Shape::kName, "foreach key", "all",
            "of HDF5 files: that part of the rows which the item's key says; the key's values are "
            "`{shards: N}`"},
    KeyRule{
        Level::kInput, "gather", kYes, Shape::kChoice, "concat or stack", "a list of files",
        "of HDF5 files: one file with all rows of a list's, or with a new first axis over them"},
    KeyRule{Level::kInput, "any_of", kLater, Shape::kList, "list", "none",
            "the first that is there"},

    KeyRule{Level::kOutput, "file", kYes, Shape::kFileName, "name",
            "`file`, `h5`, `dir` or `value` is required",
            "a file; beside `value` the name of the value's file (default: the output's name)"},
    KeyRule{Level::kOutput, "h5", kYes, Shape::kFileName, "name",
            "`file`, `h5`, `dir` or `value` is required",
            "an HDF5 file, opened and checked before it counts"},
    KeyRule{Level::kOutput, "dir", kYes, Shape::kFileName, "name",
            "`file`, `h5`, `dir` or `value` is required",
            "a directory with all that is in it, files, directories and links, as one object"},
    KeyRule{Level::kOutput, "value", kYes, Shape::kChoice, "int, float, bool, string or list",
            "`file`, `h5`, `dir` or `value` is required", "a small value, at most 64 KiB of text"},
    KeyRule{Level::kOutput, "keep", kYes, Shape::kChoice, "true", "only what no task reads",
            "a copy in `results/` also when other tasks read it"},
    KeyRule{Level::kOutput, "lines", kLater, Shape::kFileName, "name", "none",
            "items for a later task"},
    KeyRule{Level::kOutput, "check", kLater, Shape::kAnything, "map", "none",
            "datasets that must be there"},

    KeyRule{Level::kResources, "cpus", kYes, Shape::kCount, "integer", "1", "cores"},
    KeyRule{Level::kResources, "memory", kYes, Shape::kMemory, "memory", "not counted",
            "main memory: what runs at a time on a worker asks for no more than it has"},
    KeyRule{Level::kResources, "gpus", kLater, Shape::kAmount, "number", "0", "GPUs"},
    KeyRule{Level::kResources, "gpu_memory", kLater, Shape::kMemory, "memory", "0",
            "memory of a GPU"},
    KeyRule{Level::kResources, "any_of", kLater, Shape::kList, "list of maps", "none",
            "alternatives"},

    KeyRule{Level::kRetry, "exit", kYes, Shape::kCause, "map", "no retry",
            "the program ended with a status"},
    KeyRule{Level::kRetry, "signal", kYes, Shape::kCause, "map", "no retry",
            "the program was killed"},
    KeyRule{Level::kRetry, "timeout", kYes, Shape::kCause, "map", "no retry", "`timeout` was over"},
    KeyRule{Level::kRetry, "oom", kYes, Shape::kCause, "map", "no retry", "memory was exhausted"},
    KeyRule{Level::kRetry, "output", kYes, Shape::kCause, "map", "no retry",
            "an output was missing or damaged"},
    KeyRule{Level::kRetry, "setup", kYes, Shape::kCause, "map", "no retry",
            "preparing the attempt failed"},
    KeyRule{Level::kRetry, "start", kYes, Shape::kCause, "map", "no retry",
            "the program could not be started"},
    KeyRule{Level::kRetry, "staging", kYes, Shape::kCause, "map", "no retry",
            "an input could not be brought"},
    KeyRule{Level::kRetry, "disk", kYes, Shape::kCause, "map", "no retry", "no space was left"},

    KeyRule{Level::kRetryCause, "max", kYes, Shape::kRetries, "integer, 1 to 100", "required",
            "how many more attempts"},
    KeyRule{Level::kRetryCause, "codes", kYes, Shape::kStatuses, "list of 1 to 255", "all",
            "only for `exit`: the statuses that are worth another attempt"},
    KeyRule{Level::kRetryCause, "delay", kYes, Shape::kDuration, "duration", "none",
            "how long to wait before the next attempt, at most a day"},
    KeyRule{Level::kRetryCause, "memory", kYes, Shape::kFactor, "factor", "as before",
            "the next attempt asks for so many times the memory, at most what the largest worker "
            "has; `x1.5`"},
    KeyRule{Level::kRetryCause, "timeout", kYes, Shape::kFactor, "factor", "as before",
            "the next attempt may take so many times as long; `x2`"},
};

constexpr std::array<std::string_view, kLevelCount> kTitles = {
    "the top level", "a param",   "a task",    "foreach", "a foreach key",
    "an input",      "an output", "resources", "retry",   "a cause of retry"};

// What other tools call it.
struct OtherWord {
  Level level;
  std::string_view word;
  std::string_view ours;
};
constexpr std::array kOtherWords = {
    OtherWord{Level::kTop, "steps", "tasks"},
    OtherWord{Level::kTop, "jobs", "tasks"},
    OtherWord{Level::kTop, "rules", "tasks"},
    OtherWord{Level::kTop, "vars", "params"},
    OtherWord{Level::kTop, "variables", "params"},
    OtherWord{Level::kTop, "parameters", "params"},
    OtherWord{Level::kTop, "version", "sluice"},
    OtherWord{Level::kTask, "cmd", "run' or 'sh"},
    OtherWord{Level::kTask, "command", "run' or 'sh"},
    OtherWord{Level::kTask, "script", "sh"},
    OtherWord{Level::kTask, "shell", "sh"},
    OtherWord{Level::kTask, "bash", "sh"},
    OtherWord{Level::kTask, "in", "inputs"},
    OtherWord{Level::kTask, "out", "outputs"},
    OtherWord{Level::kTask, "depends_on", "inputs' or 'after"},
    OtherWord{Level::kTask, "depends", "inputs' or 'after"},
    OtherWord{Level::kTask, "needs", "inputs' or 'after"},
    OtherWord{Level::kTask, "requires", "inputs' or 'after"},
    OtherWord{Level::kTask, "matrix", "foreach"},
    OtherWord{Level::kTask, "items", "foreach"},
    OtherWord{Level::kTask, "with_items", "foreach"},
    OtherWord{Level::kTask, "cores", "cpus' in 'resources"},
    OtherWord{Level::kTask, "threads", "cpus' in 'resources"},
    OtherWord{Level::kTask, "mem", "memory' in 'resources"},
    OtherWord{Level::kTask, "time", "timeout"},
    OtherWord{Level::kTask, "walltime", "timeout"},
    OtherWord{Level::kTask, "retries", "retry"},
    OtherWord{Level::kTask, "retires", "retry"},
    OtherWord{Level::kTask, "environment", "env"},
    OtherWord{Level::kTask, "on_error", "on_failure"},
    OtherWord{Level::kInput, "task", "from"},
    OtherWord{Level::kInput, "path", "file"},
    OtherWord{Level::kOutput, "path", "file"},
    OtherWord{Level::kOutput, "hdf5", "h5"},
    OtherWord{Level::kResources, "cores", "cpus"},
    OtherWord{Level::kResources, "ncpus", "cpus"},
    OtherWord{Level::kResources, "threads", "cpus"},
    OtherWord{Level::kResources, "mem", "memory"},
    OtherWord{Level::kRetryCause, "times", "max"},
    OtherWord{Level::kRetryCause, "count", "max"},
    OtherWord{Level::kRetryCause, "attempts", "max"},
    OtherWord{Level::kRetryCause, "mem", "memory"},
    OtherWord{Level::kRetryCause, "wait", "delay"},
    OtherWord{Level::kRetryCause, "backoff", "delay"},
};

std::string other_tools_hint(Level level, std::string_view key) {
  for (const OtherWord& other : kOtherWords) {
    if (other.level == level && other.word == key) {
      return "did you mean '" + std::string(other.ours) + "'?";
    }
  }
  return "";
}

// "'memory' is a key of resources", when other levels have the key.
std::string belongs_elsewhere_hint(Level level, std::string_view key) {
  std::string hint;
  for (const KeyRule& rule : kRules) {
    if (rule.level != level && rule.key == key && rule.supported) {
      hint += hint.empty() ? "'" + std::string(key) + "' is a key of " : " and of ";
      hint += level_title(rule.level);
    }
  }
  return hint;
}

std::vector<std::string> keys_of(Level level, bool supported) {
  std::vector<std::string> keys;
  for (const KeyRule& rule : kRules) {
    if (rule.level == level && rule.supported == supported) {
      keys.emplace_back(rule.key);
    }
  }
  return keys;
}

// What to write instead of an unknown key.
std::string key_hint(Level level, std::string_view key, std::span<const std::string> more) {
  std::vector<std::string> known(more.begin(), more.end());
  const std::vector<std::string> ours = keys_of(level, true);
  known.insert(known.end(), ours.begin(), ours.end());
  if (std::find(known.begin(), known.end(), std::string(key) + "s") != known.end()) {
    return "did you mean '" + std::string(key) + "s'?";
  }
  for (std::string hint : {other_tools_hint(level, key), belongs_elsewhere_hint(level, key)}) {
    if (!hint.empty()) {
      return hint;
    }
  }
  const std::string near_later = did_you_mean(key, keys_of(level, false));
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
    diagnostics.error(node.key_mark, "unknown key '" + node.key + "' in " + where,
                      key_hint(level, node.key, more));
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
