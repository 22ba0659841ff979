// The table of verbs: a row for each, with its options declared for CLI11 (engine/cli*.cpp only)
// and the function that does it. A new verb or option is added here and nowhere else. One thread.
// Test: tests/engine/cli_test.cpp
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "engine/cli.h"
#include "engine/cli_words.h"

namespace sluice::engine {

struct VerbRow {
  Verb verb;
  const char* name;
  const char* group;
  const char* about;
  std::vector<CliExample> examples;
  void (*declare)(CLI::App& app, Options& options);
  int (*act)(const Options& options);  // null: main does it
};

// Those of a group are neighbours.
[[nodiscard]] const std::vector<VerbRow>& verb_rows();

}  // namespace sluice::engine
