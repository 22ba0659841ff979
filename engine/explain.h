// Why an instance is what it is: what it waits for and how those are doing, what of its key changed
// since its last success, how its attempts ended, because of whom it was skipped. From the forecast
// and the journal, so it is true after any kill. Values; one thread. Test:
// tests/engine/explain_test.cpp, tests/e2e/plan.sh
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/forecast.h"
#include "engine/run_directory.h"
#include "io/pipeline.h"

namespace sluice::engine {

// A part of the key that is not as it was. The texts are empty where they are not known.
struct Change {
  std::string part;  // "command", "param tol", "input obs"
  std::string what;  // for people: "the content of '/data/obs.h5' (input 'obs')"
  std::string was, is;
};

struct Success {
  scheduler::AttemptId attempt;
  std::string where;  // host, or "worker 3" where the host is not known any more
  int64_t unix_time_ms = 0;
  scheduler::Duration wall;
};

struct FailedAttempt {
  io::record::Attempt record;
  std::string cause;  // "exit 3", "signal 11 (Segmentation fault)", "timeout"
  std::string where;
};

struct Explanation {
  scheduler::InstanceId instance;
  std::string label;
  Verdict verdict;
  std::string reason;
  std::vector<Change> changes;
  std::vector<std::string> waits_for;  // "make[n=4]: its last attempt failed"; the first few
  size_t waits_for_more = 0;
  std::optional<Success> success;       // the last one
  std::vector<FailedAttempt> failures;  // since then, oldest first
  std::string skipped_because;          // label of the one that failed
};

class Explainer {
 public:
  // `before`: the spec as of the last submission, when it could be read; for texts of changes.
  Explainer(const io::Pipeline& pipeline, const Forecast& forecast, const io::Pipeline* before)
      : pipeline_(pipeline), forecast_(forecast), before_(before) {}
  [[nodiscard]] Explanation explain(scheduler::InstanceId instance) const;

 private:
  void add_changes(const io::JournalState::InstanceFacts& facts, Explanation& out) const;
  [[nodiscard]] Change describe_change(const std::string& part, scheduler::InstanceId instance,
                                       const io::JournalState::InstanceFacts& facts) const;
  [[nodiscard]] scheduler::InstanceId same_before(
      const std::string& part, scheduler::InstanceId instance,
      const io::JournalState::InstanceFacts& facts) const;
  void add_waits(Explanation& out) const;
  void add_failures(const io::JournalState::InstanceFacts& facts, Explanation& out) const;
  [[nodiscard]] std::string where(uint32_t worker, uint32_t epoch) const;

  const io::Pipeline& pipeline_;
  const Forecast& forecast_;
  const io::Pipeline* before_;
};

// "exit 3", "signal 11 (Segmentation fault)", "timeout".
[[nodiscard]] std::string cause_text(const io::record::Attempt& failure);

}  // namespace sluice::engine
