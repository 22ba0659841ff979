// The second driver: the same core and agents as a run on a machine, with a virtual clock, modelled
// executors and the transport within one process. Everything follows from the seed.
//
//   SimulatedRunDirectory directory;
//   const SimulationResult first = simulate(graph, options, directory);    // until its end or
//   crash const SimulationResult second = simulate(graph, options, directory);   // resumes
//
// Rank 0 is end 0 of the network, worker i of the options is WorkerId(i + 1). Messages go through
// io/wire. Beside core and agents, a referee with books of its own watches what must hold for any
// run (simulator_referee.h); what it finds is in SimulationResult::problems.
//
// Needs nothing but a compiler. One thread. Test: tests/sim/
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/executor_model.h"
#include "engine/simulator_sabotage.h"
#include "io/transport_local.h"
#include "scheduler/core.h"

namespace sluice::engine {

struct WorkerPlan {
  scheduler::Resources resources{4, 0};
  scheduler::Instant joins;
  scheduler::Instant dies = scheduler::Instant::never();
  bool death_reported = true;  // by its guard; else only its silence tells
  // It stands still for a while: does and says nothing, then goes on as if nothing had been.
  scheduler::Instant stalls = scheduler::Instant::never();
  scheduler::Duration stall;
  bool broken = false;  // whatever it starts fails at once
};

struct SimulationOptions {
  uint64_t seed = 1;
  std::vector<WorkerPlan> workers;
  ModelOptions model;
  scheduler::Duration latency_min = scheduler::microseconds(2);
  scheduler::Duration latency_max = scheduler::microseconds(200);
  scheduler::CoreOptions core;                // its epoch is set from the run directory
  std::vector<bool> selected;                 // per instance: only these are to run; empty: all
  std::vector<scheduler::InstanceId> forced;  // run again although they are done
  scheduler::Instant stop_at = scheduler::Instant::never();
  // Rank 0 dies, and with it the run, after so many events.
  uint64_t core_crash_after_events = 0;  // 0: never
  Sabotage sabotage;
  // Core::check_invariants and Agent::check_invariants after every so many events; 0: never.
  uint32_t check_every = 1;
  // A run that is longer is a problem.
  scheduler::Duration time_max = scheduler::seconds(24 * 3600);
  uint64_t steps_max = 50'000'000;
};

struct StoredObject {
  scheduler::Hash128 content;
  int64_t bytes = 0;
};

// What stays when all processes are gone: the journal's facts, and the files they are about.
class SimulatedRunDirectory {
 public:
  struct Done {
    scheduler::InstanceId instance;
    scheduler::Hash128 key;
    std::vector<scheduler::OutputReport> outputs;
  };
  struct Durable {
    scheduler::ObjectId object;
    StoredObject file;
  };
  struct Removed {
    scheduler::ObjectId object;
  };
  using Fact = std::variant<Done, Durable, Removed>;

  uint32_t next_epoch() { return ++epoch_; }
  void append(Fact fact);
  // A removal waits until the journal is synced: no crash goes back behind it.
  void sync() { synced_ = facts_.size(); }
  // A crash of the machine: only the first `length` facts survive, at least the synced ones.
  void cut(size_t length);
  // A record was damaged on disk: it and all after it are gone, while the files stay as they are.
  void damage_record(size_t index);
  // A file has other bytes of the same number: what a resume sees, for it looks at the bytes of
  // whatever was written or changed since the records were synced.
  void damage_file(scheduler::ObjectId object);
  [[nodiscard]] size_t length() const { return facts_.size(); }
  [[nodiscard]] size_t synced() const { return synced_; }

  [[nodiscard]] std::vector<scheduler::event::Restored> restored(
      const scheduler::Graph& graph) const;
  // What the records say of the object and the disk really has; none if these differ.
  [[nodiscard]] const StoredObject* file(scheduler::ObjectId object) const;
  // As the records say.
  [[nodiscard]] const std::map<scheduler::ObjectId, StoredObject>& files() const { return files_; }
  [[nodiscard]] bool done(scheduler::InstanceId instance) const {
    return instance.index() < done_at_.size() && done_at_[instance.index()] > 0;
  }

 private:
  void fold(const Fact& fact, size_t place);
  void keep(size_t length);

  uint32_t epoch_ = 0;
  std::deque<Fact> facts_;
  size_t synced_ = 0;
  // The facts merged, as a resume sees them.
  std::vector<uint32_t> done_at_;  // per instance: place of its last fact + 1; 0: there is none
  std::map<scheduler::ObjectId, StoredObject> files_;
  std::map<scheduler::ObjectId, StoredObject> disk_;
};

struct SimulationResult {
  std::optional<scheduler::Outcome> outcome;  // none: rank 0 crashed, or the run did not end
  scheduler::Instant ended;
  uint64_t digest = 0;  // of the core
  scheduler::Counts counts;
  std::vector<scheduler::InstanceState> states;  // per instance, at the end
  std::vector<uint32_t> launches;                // per instance: processes that were started
  std::vector<uint32_t> completions;             // per instance: done and journalled
  std::vector<uint32_t> failures;                // per instance: failed attempts
  // Per instance that has failed: by what; none if it has not.
  std::vector<std::optional<scheduler::Cause>> failed_by;
  size_t workers_lost = 0;
  uint64_t events = 0;  // applied to the core
  uint64_t messages = 0;
  uint64_t fetches_failed = 0;
  uint64_t damaged = 0;               // messages
  size_t running_max = 0;             // processes at one time
  int32_t cores_max = 0;              // cores given at one time
  std::vector<std::string> problems;  // what must never be; empty in a good run
};

// What attempts do in a run with these options, for whoever wants to know it beforehand.
[[nodiscard]] ExecutorModel model_of(const SimulationOptions& options);

[[nodiscard]] SimulationResult simulate(const scheduler::Graph& graph,
                                        const SimulationOptions& options,
                                        SimulatedRunDirectory& directory);

}  // namespace sluice::engine
