// `sluice status`: how far a run is, from its journal, its lease and status.json; true after any
// kill. It reads no spec and changes nothing.
//
// The journal decides. What it cannot say (which instances wait, which of the recorded ones a
// changed spec has made stale) comes from status.json, which rank 0 rewrites every second or so:
// it counts what the journal's first `journal_bytes` bytes say, and is believed only if it belongs
// to the journal's newest submission and to bytes that are there; records behind them are added.
// One thread. Test: tests/engine/status_test.cpp, tests/e2e/queries.sh
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "engine/run_directory.h"
#include "io/lease.h"
#include "io/pipeline.h"
#include "io/run_ledger.h"
#include "scheduler/expected.h"

namespace sluice::engine {

struct Options;

struct TaskStatus {
  std::string name;
  size_t instances = 0;
  size_t waiting = 0, running = 0, done = 0, failed = 0, skipped = 0;
  size_t left_out = 0;  // not selected by this submission, and not done
};
struct RunningInstance {
  std::string task, item, attempt, host;
};
// Final failures that look the same: task, cause and the last lines of stderr.
struct FailureGroup {
  std::string task;
  std::string cause;  // "exit 3", "timeout", …
  std::string_view stderr_tail;
  std::vector<uint32_t> failures;  // indexes into the ledger's
};

struct RunStatus {
  enum class State : uint8_t {
    kRunning,         // its scheduler is alive
    kPerhapsRunning,  // on another host, and its last sign of life is not old
    kNotRunning,      // ended without saying so: killed
    kEnded,           // in order, with an outcome
  };
  State state = State::kNotRunning;
  std::string text;  // "running", "perhaps running", "not running" or the outcome
  std::optional<io::LeaseView> lease;
  std::optional<int> exit_code;  // none while it may be running
  std::vector<TaskStatus> tasks;
  std::vector<RunningInstance> running;  // the first few hundred; only while it may be running
  std::vector<FailureGroup> failures;    // of instances that failed for good; largest first
  io::RunLedger ledger;

  [[nodiscard]] TaskStatus total() const;
  [[nodiscard]] bool may_run() const {
    return state == State::kRunning || state == State::kPerhapsRunning;
  }
};

// What rank 0 said last of what runs; the first few hundred.
[[nodiscard]] std::vector<RunningInstance> running_instances(const RunDirectory& directory);

// submissions empty: no run there. With kTroubled the ledger lists all instances all the same where
// the counts have to come from it.
[[nodiscard]] Expected<RunStatus> read_status(const RunDirectory& directory,
                                              io::LedgerDetail detail = io::LedgerDetail::kAll);

void print_status(const RunStatus& status, const RunDirectory& directory, std::ostream& out);
[[nodiscard]] std::string status_as_json(const RunStatus& status, const RunDirectory& directory);
// task item state cause exit host start end wall_s command, one line per instance that has ended.
// Without a pipeline, and for an instance that it does not have, the command is "-".
void print_status_tsv(const RunStatus& status, const io::Pipeline* pipeline, std::ostream& out);

int show_status(const Options& options);

}  // namespace sluice::engine
