// The core's state, private to the core_*.cpp files. Which file holds what:
//
//   core.cpp             the public face: apply's dispatch, queries
//   core_instances.cpp   what becomes of an instance: key, demand, ready, failed, skipped
//   core_retry.cpp       another attempt or failure, and what the next attempt gets
//   core_doubt.cpp       is the attempt to blame, or its worker?
//   core_workers.cpp     what workers report: attempts, replicas, signs of life, loss
//   core_results.cpp     publishing results, dropping objects, the stop, the end
//   core_schedule.cpp    who starts where
//   core_ahead.cpp       what is sent ahead, how much, what is taken back
//   core_invariants.cpp  recounts
//
// Every handler changes state at once and leaves consequences in `changes`; drain() works them off
// one by one, so that nothing recurses however long a chain is. Test: tests/scheduler/core_test.cpp
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "scheduler/core.h"
#include "scheduler/digest.h"
#include "scheduler/gates.h"
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
    bool escalated : 1 = false;  // its next attempt gets other than its task says: `escalations`
    bool delayed : 1 = false;    // it waits for the time of its next attempt: `delayed`
    bool avoiding : 1 = false;   // another worker is to try it: `avoided`
  };

  // What went wrong with an instance. Few have any, so it is not part of their records.
  struct Troubles {
    uint8_t missing_returns = 0;                 // in a row: an input could not be fetched
    uint8_t opinions = 0;                        // attempts that were not charged to it
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
    uint32_t failed_elsewhere = 0;     // what failed at once on one worker did so on another
    uint32_t succeeded_elsewhere = 0;  // or did not
    Duration typical;                  // of recent attempts that succeeded; 0: none did
    bool held = false;  // only failures so far, and too many: nothing of it starts any more
  };

  struct WorkerRecord {
    bool joined = false;
    bool lost = false;
    bool silent = false;
    bool suspect = false;         // too many quick failures in a row: gets no new work for now
    bool set_aside = false;       // and they were its own
    uint32_t quick_failures = 0;  // in a row
    uint32_t proofs = 0;          // what failed here succeeded elsewhere
    bool closing = false;         // it gave work back unasked: it is about to leave
    uint32_t node = 0;            // dense
    Resources total;
    Resources free;      // total less the attempts in slots
    Resources promised;  // to attempts that are being taken back elsewhere to run here
    Instant heard;
    std::vector<AttemptId> slots;
    std::vector<AttemptId> ahead;  // in the order in which they get slots: by priority, then sent
    int64_t ahead_load = 0;        // of `ahead`: the sum of Flight::load
    Instant turned;                // when an attempt last got a slot or left one
    [[nodiscard]] bool alive() const { return joined && !lost && !closing; }
    [[nodiscard]] bool accepts() const { return alive() && !silent; }
    [[nodiscard]] bool doubted() const { return suspect || set_aside; }
  };

  // What an instance's next attempt gets after a retry that changed it.
  struct Escalation {
    RequestId request;
    Duration timeout;
  };

  // An attempt that a worker has not answered for yet.
  struct Flight {
    InstanceId instance;
    WorkerId worker;
    RequestId request;
    Duration timeout;
    bool ahead = false;
    bool running = false;
    bool taken_back = false;
    bool stopping = false;
    WorkerId wanted_by;  // taken back to run there
    int64_t load = 0;    // ahead: what it was expected to take, us × cores
  };
  // A worker with attempts ahead; of the first `left` of them some can perhaps be taken back.
  struct Donor {
    WorkerId worker;
    size_t left = 0;
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

  // Ordered: a later one replaces an earlier one, but for the last two.
  enum class Stop : uint8_t { kNo, kFailuresMax, kAsked, kFailure };

  const Graph& graph;
  CoreOptions options;
  std::vector<Change> changes;
  Objects objects;
  Gates gates;
  RequestTable requests;  // the graph's, then those of escalations
  std::vector<InstanceRecord> instances;
  std::map<InstanceId, Troubles> troubles;
  std::map<InstanceId, Escalation> escalations;
  std::map<InstanceId, WorkerId> avoided;
  std::set<std::pair<Instant, InstanceId>> delayed;  // blocked until then
  std::map<InstanceId, Instant> delayed_until;       // the same
  std::vector<InstanceId> start_order;
  std::map<InstanceId, Prior> priors;  // until the instance's key is known
  std::vector<TaskRecord> tasks;
  std::vector<WorkerRecord> workers;  // gaps: not joined
  std::vector<NodeId> nodes;          // index: WorkerRecord::node
  std::vector<ReadyQueue> queues;     // two per request: see queue_of
  std::vector<Amount> limits_free;
  std::map<AttemptId, Flight> flights;
  std::set<AttemptId> limited_ahead;  // of those ahead the ones that use limits
  std::map<ObjectId, Save> saves;     // under way, or with failures
  size_t saves_active = 0;
  std::map<ObjectId, uint64_t> idle;  // to be dropped once so many decisions' records are on disk
  std::vector<InstanceId> attempt_instance;  // index: attempt number - 1; none: it was a save
  std::array<size_t, kInstanceStateCount> state_counts{};
  size_t restored_count = 0;
  Instant now;
  Stop stop = Stop::kNo;
  bool begun = false;
  bool ended = false;
  bool any_joined = false;
  size_t failures = 0;  // failed instances of tasks that do not ignore failures
  Digest digest;
  uint64_t decision_count = 0;
  uint64_t steps = 0;       // things looked at to decide: what tests bound instead of time
  size_t surplus_turn = 0;  // counts whose surplus ahead is looked at next
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
  [[nodiscard]] const Request& request_of(RequestId id) const { return requests[id]; }
  [[nodiscard]] RequestId request_of(InstanceId id) const {
    return at(id).escalated ? escalations.at(id).request : spec_of(id).request;
  }
  // What avoids a worker waits apart, so that it holds up nobody who does not.
  [[nodiscard]] size_t queue_of(InstanceId id) const {
    return 2 * request_of(id).index() + (at(id).avoiding ? 1 : 0);
  }
  [[nodiscard]] static RequestId queue_request(size_t queue) { return RequestId(queue / 2); }
  [[nodiscard]] Duration timeout_of(InstanceId id) const {
    return at(id).escalated ? escalations.at(id).timeout : spec_of(id).timeout;
  }
  AttemptId new_attempt(InstanceId instance);  // none: a save

  // ---- core.cpp ----

  void advance(Instant given);
  void dispatch(const Event& event);
  bool heard_from(WorkerId worker);  // false: its word does not count
  template <class E>
  void on_worker_event(const E& report);
  void on(const event::WorkerJoined& joined);
  void on(const event::WorkerLost& lost);
  void on(const event::Restored& restored);
  void on(const event::Selected& selected);
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
  [[nodiscard]] bool matches(InstanceId instance, const Prior& prior) const;
  void resolve_left_out(InstanceId instance);
  std::optional<Prior> take_prior(InstanceId instance);
  void restore(InstanceId instance, const Prior& prior);
  [[nodiscard]] bool wanted(InstanceId instance) const;
  [[nodiscard]] bool saved_elsewhere(ObjectId object) const;
  void demand(InstanceId instance);
  void release(InstanceId instance);
  [[nodiscard]] bool startable(InstanceId instance) const;
  [[nodiscard]] InstanceId obstacle(InstanceId instance) const;
  void settle(InstanceId instance);
  void make_ready(InstanceId instance);
  void review_closed(InstanceId instance);
  void run_again(InstanceId instance);
  void back_to_done(InstanceId instance);
  void requeue(InstanceId instance);
  void fail(InstanceId instance);
  void hold(TaskId task);
  void skip(InstanceId instance, InstanceId because);

  // ---- core_retry.cpp ----

  void charge(const Flight& flight, event::AttemptFailed report);
  [[nodiscard]] bool may_retry(InstanceId instance, const event::AttemptFailed& report) const;
  [[nodiscard]] bool plan_next(decision::AttemptEnded& over) const;
  [[nodiscard]] int64_t most_memory(int32_t cpus) const;
  void escalate(const decision::AttemptEnded& over);
  void end_delays();

  // ---- core_doubt.cpp ----

  bool doubt_worker(const Flight& flight, const event::AttemptFailed& report);
  void hear_success(const Flight& flight);
  void hear_quick_failure(const Flight& flight);
  void suspect(WorkerId worker);
  void set_aside(WorkerId worker);
  void stop_avoiding(InstanceId instance);
  [[nodiscard]] WorkerId avoided_by(InstanceId instance) const;
  [[nodiscard]] bool sound_elsewhere(const Flight& flight) const;
  [[nodiscard]] bool fits_elsewhere(WorkerId worker, RequestId request) const;
  [[nodiscard]] bool may_get(WorkerId worker, InstanceId instance, RequestId request) const;

  // ---- core_workers.cpp ----

  std::map<AttemptId, Flight>::iterator find_flight(WorkerId worker, AttemptId attempt);
  FlightEntry end_flight(std::map<AttemptId, Flight>::iterator at);
  void free_slot(AttemptId attempt, const Flight& flight);
  void leave_ahead(AttemptId attempt, const Flight& flight);
  void promote(WorkerId worker);
  void unpromise(Flight& flight);
  void take_output(ObjectId object, OutputReport& report, WorkerId worker);
  void drop_late_outputs(const event::AttemptFinished& finished);
  [[nodiscard]] bool reads(InstanceId instance, ObjectId object) const;
  void input_missing(const Flight& flight, const event::AttemptReturned& returned);
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
  void begin_stop(Stop reason, InstanceId because = {});
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
  using Better = std::function<bool(const WorkerRecord&, const WorkerRecord&)>;
  WorkerId choose_best(const std::vector<WorkerId>& candidates, InstanceId instance,
                       const Better& better);
  void tally_bytes(InstanceId instance);
  void start(InstanceId instance, RequestId request, WorkerId worker, bool ahead);
  std::vector<InputPlace> input_places(InstanceId instance, AttemptId attempt, WorkerId worker);
  [[nodiscard]] WorkerId choose_source(ObjectId object, AttemptId attempt, WorkerId worker) const;

  // ---- core_ahead.cpp ----

  void learn_duration(InstanceId instance, Duration wall);
  [[nodiscard]] Duration typical_duration(InstanceId instance) const;
  [[nodiscard]] size_t depth(Duration typical) const;
  [[nodiscard]] static size_t slots_for(const WorkerRecord& worker, const Request& request);
  [[nodiscard]] bool stalled(const WorkerRecord& worker) const;
  [[nodiscard]] int32_t priority_of(AttemptId attempt) const;
  [[nodiscard]] size_t ahead_before(const WorkerRecord& worker, int32_t priority) const;
  [[nodiscard]] int64_t load_of(InstanceId instance, RequestId request) const;
  [[nodiscard]] bool has_room_ahead(const WorkerRecord& worker, InstanceId instance,
                                    RequestId request) const;
  WorkerId choose_for_ahead(RequestId request, InstanceId instance);
  void take_back(AttemptId attempt, Flight& flight);
  void take_back_ahead();
  void take_back_surplus(const WorkerRecord& worker);
  void take_back_for_limit(const Request& request, int32_t priority);
  void take_back_for_idle(std::vector<Donor>& donors);
  AttemptId find_take_back(std::vector<Donor>& donors, WorkerId taker, const Resources& room);

  // ---- core_invariants.cpp ----

  void check_invariants() const;
  void check_instance(InstanceId instance) const;
  void check_flights() const;
  void check_worker(WorkerId worker) const;
  void check_queues() const;
};

}  // namespace sluice::scheduler
