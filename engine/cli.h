// The command line: what was asked for, and what each verb does. `run` goes through the process
// tree (main.cpp); the other verbs only read. The verbs and their options are declared in
// engine/cli_verbs.cpp; help, completion and the manual are made from them. Exit codes as in design
// §6. Test: tests/engine/cli_test.cpp, tests/e2e/
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/run_directory.h"
#include "engine/selection.h"
#include "io/spec.h"

namespace sluice::engine {

enum class Verb {
  kNone,
  kRun,
  kCheck,
  kPlan,
  kStatus,
  kLogs,
  kWhy,
  kReport,
  kShell,
  kClean,
  kStop,
  kReplay,
  kHw,
  kSchema,
  kHelp,
  kCompletion,
  kMan,
  kVersion
};

struct Options {
  Verb verb = Verb::kNone;
  std::filesystem::path spec;  // run, check, plan, why: the pipeline or the list of commands
  std::optional<io::CommandListOptions> command_list;  // --commands: `spec` is a list of commands
  std::filesystem::path
      run_dir;  // --run-dir, or the RUN_DIR argument of status, logs, stop, replay
  std::vector<std::pair<std::string, std::string>> set;
  bool set_is_recorded = false;  // why RUN_DIR: `set` is what that run was given
  std::string target;            // logs, why: TASK or TASK[item]
  std::string topic;             // help: the verb; completion: the shell
  bool json = false;
  int verbosity = 0;                 // plan -v, -vv
  size_t workers = 0;                // plan --workers: whose makespan; 0: this machine's
  int cores = 0;                     // plan --cores: of each worker; 0: as this machine has
  bool exit_code = false;            // status --exit-code
  bool errors = false;               // logs --stderr: only that stream
  bool tsv = false;                  // status --tsv
  bool failed = false;               // logs --failed
  bool paths = false;                // logs --paths
  bool follow = false;               // logs --follow
  int64_t tail = -1;                 // logs --tail: lines of each stream; -1: all
  std::string attempt;               // logs --attempt
  std::filesystem::path provenance;  // report --provenance
  std::string shell_command;         // shell -c; "": interactive
  bool dry_run = false;              // clean --dry-run; run -n: plan instead
  bool old_logs = false;             // clean --logs
  bool stale = false;                // clean --stale
  int reserve_cores = -1;      // run: cores kept free on rank 0's node; -1: the rule of design §3
  SelectionOptions selection;  // run, plan, why
  std::string failures_max;    // run --max-failures: N or P%; "": no bound
  bool fresh = false;          // run: nothing of earlier runs is reused
  int lost_after_s = 30;       // run: a worker that is silent for so long is lost
  std::string command;         // as typed, for "continue with"

  [[nodiscard]] RunDirectory directory() const;
  // `command` for any folder: with a cd to this one before it.
  [[nodiscard]] std::string command_anywhere() const;
  [[nodiscard]] io::SpecOptions spec_options() const;  // for io::read_pipeline
};

// Fills `options`; returns -1 to go on, or the exit code (0 after --help, 2 after a usage error
// that was printed).
int parse_command_line(int argc, char** argv, Options& options);

// Everything but run.
int run_verb(const Options& options);

// What a person types to get these arguments: quoted where a shell needs it.
[[nodiscard]] std::string shell_words(const std::vector<std::string>& words);

}  // namespace sluice::engine
