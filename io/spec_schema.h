// The keys a spec may have: one table, from which come the checks, "did you mean", "belongs in",
// "not supported yet" and the reference in configs/README.md. Values; any thread. Test:
// tests/io/spec_schema_test.cpp
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/diagnostic.h"
#include "io/spec_yaml.h"

namespace sluice::io {

enum class Level : uint8_t {
  kTop,
  kParam,
  kTask,
  kForeach,
  kForeachValue,
  kInput,
  kOutput,
  kResources,
  kRetry,
  kRetryCause,
};
constexpr size_t kLevelCount = 10;
[[nodiscard]] std::string_view level_title(Level level);  // "a task", "resources"

// What a value looks like, for the JSON schema (io/spec_json_schema.cpp). It is no stricter than
// the readers; what only they can see (names that must exist, items that must join) is not part of
// it.
enum class Shape : uint8_t {
  kAnything,
  kText,         // a scalar, `${{ }}` allowed
  kScript,       // a scalar without `${{ }}`
  kName,         // of a task, input, output
  kFileName,     // a plain file name
  kChoice,       // one of the words of `type`: "stop, continue or ignore"
  kVersion,      // 1
  kInteger,      // -1000000 to 1000000
  kCount,        // 1 to 100000
  kRetries,      // 1 to 100
  kStatuses,     // list of 1 to 255
  kAmount,       // above 0, four decimals
  kFactor,       // x1.5
  kDuration,     // 1h30m
  kMemory,       // 8GiB
  kRange,        // [first, end, step]
  kRows,         // [first, end]
  kList,         // of anything
  kTexts,        // list of scalars
  kCommand,      // text or list of texts
  kEnvironment,  // map of scalars
  kCases,        // list of maps of scalars
  kReference,    // task.output
  kJoin,         // all, or list of names
  // Maps whose keys are levels of their own.
  kParams,
  kLimits,
  kTasks,
  kDefaults,
  kForeach,
  kInputs,
  kOutputs,
  kResources,
  kRetry,
  kCause,
};

struct KeyRule {
  Level level;
  std::string_view key;
  bool supported;
  Shape shape;
  std::string_view type;
  std::string_view fallback;  // what holds without the key
  std::string_view meaning;
};
[[nodiscard]] std::span<const KeyRule> key_rules();
[[nodiscard]] const KeyRule* find_rule(Level level, std::string_view key);

// Reports each key of `map` that this level does not have or not yet. `where`: "task 'mesh'".
// `more`: names that are allowed here beside the table (limits in resources). Keys that begin with
// "x-" are the user's notes.
void check_keys(const YamlTree& tree, NodeIndex map, Level level, const std::string& where,
                Diagnostics& diagnostics, std::span<const std::string> more = {});

// The line of the reference for a key: "| `cpus` | integer | 1 | ... |".
[[nodiscard]] std::string reference_row(const KeyRule& rule);

}  // namespace sluice::io
