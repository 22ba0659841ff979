// What the journal says about a run, compactly: one small entry per instance, one per failed
// attempt, each submission with its workers and its end. For queries that answer at once at 10^6
// instances (status, report); what resume needs is in JournalState (io/journal.h). Texts lie in an
// arena of the ledger. Move-only value; any thread may read. Test: tests/io/run_ledger_test.cpp
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/journal.h"
#include "scheduler/expected.h"
#include "scheduler/types.h"

namespace sluice::io {

// Texts kept once each, for as long as the owner lives.
class TextArena {
 public:
  [[nodiscard]] std::string_view keep(std::string_view text);    // a copy
  [[nodiscard]] std::string_view intern(std::string_view text);  // equal texts share one
  [[nodiscard]] size_t bytes() const { return bytes_; }

 private:
  std::vector<std::unique_ptr<char[]>> blocks_;
  size_t block_left_ = 0;
  char* block_at_ = nullptr;
  size_t bytes_ = 0;
  std::unordered_map<std::string_view, std::string_view> interned_;
};

struct RunLedger {
  static constexpr uint32_t kNone = UINT32_MAX;

  enum class State : uint8_t {
    kOpen,  // recorded, but neither finished nor given up: an attempt failed and is tried again
    kDone,
    kFailed,
    kSkipped,
  };
  struct Instance {
    uint32_t task = 0;  // index into tasks
    State state = State::kOpen;
    bool gone = false;  // not in the spec of the newest submission
    std::string_view item;
    scheduler::AttemptId attempt;  // of the last record
    uint32_t worker = 0;
    uint32_t failures = 0;          // attempts that failed, in all submissions
    uint32_t last_failure = kNone;  // index into failures
    int64_t unix_time_ms = 0;       // when its last attempt's end was recorded
    scheduler::Usage usage;         // of the last attempt
    std::string_view because;       // kSkipped: label of the failed one
  };
  struct Failure {
    uint32_t instance = 0;
    uint32_t previous = kNone;  // failure of the same instance
    scheduler::AttemptId attempt;
    uint32_t worker = 0;
    int32_t exit_code = 0, signal = 0;
    bool final = false;
    int64_t unix_time_ms = 0;
    scheduler::Usage usage;
    std::string_view cause, detail, stderr_tail;
  };
  struct Submission {
    record::Run run;
    std::vector<record::Worker> workers;    // first record of each
    std::vector<record::Worker> set_aside;  // of these, the record that says so
    std::optional<record::End> end;
    size_t done = 0, failed_attempts = 0, lost_workers = 0;
    int64_t last_time_ms = 0;                  // of its last record with a time
    scheduler::Duration busy;                  // core time of its attempts (wall × cpus asked for)
    std::vector<uint32_t> done_per_task = {};  // by task
  };
  // Records behind a place of the newest segment, by task.
  struct Since {
    size_t done = 0, failed = 0, skipped = 0;
  };

  std::vector<std::string> tasks;   // in the order of their first mention
  std::vector<Instance> instances;  // in the order of their first record
  std::vector<Failure> failures;
  std::vector<Submission> submissions;
  std::vector<Since> since;  // by task
  uint64_t newest_length = 0;
  std::vector<std::string> messages;  // what was cut and why

  [[nodiscard]] const Submission& newest() const { return submissions.back(); }
  // "" if unknown.
  [[nodiscard]] std::string host_of(scheduler::AttemptId attempt, uint32_t worker) const;
  [[nodiscard]] std::string label(const Instance& instance) const;

  TextArena texts;
};

// From this byte of this segment on, records are also counted in `since`.
struct LedgerMark {
  uint32_t epoch = 0;
  uint64_t bytes = 0;
};

// Which instances are listed.
enum class LedgerDetail : uint8_t {
  kAll,
  kTroubled,  // those of which a failure, a skip or a removal is recorded; of the others only
              // Submission::done, done_per_task and Since::done are counted: half of the time
};

[[nodiscard]] Expected<RunLedger> read_ledger(const std::filesystem::path& run_directory,
                                              LedgerMark mark = {},
                                              LedgerDetail detail = LedgerDetail::kAll);

}  // namespace sluice::io
