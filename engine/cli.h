// The command line: verbs and options, and what each verb does. `run` goes through the process tree
// (main.cpp); the other verbs only read. Exit codes as in design §6. Test:
// tests/engine/cli_test.cpp, tests/e2e/
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "engine/run_directory.h"

namespace sluice::engine {

enum class Verb { kNone, kRun, kCheck, kPlan, kStatus, kLogs, kWhy, kStop, kReplay };

struct Options {
  Verb verb = Verb::kNone;
  std::filesystem::path spec;  // run, check, plan, why: the pipeline
  std::filesystem::path
      run_dir;  // --run-dir, or the RUN_DIR argument of status, logs, stop, replay
  std::vector<std::pair<std::string, std::string>> set;
  std::string target;  // logs, why: TASK or TASK[item]
  bool json = false;
  bool verbose = false;    // plan -v
  bool exit_code = false;  // status --exit-code
  bool errors = false;     // logs --stderr: only that stream
  bool failed = false;     // logs --failed
  int reserve_cores = -1;  // run: cores kept free on rank 0's node; -1: the rule of design §3
  int lost_after_s = 30;   // run: a worker that is silent for so long is lost
  std::string command;     // as typed, for "continue with"

  [[nodiscard]] RunDirectory directory() const;
};

// Fills `options`; returns -1 to go on, or the exit code (0 after --help, 2 after a usage error
// that was printed).
int parse_command_line(int argc, char** argv, Options& options);

// Everything but run.
int run_verb(const Options& options);

}  // namespace sluice::engine
