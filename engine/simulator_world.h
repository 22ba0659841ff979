// Inside of the simulator: the virtual clock, and a modelled worker: its agent, its store, its
// processes. One thread. Test: tests/sim/
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "engine/simulator.h"
#include "engine/simulator_referee.h"
#include "io/wire.h"
#include "scheduler/agent.h"

namespace sluice::engine {

// What is to happen, in order of time; of equal times in order of `at`.
class VirtualTime {
 public:
  using Action = std::function<void()>;
  [[nodiscard]] scheduler::Instant now() const { return now_; }
  void at(scheduler::Instant when, Action action);
  void after(scheduler::Duration delay, Action action) { at(now_ + delay, std::move(action)); }
  // When the next action is; never if there is none.
  [[nodiscard]] scheduler::Instant next() const {
    return heap_.empty() ? scheduler::Instant::never() : heap_.front().when;
  }
  // Moves the clock to the next action and carries it out.
  void step();

 private:
  struct Entry {
    scheduler::Instant when;
    uint64_t sequence = 0;
    Action action;
    bool operator<(const Entry& other) const {  // for a heap with the earliest on top
      return std::pair(other.when, other.sequence) < std::pair(when, sequence);
    }
  };
  scheduler::Instant now_;
  uint64_t sequence_ = 0;
  std::vector<Entry> heap_;
};

class SimulatedWorker;

struct World {
  World(const scheduler::Graph& given_graph, const SimulationOptions& given_options,
        SimulatedRunDirectory& given_directory);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] SimulatedWorker& worker(scheduler::WorkerId id);
  // The clocks of the processes: all run as fast, some have jumped.
  [[nodiscard]] scheduler::Instant now(scheduler::WorkerId end) const {
    return time.now() + ahead[end.index()];
  }
  // When that clock shows `at`: now, if it has gone past it.
  [[nodiscard]] scheduler::Instant when(scheduler::WorkerId end, scheduler::Instant at) const;
  // A message as it arrives: one that the plan damages cannot be read.
  [[nodiscard]] Expected<io::Message> read(std::span<const std::byte> bytes);

  const scheduler::Graph& graph;
  const SimulationOptions& options;
  SimulatedRunDirectory& directory;
  ExecutorModel model;
  VirtualTime time;
  io::LocalNetwork network;
  Referee referee;
  std::vector<std::unique_ptr<SimulatedWorker>> workers;
  // Saved under a temporary name and not committed yet.
  std::map<std::pair<scheduler::ObjectId, scheduler::AttemptId>, StoredObject> temporaries;
  // Fetched so late that rank 0 heard of it after the end of the run.
  std::set<std::pair<scheduler::WorkerId, scheduler::ObjectId>> late_replicas;
  uint64_t fetches = 0;
  uint64_t fetches_failed = 0;
  std::vector<scheduler::Duration> ahead;  // per end
  uint64_t messages_read = 0;
  uint64_t damaged = 0;
  std::set<PlantedBug> sprung;  // once is enough
  // The bug is planted, and its turn is now.
  [[nodiscard]] bool springs(PlantedBug bug) {
    return options.sabotage.planted == bug && sprung.insert(bug).second;
  }
  // A worker's guard has seen its end.
  std::function<void(scheduler::WorkerId)> death_noticed;
};

class SimulatedWorker {
 public:
  SimulatedWorker(World& world, scheduler::WorkerId id, const WorkerPlan& plan);

  void join();
  void poll();  // messages may have arrived
  void die();
  void clock_jumped() { arm_tick(); }
  void stall(scheduler::Duration duration);
  [[nodiscard]] const WorkerPlan& plan() const { return plan_; }
  [[nodiscard]] scheduler::WorkerId id() const { return id_; }
  [[nodiscard]] bool alive() const { return alive_; }
  [[nodiscard]] bool left() const { return left_; }
  [[nodiscard]] size_t attempts() const { return agent_.attempts(); }
  [[nodiscard]] const std::map<scheduler::ObjectId, StoredObject>& store() const { return store_; }
  [[nodiscard]] const StoredObject* stored(scheduler::ObjectId object) const;

 private:
  struct Attempt {
    io::message::Start start;
    ModelledRun run;
    std::map<scheduler::ObjectId, StoredObject> parts;  // of inputs, brought for it alone
    std::vector<scheduler::Hash128> inputs;             // known from Stage on
    bool running = false;
    scheduler::Instant started;
  };

  struct Fetch {
    scheduler::WorkerId source;
    uint64_t number = 0;
  };

  [[nodiscard]] scheduler::Instant now() const { return world_.now(id_); }
  // Carries out `action` at that time, or when a stall is over; never once the worker is dead.
  void at(scheduler::Instant when, VirtualTime::Action action);
  void after(scheduler::Duration delay, VirtualTime::Action action);
  void answer_after(scheduler::Duration delay, scheduler::AgentInput input);
  void give(const scheduler::AgentInput& input);
  void arm_tick();
  void tell(const io::Message& message);
  void take_messages();
  void received(const io::Message& message);

  void perform(const scheduler::effect::Fetch& effect);
  void perform(const scheduler::effect::FetchPart& effect);
  void perform(const scheduler::effect::Stage& effect);
  void perform(const scheduler::effect::Launch& effect);
  void perform(const scheduler::effect::Signal& effect);
  void perform(const scheduler::effect::Check& effect);
  void perform(const scheduler::effect::Clean& effect);
  void perform(const scheduler::effect::SaveObject& effect);
  void perform(const scheduler::effect::RemoveObject& effect);
  void perform(const scheduler::effect::Report& effect);
  void perform(const scheduler::effect::Left& effect);

  [[nodiscard]] bool under_way(scheduler::ObjectId object, uint64_t fetch) const;
  void ask_source(scheduler::ObjectId object, Fetch fetch);
  void bring(scheduler::ObjectId object, Fetch fetch, StoredObject found);
  void bring_part(const scheduler::effect::FetchPart& wanted, StoredObject found);
  void fetch_failed(scheduler::ObjectId object, uint64_t fetch, const char* reason);
  void peer_lost(scheduler::WorkerId peer);
  [[nodiscard]] bool collect_inputs(Attempt& attempt);
  void exit_process(scheduler::AttemptId id, int32_t exit_code, int32_t signal);
  void check_outputs(scheduler::AttemptId id);
  void finish_save(const scheduler::effect::SaveObject& effect);

  World& world_;
  scheduler::WorkerId id_;
  WorkerPlan plan_;
  scheduler::Agent agent_;
  io::Transport& end_;
  std::map<scheduler::ObjectId, StoredObject> store_;
  std::map<scheduler::AttemptId, Attempt> attempts_;
  std::map<scheduler::ObjectId, Fetch> fetches_;  // under way
  bool alive_ = true;
  bool left_ = false;
  scheduler::Instant stalled_until_;
  scheduler::Instant armed_ = scheduler::Instant::never();
  uint64_t inputs_given_ = 0;
};

}  // namespace sluice::engine
