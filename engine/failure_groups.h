// The failures of a run as its summary shows them: by task and cause, and within a cause those with
// the same last words together, since a thousand instances mostly fail for one reason. Keeps a
// bounded number of texts however many fail. Values; one thread. Test:
// tests/engine/failure_groups_test.cpp
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/types.h"

namespace sluice::engine {

// A failed attempt or instance, as the summary shows it.
struct FailureLine {
  std::string label;
  std::string task;
  scheduler::AttemptId attempt;
  std::string cause;  // "exit 3", "signal 11 (Segmentation fault)", "timeout", …
  std::string host;
  std::string detail;
  std::string stderr_tail;
  bool final = false;
};

class FailureGroups {
 public:
  void add(const FailureLine& failure);
  [[nodiscard]] bool empty() const { return causes_.empty(); }
  // The causes with most failures first. `logs`: "sluice logs RUN_DIR", for "more:".
  [[nodiscard]] std::string text(const std::string& logs) const;

 private:
  // Failures with the same last words.
  struct Alike {
    FailureLine first;
    size_t count = 0;
    std::map<std::string, size_t> hosts;
  };
  struct CauseGroup {
    size_t count = 0;
    std::map<std::pair<std::string, std::string>, Alike> alike;  // by detail and stderr
    std::vector<std::pair<std::string, std::string>> order;      // as they came
    size_t others = 0;  // failures beyond the texts that are kept
  };
  static std::string alike_text(const Alike& alike, const std::string& logs);
  std::map<std::string, CauseGroup> causes_;  // by "task: cause"
};

}  // namespace sluice::engine
