// The core: all that rank 0 decides, as a pure machine. No clock, no files, no threads, no
// messages.
//
//   driver --- apply(now, event) ---> state changes, consequences appended to `out`
//   driver --- schedule(now) -------> chooses what starts where, appended to `out`, once per batch
//   of events
//
// **Life of an instance.** Waiting (a producer's content ids are unknown) -> its key is computed
// the moment all of them are known -> the key equals the restored one: Done without running -> else
// it *demands* its inputs' bytes: Blocked until every input object has a replica or is durable, and
// until all that it comes after have been done once (scheduler/gates.h) ->
// Ready (queued by request) -> Assigned (sent to a worker, perhaps ahead) -> Running -> Done | back
// to Ready (retry, lost worker) | Failed; consumers of a failed one: Skipped. A Done instance goes
// back to running only if an output's bytes are gone and someone demands them, or a result of it is
// not durable: so what runs is exactly what an unfinished consumer needs (design §4, Promise).
//
// **Selection.** An instance that is not selected (event::Selected) never runs: it is Done if the
// journal knows it under its key with all its results, else LeftOut. What selected instances made
// and those that were left out read is saved at the end, as for unfinished ones.
//
// **Life of an object.** Unknown -> Sealed (content id known; replicas, or durable, or lost) ->
// idle once every consumer is Done and none of them will have to run again for outputs of its own
// that are gone -> dropped everywhere once the records of all that made it idle are on disk
// (RecordsSynced); until then its replicas count, and an instance that must run again finds them.
// A result is saved by a worker that holds it, then committed by
// rank 0; a result counts as done only then. Failed and skipped consumers keep their inputs: at the
// end of a run that leaves work (failed or stopped), inputs that unfinished instances need are
// saved to objects/, costliest first, before RunEnded.
//
// **Workers.** Attempts in slots are bounded by the worker's resources; one more per slot may be
// sent ahead, and of short ones as many as cover a round trip (core_ahead.cpp). They hold their
// limits from then on, wait at the worker in order of priority, and are taken back when another
// worker could run them now and nothing else is ready. Silent for 3 s: no new work; silent for
// 30 s: lost; time in which the driver itself was not there does not count. Lost attempts are free
// until an instance has lost kLostAttemptsMax. A worker where everything fails at once while it
// succeeds elsewhere is set aside (core_doubt.cpp).
//
// Order of choice: priority, then upward rank (longest first), then instance id. Worker: most input
// bytes held, then best fit (fewest free cores left), then lowest id. Ready instances are queued
// per request, so a request that fits nowhere is skipped in one step, whatever the length of its
// queue.
//
// One owner, one thread. Test: tests/scheduler/core_test.cpp, tests/sim/
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "scheduler/decision.h"
#include "scheduler/event.h"
#include "scheduler/graph.h"
#include "scheduler/options.h"

namespace sluice::scheduler {

enum class InstanceState : uint8_t {
  kWaiting,
  kBlocked,
  kReady,
  kAssigned,
  kRunning,
  kDone,
  kFailed,
  kSkipped,
  kLeftOut,  // not selected, and not known to be done
};
constexpr size_t kInstanceStateCount = 9;

struct Counts {
  size_t waiting = 0, blocked = 0, ready = 0, assigned = 0, running = 0, done = 0, failed = 0,
         skipped = 0, left_out = 0;
  size_t restored = 0;         // of done: taken from the journal without running in this submission
  size_t results_pending = 0;  // results that are not durable yet
};

class Core {
 public:
  // The graph must outlive the core.
  Core(const Graph& graph, const CoreOptions& options);
  ~Core();
  Core(Core&&) noexcept;
  Core& operator=(Core&&) noexcept;

  void apply(Instant now, const Event& event, std::vector<Decision>& out);
  void schedule(Instant now, std::vector<Decision>& out);
  // When Tick must come at the latest; Instant::never() if time changes nothing.
  [[nodiscard]] Instant next_deadline() const;
  [[nodiscard]] bool ended() const;
  // Decisions so far; what RecordsSynced refers to.
  [[nodiscard]] uint64_t decision_count() const;
  // Things looked at so far in order to decide: what a test bounds where time would tell nothing.
  [[nodiscard]] uint64_t steps() const;
  // Something will happen at the next RecordsSynced that covers decision_count().
  [[nodiscard]] bool waits_for_sync() const;

  // Everybody who runs something has as much waiting there: nobody needs a message at once.
  [[nodiscard]] bool workers_supplied() const;

  // -- queries, for status, why, progress and tests --
  [[nodiscard]] Counts counts() const;
  [[nodiscard]] InstanceState state(InstanceId instance) const;
  [[nodiscard]] Hash128 key(InstanceId instance) const;  // unknown while a producer's content is
  [[nodiscard]] Hash128 content(ObjectId object) const;  // unknown before it was first sealed
  [[nodiscard]] AttemptId current_attempt(InstanceId instance) const;
  [[nodiscard]] WorkerId worker_of(InstanceId instance) const;  // of the current attempt
  [[nodiscard]] bool durable(ObjectId object) const;
  [[nodiscard]] std::vector<WorkerId> replicas(ObjectId object) const;
  // Instances whose request no joined, living worker could ever meet, with the request's worst
  // shortfall; empty when there is none. The driver asks once all workers have joined.
  [[nodiscard]] std::vector<InstanceId> impossible() const;

  // Hash of all decisions so far: the same events give the same digest.
  [[nodiscard]] uint64_t digest() const;
  // Asserts what must always hold: no slot given twice, no instance done twice, no dependant before
  // its inputs are sealed, counters equal recounts. Costs O(graph); for tests and simulation after
  // every event.
  void check_invariants() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::scheduler
