// `sluice report`: what a run did, looked at afterwards: each submission against the least time it
// could have taken, what tasks asked for and what they used, failures by cause, the slowest
// instances, and where a result comes from. Facts are the journal's; the graph (for the critical
// path and for provenance) comes from the recorded spec, and what needs it is left out when that
// cannot be had. One thread. Test: tests/engine/run_report_test.cpp, tests/e2e/queries.sh
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "engine/run_directory.h"
#include "io/pipeline.h"
#include "io/run_ledger.h"
#include "scheduler/expected.h"
#include "scheduler/types.h"

namespace sluice::engine {

struct Options;

struct SubmissionReport {
  uint32_t submission = 0;
  std::string outcome;  // as in the journal; "killed" if it ended without a word
  std::string host;
  int64_t begin_ms = 0, end_ms = 0;
  size_t done = 0, failed_attempts = 0, workers = 0, lost_workers = 0;
  int64_t cores = 0;
  scheduler::Duration makespan;
  scheduler::Duration work;                          // core time of its attempts
  std::optional<scheduler::Duration> critical_path;  // of what it finished; none without the spec
  // max(critical path, work / cores); of a whole number of cores, nothing can be faster.
  [[nodiscard]] scheduler::Duration bound() const;
  [[nodiscard]] double utilisation() const;  // work / (cores × makespan)
};

// Asked for, and what n attempts that succeeded used.
struct UsageReport {
  std::string task;
  size_t n = 0;
  int64_t cpus = 0, memory_bytes = 0, timeout_ms = 0;  // asked for; 0: nothing
  double cpus_median = 0, cpus_max = 0;                // processor time / wall time
  int64_t memory_median_bytes = 0, memory_max_bytes = 0;
  scheduler::Duration wall_median, wall_max;
  std::vector<std::string> suggestions;  // only from kSuggestionSamples attempts on
};
constexpr size_t kSuggestionSamples = 5;

struct CauseReport {
  std::string task, cause;
  size_t attempts = 0;   // that ended so
  size_t instances = 0;  // that are failed for good by it now
};

struct RunReport {
  std::vector<SubmissionReport> submissions;
  std::vector<UsageReport> usage;
  std::vector<CauseReport> causes;
  std::vector<uint32_t> slowest;  // instances of the ledger, longest first
};

// `pipeline` may be absent.
[[nodiscard]] RunReport make_report(const io::RunLedger& ledger, const io::Pipeline* pipeline);
void print_report(const RunReport& report, const io::RunLedger& ledger, std::ostream& out);
[[nodiscard]] std::string report_as_json(const RunReport& report, const io::RunLedger& ledger,
                                         const RunDirectory& directory);

int show_report(const Options& options);

}  // namespace sluice::engine
