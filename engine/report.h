// What people read during a run, on stderr: one progress line with an ETA on a terminal (a plain
// line a minute elsewhere), warnings as they come, and the summary. NO_COLOR and non-terminals get
// plain text. Numbers come from the core's counts, never from a second bookkeeping. Control thread
// of rank 0. Test: tests/engine/report_test.cpp
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "engine/failure_groups.h"
#include "engine/run_directory.h"
#include "scheduler/core.h"
#include "scheduler/types.h"

namespace sluice::engine {

class Report {
 public:
  using Write = std::function<void(std::string_view)>;
  struct Options {
    bool terminal = false;
    bool color = false;
    std::string command = "sluice run";  // the command that continues this run
    RunDirectory directory;
    std::function<int()> columns = {};  // of the terminal, asked each time: it may be resized
    std::string why = {};               // "sluice why PIPELINE"
  };
  Report(Options options, Write write);  // `write`: to stderr, or a test's string

  void line(std::string_view level,
            std::string_view text);  // "warn: …"; clears the progress line first
  void started(const std::string& pipeline, size_t instances, size_t restored);
  void workers(size_t workers, size_t nodes, int64_t cores);
  void attempt_done(scheduler::Duration wall, int32_t cpus);
  void failed(const FailureLine& failure);
  void skipped(const std::string& label, const std::string& because);
  void progress(scheduler::Instant now, const scheduler::Counts& counts, int64_t cores_total);
  void summary(scheduler::Instant now, const scheduler::Counts& counts, scheduler::Outcome outcome,
               int exit_code, const std::vector<std::string>& results);

 private:
  [[nodiscard]] std::string eta(const scheduler::Counts& counts, int64_t cores_total) const;
  void clear_progress();
  void print_results(const std::vector<std::string>& results);
  void print_failures(const scheduler::Counts& counts);
  [[nodiscard]] std::string fitted(std::string text) const;

  Options options_;
  Write write_;
  bool progress_shown_ = false;
  scheduler::Instant next_progress_;
  scheduler::Instant begun_;
  int64_t finished_ = 0;                     // attempts that succeeded in this submission
  scheduler::Duration finished_core_time_;   // wall × cpus
  FailureGroups failures_;                   // final ones
  std::map<std::string, size_t> announced_;  // failures by task and cause, as they came
  size_t retried_ = 0;
  std::map<std::string, size_t> skipped_by_task_;
};

[[nodiscard]] std::string duration_text(
    scheduler::Duration duration);                          // "1.2 s", "3 min 20 s", "2 h 5 min"
[[nodiscard]] std::string time_text(int64_t unix_time_ms);  // local time, "2026-11-30 11:33:00"
// "exit 3", "signal 11 (Segmentation fault)", else the cause's name.
[[nodiscard]] std::string cause_text(std::string_view cause, int exit_code, int signal);
[[nodiscard]] std::string signal_text(int signal);  // "signal 11 (Segmentation fault)"

}  // namespace sluice::engine
