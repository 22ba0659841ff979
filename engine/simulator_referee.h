// What must hold in any run, kept in books that share nothing with the core's or the agents': who
// really runs on which cores, what was done how often and why, which bytes are really where. A
// breach becomes a sentence in problems(). One owner, one thread; part of the simulator. Test:
// tests/sim/referee_test.cpp
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/decision.h"
#include "scheduler/event.h"
#include "scheduler/graph.h"
#include "scheduler/worker_set.h"

namespace sluice::engine {

class Referee {
 public:
  explicit Referee(const scheduler::Graph& graph);

  // -- as rank 0 sees it
  void worker_joined(scheduler::WorkerId worker, const scheduler::Resources& resources);
  // Its attempts are over for the books, and its replicas are gone.
  void worker_lost(scheduler::WorkerId worker);
  void restored(const scheduler::event::Restored& fact);
  void select(std::vector<bool> instances) { selected_ = std::move(instances); }
  void attempt_started(const scheduler::decision::StartAttempt& start);
  void attempt_over(scheduler::AttemptId attempt);
  void attempt_finished(scheduler::WorkerId worker, scheduler::AttemptId attempt);
  // An input could not be had from the place that its start named: it counts as not being there.
  void attempt_returned(scheduler::AttemptId attempt, scheduler::ObjectId missing);
  void instance_done(scheduler::InstanceId instance, scheduler::AttemptId attempt,
                     const std::vector<scheduler::OutputReport>& outputs);
  void replica_added(scheduler::WorkerId worker, scheduler::ObjectId object);
  void replica_gone(scheduler::WorkerId worker, scheduler::ObjectId object);
  void durable(scheduler::ObjectId object, bool is);
  void save_asked(scheduler::WorkerId worker, scheduler::AttemptId save);
  void save_answered(scheduler::AttemptId save);

  // -- as a worker's machine sees it
  void launched(scheduler::WorkerId worker, scheduler::AttemptId attempt,
                const scheduler::Resources& request, const std::vector<int32_t>& cores);
  void process_gone(scheduler::WorkerId worker, scheduler::AttemptId attempt);
  void machine_gone(scheduler::WorkerId worker);

  // After a run that ended: nothing may be open.
  void ended();

  void problem(std::string text);
  [[nodiscard]] std::vector<std::string>& problems() { return problems_; }
  // Content of a value, which travels with a start; unknown before its instance is done.
  [[nodiscard]] scheduler::Hash128 value(scheduler::ObjectId object) const;

  std::vector<uint32_t> launches;     // per instance
  std::vector<uint32_t> completions;  // per instance
  size_t running_max = 0;
  int32_t cores_max = 0;

 private:
  struct OpenAttempt {
    scheduler::WorkerId worker;
    scheduler::InstanceId instance;
    std::vector<scheduler::InputPlace> inputs;
  };
  struct Process {
    scheduler::Resources request;
    std::vector<int32_t> cores;
  };
  struct Machine {
    scheduler::Resources resources;
    std::map<scheduler::AttemptId, Process> processes;
    std::set<int32_t> cores;
    int64_t memory_bytes = 0;
  };
  struct Progress {
    bool sealed = false;                // it was done once
    bool done = false;                  // and does not run again
    scheduler::AttemptId open_attempt;  // the one that may run
  };
  // Bytes that the core knows of, by what it was told.
  [[nodiscard]] bool available(scheduler::ObjectId object) const;
  [[nodiscard]] bool all_available(scheduler::InstanceId instance) const;
  [[nodiscard]] bool needed(scheduler::InstanceId instance,
                            std::set<scheduler::InstanceId>& seen) const;
  void check_inputs(const scheduler::decision::StartAttempt& start);
  void count_limits(scheduler::InstanceId instance, int64_t sign);

  const scheduler::Graph& graph_;
  std::vector<Progress> progress_;
  std::vector<bool> selected_;  // per instance; empty: all
  std::vector<scheduler::Amount> limits_used_;
  std::map<scheduler::AttemptId, OpenAttempt> open_;
  std::vector<scheduler::Hash128> contents_;    // per object: as first recorded
  std::vector<scheduler::WorkerSet> replicas_;  // per object
  std::vector<bool> durable_;                   // per object
  scheduler::AttemptId last_attempt_;
  std::map<scheduler::AttemptId, scheduler::WorkerId> saves_;
  std::map<scheduler::WorkerId, Machine> machines_;
  std::set<scheduler::WorkerId> lost_;
  std::set<scheduler::WorkerId> dead_;  // perhaps before rank 0 knows
  size_t running_ = 0;
  int32_t cores_ = 0;
  std::vector<std::string> problems_;
};

}  // namespace sluice::engine
