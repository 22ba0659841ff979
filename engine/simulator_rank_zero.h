// Rank 0 of the simulator: what engine/scheduler_rank does on a machine. It feeds the core, carries
// out its decisions, and lets the referee know of both. One thread; part of the simulator. Test:
// tests/sim/
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "engine/simulator_world.h"

namespace sluice::engine {

class SimulatedRankZero {
 public:
  explicit SimulatedRankZero(World& world)
      : world_(world),
        core_(world.graph, core_options(world)),
        end_(world.network.end(scheduler::WorkerId(0))),
        failures_(world.graph.instance_count()),
        failed_by_(world.graph.instance_count()) {}

  void begin();
  void poll();
  // At once, or when a pause is over.
  void deliver(const scheduler::Event& event);
  void pause(scheduler::Duration duration);
  void clock_jumped() { arm_tick(); }
  [[nodiscard]] bool crashed() const { return crashed_; }
  // The run has ended and every worker that is still there has said goodbye.
  [[nodiscard]] bool over() const;
  void fill(SimulationResult& result) const;

 private:
  static scheduler::CoreOptions core_options(World& world) {
    scheduler::CoreOptions options = world.options.core;
    options.epoch = world.directory.next_epoch();
    return options;
  }

  [[nodiscard]] scheduler::Instant now() const { return world_.now(scheduler::WorkerId(0)); }
  [[nodiscard]] bool paused() const { return world_.time.now() < paused_until_; }
  // Carries out `action` after the delay, or when a pause is over.
  void after(scheduler::Duration delay, VirtualTime::Action action);
  void received(scheduler::WorkerId from, const io::Message& message);
  void unreadable(scheduler::WorkerId from);
  void report_again(scheduler::WorkerId from, const scheduler::Event& report);
  void apply(const scheduler::Event& event);
  void note_late(const scheduler::Event& event);
  void schedule();
  void ask_for_sync();
  void perform_all();
  void arm_tick();
  void tell(scheduler::WorkerId worker, const io::Message& message) {
    end_.send(worker, io::Channel::kControl, io::encode(message));
  }
  void give_up(scheduler::WorkerId worker);

  // What the referee must know of an event before the core's decisions about it.
  template <class Other>
  void note(const Other&) {}
  void note(const scheduler::event::WorkerLost& e) { give_up(e.worker); }
  void note(const scheduler::event::Restored& e) { world_.referee.restored(e); }
  void note(const scheduler::event::AttemptFinished& e) {
    world_.referee.attempt_finished(e.worker, e.attempt);
  }
  void note(const scheduler::event::AttemptFailed& e) { world_.referee.attempt_over(e.attempt); }
  void note(const scheduler::event::AttemptStopped& e) { world_.referee.attempt_over(e.attempt); }
  void note(const scheduler::event::AttemptReturned& e) {
    world_.referee.attempt_returned(e.attempt, e.missing);
  }
  void note(const scheduler::event::ReplicaAdded& e) {
    world_.referee.replica_added(e.worker, e.object);
  }
  void note(const scheduler::event::ReplicaLost& e) {
    world_.referee.replica_gone(e.worker, e.object);
  }
  void note(const scheduler::event::ObjectCommitted& e) { world_.referee.durable(e.object, true); }
  void note(const scheduler::event::ObjectSaved& e) { world_.referee.save_answered(e.save); }
  void note(const scheduler::event::ObjectSaveFailed& e) { world_.referee.save_answered(e.save); }

  void perform(const scheduler::decision::StartAttempt& d);
  void perform(const scheduler::decision::TakeBack& d) {
    tell(d.worker, io::message::TakeBack{d.attempt});
  }
  void perform(const scheduler::decision::StopAttempt& d) {
    tell(d.worker, io::message::Stop{d.attempt});
  }
  void perform(const scheduler::decision::SaveObject& d);
  void perform(const scheduler::decision::DropObject& d) {
    world_.referee.replica_gone(d.worker, d.object);
    tell(d.worker, io::message::Drop{d.object});
  }
  void perform(const scheduler::decision::CommitObject& d);
  void perform(const scheduler::decision::RemoveSaved& d);
  void perform(const scheduler::decision::InstanceDone& d);
  void perform(const scheduler::decision::AttemptEnded& d);
  void perform(const scheduler::decision::InstanceSkipped&) {}
  void perform(const scheduler::decision::StopBegan&) {}
  void perform(const scheduler::decision::WorkerChanged& d) {
    if (d.state == scheduler::decision::WorkerState::kLost) give_up(d.worker);
  }
  void perform(const scheduler::decision::NotReproducible& d) {
    world_.referee.problem("object " + std::to_string(d.object.value) + " is not reproducible");
  }
  void perform(const scheduler::decision::RunEnded& d);

  World& world_;
  scheduler::Core core_;
  io::Transport& end_;
  std::vector<scheduler::Decision> decisions_;
  std::set<scheduler::WorkerId> joined_;
  std::set<scheduler::WorkerId> lost_;
  std::optional<scheduler::Outcome> outcome_;
  scheduler::Instant ended_;
  bool crashed_ = false;
  bool sync_asked_ = false;
  uint64_t events_ = 0;
  scheduler::Instant armed_ = scheduler::Instant::never();
  scheduler::Instant paused_until_;
  std::vector<uint32_t> failures_;
  std::vector<std::optional<scheduler::Cause>> failed_by_;
};

}  // namespace sluice::engine
