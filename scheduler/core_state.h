// The core's state, private to the core_*.cpp files. Which file holds what:
//
//   core.cpp             the public face: apply's dispatch, queries
//   core_instances.cpp   what becomes of an instance: key, demand, ready, retry, failed, skipped
//   core_workers.cpp     what workers report: attempts, replicas, signs of life, loss
//   core_results.cpp     publishing results, dropping objects, the stop, the end
//   core_schedule.cpp    who starts where, ahead, taking back
//   core_invariants.cpp  recounts
//
// Every handler changes state at once and leaves consequences in `changes`; drain() works them off
// one by one, so that nothing recurses however long a chain is. Test: tests/scheduler/core_test.cpp
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "scheduler/core.h"
#include "scheduler/digest.h"
#include "scheduler/objects.h"

namespace sluice::scheduler {

struct Core::State {
  State(const Graph& graph_, const CoreOptions& options_);

  // ---- data ----

  struct InstanceRecord {
    Hash128 key;         // once all inputs' contents are known
    AttemptId attempt;   // current
    Duration wall;       // of the last attempt that succeeded: what its objects cost to make again
    uint32_t order = 0;  // place in start_order
    InstanceState state = InstanceState::kWaiting;
    bool sealed : 1 = false;     // its outputs' contents are known
    bool ran : 1 = false;        // an attempt succeeded in this submission
    bool demanding : 1 = false;  // it demands its inputs
    bool closed : 1 = false;     // done, and no one will need an output that is gone
    bool queued : 1 = false;     // it has an entry in its request's queue
    uint8_t missing_returns = 0;
    std::array<uint8_t, kCauseCount> charged{};  // attempts that ended so
  };

  // What the journal knew of an instance, until its key is computed.
  struct Prior {
    Hash128 key;
    std::vector<OutputReport> outputs;
    std::vector<bool> durable;
  };

  struct TaskRecord {
    uint32_t failures = 0;
    uint32_t successes = 0;
    InstanceId last_failed;
    bool held = false;  // only failures so far, and too many: nothing of it starts any more
  };

  struct WorkerRecord {
    bool joined = false;
    bool lost = false;
    bool silent = false;
    bool closing = false;  // it gave work back unasked: it is about to leave
    uint32_t node = 0;     // dense
    Resources total;
    Resources free;      // total less the attempts in slots
    Resources promised;  // to attempts that are being taken back elsewhere to run here
    Instant heard;
    std::vector<AttemptId> slots;
    std::vector<AttemptId> ahead;  // in the order sent, which is the order in which they get slots
    [[nodiscard]] bool alive() const { return joined && !lost && !closing; }
    [[nodiscard]] bool accepts() const { return alive() && !silent; }
  };

  // An attempt that a worker has not answered for yet.
  struct Flight {
    InstanceId instance;
    WorkerId worker;
    RequestId request;
    bool ahead = false;
    bool running = false;
    bool taken_back = false;
    bool stopping = false;
    WorkerId wanted_by;  // taken back to run there
    std::vector<InputPlace> places;
  };
  using FlightEntry = std::pair<AttemptId, Flight>;

  struct ReadyQueue {
    std::vector<uint32_t> heap;  // of places in start_order; may hold instances no longer ready
    size_t ready = 0;
  };

  struct Save {
    AttemptId number;
    WorkerId worker;
    Destination destination = Destination::kResults;
    uint8_t failures = 0;
    bool active = false;      // an answer is awaited
    bool committing = false;  // the bytes are in the run directory, rank 0 renames
    bool given_up = false;
  };

  enum class Stop : uint8_t { kNo, kAsked, kFailure };

  const Graph& graph;
  CoreOptions options;
  std::vector<Change> changes;
  Objects objects;
  std::vector<InstanceRecord> instances;
  std::vector<InstanceId> start_order;
  std::vector<std::unique_ptr<Prior>> priors;  // per instance; emptied when its key is known
  std::vector<TaskRecord> tasks;
  std::vector<WorkerRecord> workers;  // gaps: not joined
  std::vector<NodeId> nodes;          // index: WorkerRecord::node
  std::vector<ReadyQueue> queues;     // per request
  std::vector<Amount> limits_free;
  std::map<AttemptId, Flight> flights;
  std::map<ObjectId, Save> saves;  // under way, or with failures
  size_t saves_active = 0;
  std::map<ObjectId, uint64_t> idle;  // to be dropped once so many decisions' records are on disk
  std::vector<InstanceId> attempt_instance;  // index: attempt number - 1; none: it was a save
  std::array<size_t, 8> state_counts{};
  size_t restored_count = 0;
  Instant now;
  Stop stop = Stop::kNo;
  bool begun = false;
  bool ended = false;
  bool any_joined = false;
  bool failure_counts = false;  // a task that does not ignore failures has one
  Digest digest;
  uint64_t decision_count = 0;
  std::vector<Decision>* out = nullptr;
  // Scratch of schedule().
  std::vector<uint32_t> object_marks;
  uint32_t mark = 0;
  std::vector<int64_t> bytes_on_node;

  // ---- small helpers ----

  template <class D>
  void emit(D decision) {
    out->emplace_back(std::move(decision));
    digest.add(out->back());
    ++decision_count;
  }
  InstanceRecord& at(InstanceId id) { return instances[id.index()]; }
  [[nodiscard]] const InstanceRecord& at(InstanceId id) const { return instances[id.index()]; }
  WorkerRecord& at(WorkerId id) { return workers[id.index()]; }
  TaskRecord& task_of(InstanceId id) { return tasks[graph.task_of(id).index()]; }
  [[nodiscard]] const TaskSpec& spec_of(InstanceId id) const {
    return graph.task(graph.task_of(id));
  }
  [[nodiscard]] const Request& request_of(RequestId id) const { return graph.requests()[id]; }
  AttemptId new_attempt(InstanceId instance);  // none: a save

  // ---- core.cpp ----

  void dispatch(const Event& event);
  bool heard_from(WorkerId worker);  // false: its word does not count
  template <class E>
  void on_worker_event(const E& report);
  void on(const event::WorkerJoined& joined);
  void on(const event::WorkerLost& lost);
  void on(const event::Restored& restored);
  void on(const event::Begin& begin);
  void on(const event::Tick& tick);
  void on(const event::StopRequested& stop_requested);
  void on(const event::ObjectCommitted& committed);
  void on(const event::ObjectCommitFailed& failed);
  void on(const event::Heartbeat& heartbeat);
  void on(const event::AttemptStarted& started);
  void on(const event::AttemptFinished& finished);
  void on(const event::AttemptFailed& failed);
  void on(const event::AttemptReturned& returned);
  void on(const event::AttemptStopped& stopped);
  void on(const event::ReplicaAdded& added);
  void on(const event::ReplicaLost& lost);
  void on(const event::ObjectSaved& saved);
  void on(const event::ObjectSaveFailed& failed);
  void on(const event::RecordsSynced& synced);

  // ---- core_instances.cpp ----

  void drain();
  void handle(const Change& change);
  void set_state(InstanceId instance, InstanceState state);
  void resolve(InstanceId instance);
  void restore(InstanceId instance, const Prior& prior);
  [[nodiscard]] bool wanted(InstanceId instance) const;
  [[nodiscard]] bool saved_elsewhere(ObjectId object) const;
  void demand(InstanceId instance);
  void release(InstanceId instance);
  void settle(InstanceId instance);
  void make_ready(InstanceId instance);
  void review_closed(InstanceId instance);
  void run_again(InstanceId instance);
  void back_to_done(InstanceId instance);
  void requeue(InstanceId instance);
  void charge(InstanceId instance, event::AttemptFailed report);
  [[nodiscard]] bool may_retry(InstanceId instance, const event::AttemptFailed& report) const;
  void fail(InstanceId instance);
  void hold(TaskId task);
  void skip(InstanceId instance, InstanceId because);

  // ---- core_workers.cpp ----

  std::map<AttemptId, Flight>::iterator find_flight(WorkerId worker, AttemptId attempt);
  FlightEntry end_flight(std::map<AttemptId, Flight>::iterator at);
  void free_slot(AttemptId attempt, const Flight& flight);
  void promote(WorkerId worker);
  void unpromise(Flight& flight);
  void take_output(ObjectId object, OutputReport& report, WorkerId worker);
  void drop_late_outputs(const event::AttemptFinished& finished);
  void input_missing(const Flight& flight, ObjectId object);
  void replica_lost(ObjectId object, WorkerId worker);
  void lose_worker(WorkerId worker);

  // ---- core_results.cpp ----

  void publish(ObjectId object);
  void start_save(ObjectId object, Destination destination);
  [[nodiscard]] WorkerId save_holder(ObjectId object, const Save& save) const;
  void save_failed(ObjectId object, Save& save);
  void interrupt_save(ObjectId object, WorkerId worker);
  [[nodiscard]] bool useless(ObjectId object) const;
  void review_idle(ObjectId object);
  void drop_idle(uint64_t decisions);
  void drop(ObjectId object);
  void begin_stop(Stop reason);
  void stop_flight(AttemptId attempt, Flight& flight);
  void check_end();
  void spill();
  [[nodiscard]] bool all_done() const;
  [[nodiscard]] bool work_can_start() const;
  [[nodiscard]] bool fits_ever(RequestId request) const;
  [[nodiscard]] Outcome outcome() const;
  [[nodiscard]] size_t unfinished() const;

  // ---- core_schedule.cpp ----

  void schedule();
  template <class Choose>
  void dispatch_ready(const Choose& choose);
  InstanceId queue_head(ReadyQueue& queue);
  [[nodiscard]] bool limits_fit(const Request& request) const;
  WorkerId choose_for_slot(RequestId request, InstanceId instance);
  WorkerId choose_for_ahead(RequestId request, InstanceId instance);
  template <class Better>
  WorkerId choose_best(const std::vector<WorkerId>& candidates, InstanceId instance,
                       const Better& better);
  void tally_bytes(InstanceId instance);
  void start(InstanceId instance, RequestId request, WorkerId worker, bool ahead);
  std::vector<InputPlace> input_places(InstanceId instance, AttemptId attempt, WorkerId worker);
  [[nodiscard]] WorkerId choose_source(ObjectId object, AttemptId attempt, WorkerId worker) const;
  void take_back_for_idle();
  AttemptId find_take_back(const std::vector<WorkerId>& donors, const Resources& room);

  // ---- core_invariants.cpp ----

  void check_invariants() const;
  void check_instance(InstanceId instance) const;
  void check_flights() const;
  void check_worker(WorkerId worker) const;
  void check_queues() const;
};

}  // namespace sluice::scheduler
