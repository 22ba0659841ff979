// What user code and the machine do in the simulator: how long an attempt runs, what it makes, what
// goes wrong. Everything is drawn from the seed and the ids concerned, never from a generator with
// a state, so one more event elsewhere changes nothing here.
//
// The content of an output is a function of its instance's static key and the contents of all its
// inputs: two runs with equal contents did the same work, whatever went wrong on the way.
//
// Immutable; any thread. Test: tests/sim/executor_model_test.cpp
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/event.h"
#include "scheduler/graph.h"

namespace sluice::engine {

struct ModelOptions {
  uint64_t seed = 1;
  // An attempt runs so long; half to three halves of the task's `expected` where that is known.
  scheduler::Duration run_min = scheduler::milliseconds(20);
  scheduler::Duration run_max = scheduler::seconds(2);
  bool exact = false;  // an attempt runs exactly as long as its task expects, 1 s if it does not
  int64_t bytes_min = 1LL << 10U;
  int64_t bytes_max = 1LL << 22U;
  int64_t bytes_per_second = 1LL << 30U;  // of fetches and saves
  scheduler::Duration stage = scheduler::microseconds(300);
  scheduler::Duration check = scheduler::milliseconds(1);
  scheduler::Duration commit = scheduler::milliseconds(3);
  // Chances out of 1000.
  uint32_t crash_permille = 0;         // an attempt exits with a status or a signal
  uint32_t doomed_permille = 0;        // every attempt of the instance crashes
  uint32_t hang_permille = 0;          // an attempt ends only when it is signalled
  uint32_t ignores_stop_permille = 0;  // an attempt ends only by SIGKILL when it is signalled
  uint32_t bad_output_permille = 0;    // an attempt ends well, its output does not pass the check
  uint32_t stage_failure_permille = 0;
  uint32_t fetch_failure_permille = 0;
  uint32_t save_failure_permille = 0;
  uint32_t partial_permille = 0;  // of an input from another worker only a part is read
};

struct ModelledRun {
  scheduler::Duration runs;
  bool hangs = false;
  bool ignores_stop = false;
  bool bad_output = false;
  int32_t exit_code = 0;
  int32_t signal = 0;
};

class ExecutorModel {
 public:
  explicit ExecutorModel(const ModelOptions& options) : options_(options) {}

  [[nodiscard]] const ModelOptions& options() const { return options_; }
  [[nodiscard]] ModelledRun run(const scheduler::Graph& graph, scheduler::InstanceId instance,
                                scheduler::AttemptId attempt) const;
  [[nodiscard]] bool doomed(scheduler::InstanceId instance) const;
  // `inputs`: contents of the objects of all groups that the instance reads, in their order.
  [[nodiscard]] std::vector<scheduler::OutputReport> outputs(
      const scheduler::Graph& graph, scheduler::InstanceId instance,
      std::span<const scheduler::Hash128> inputs) const;
  [[nodiscard]] scheduler::Duration transfer(int64_t bytes) const;
  [[nodiscard]] bool stage_fails(scheduler::AttemptId attempt) const;
  // `nth`: how many fetches or saves there were before, so that a repeated one is drawn anew.
  [[nodiscard]] bool fetch_fails(scheduler::ObjectId object, uint64_t nth) const;
  [[nodiscard]] bool reads_part(scheduler::InstanceId instance, scheduler::ObjectId object) const;
  [[nodiscard]] bool save_fails(scheduler::ObjectId object, scheduler::AttemptId save) const;
  // For whoever plans trouble: a number below `bound`, by what it is about.
  [[nodiscard]] uint64_t draw(uint64_t subject, uint64_t object, uint64_t bound) const;

 private:
  [[nodiscard]] bool chance(uint32_t permille, uint64_t subject, uint64_t object) const;
  [[nodiscard]] int64_t between(int64_t low, int64_t high, uint64_t subject, uint64_t object) const;

  ModelOptions options_;
};

// Contents of all objects of a graph, had every instance run once: what any run must end with.
[[nodiscard]] std::vector<scheduler::Hash128> expected_contents(const scheduler::Graph& graph,
                                                                const ExecutorModel& model);

}  // namespace sluice::engine
