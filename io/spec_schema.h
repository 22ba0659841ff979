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

struct KeyRule {
  Level level;
  std::string_view key;
  bool supported;
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
