// The agent: all that a worker decides, as a pure machine. It owns the worker's cores, so it alone
// turns "4 cores" into core numbers, and it never runs more than it owns whatever the core
// believes. It also knows which objects are in the worker's store, so each is fetched once.
//
//   worker_rank --- apply(now, input) ---> effects to carry out, reports to send
//
// **Life of an attempt here.** Queued (by priority, then arrival; inputs are fetched while it
// waits) -> all inputs present: Staging (its directory is made) -> Staged -> the first queued
// attempts whose request fits get concrete cores, in order (a staged attempt that does not fit yet
// is not overtaken; one that waits for its inputs is) -> Launching/Running -> exited 0: Checking
// (outputs verified, sealed, hashed) -> AttemptFinished; the cores are free again as soon as the
// process is gone, not after the check. A timeout sends the stop signal, then SIGKILL after the
// task's grace.
//
// **Part of an object.** What an attempt reads only a part of need not come whole: the part is
// brought for that attempt alone, is no replica, and goes with it. Where the object is held, or on
// its way for somebody else, that serves; where its source cannot make the part, all of it is
// fetched.
//
// **Life of an object here.** Fetched, or checked as an output -> held -> removed when the core
// drops it, but not before the last live attempt that reads it and the last save of it have ended.
// A durable file used in place is never held.
//
// One owner, one thread. Test: tests/scheduler/agent_test.cpp
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "scheduler/decision.h"
#include "scheduler/event.h"
#include "scheduler/slots.h"

namespace sluice::scheduler {

namespace input {

// -- from rank 0
// -----------------------------------------------------------------------------------------------------
struct Start {
  decision::StartAttempt decision;
  Resources request;
  Duration timeout;  // 0: none
  Duration grace;
  std::vector<OutputKind> outputs;
  // Of output 0; those of an instance are contiguous. The agent holds the file and h5 ones as soon
  // as they are checked.
  ObjectId first_object;
  // Parallel to decision.inputs where it is not empty: of that one only a part is read.
  std::vector<bool> partial = {};
};
struct TakeBack {
  AttemptId attempt;
};
struct Stop {
  AttemptId attempt;
};
struct Save {
  ObjectId object;
  AttemptId save;
  Destination destination = Destination::kResults;
};
struct Drop {
  ObjectId object;
};
// The run has ended: kill what runs, give everything back, then effect::Leave.
struct Leave {};

// -- from this worker's own effects
// ----------------------------------------------------------------------------------
struct Fetched {
  ObjectId object;
};
struct FetchFailed {
  ObjectId object;
  std::string reason;
};
struct PartFetched {
  AttemptId attempt;
  ObjectId object;
};
struct PartFailed {
  AttemptId attempt;
  ObjectId object;
  bool source_lost = false;  // else the source may still have the whole of it
};
// A held object is not what it was any more: something removed it or wrote to it. Who has not
// started yet is given back; who reads it now keeps it until its end.
struct ObjectLost {
  ObjectId object;
};
struct Staged {
  AttemptId attempt;
};
struct StageFailed {
  AttemptId attempt;
  Cause cause = Cause::kStaging;  // or kDisk
  std::string reason;
};
// The process could not be started (no such program, not executable, no processes left).
struct StartFailed {
  AttemptId attempt;
  std::string reason;
};
struct Exited {
  AttemptId attempt;
  int32_t exit_code = 0;
  int32_t signal = 0;  // 0: exited by itself
  Usage usage;
  std::string stderr_tail;
  bool memory_ran_out = false;  // the kernel killed something on this node for want of it meanwhile
  bool in_setup = false;        // it ended before its command could start: cause setup
  std::string note = {};        // what else the driver can tell of a failure, for its detail
};
// Every output was verified, sealed and hashed.
struct Checked {
  AttemptId attempt;
  std::vector<OutputReport> outputs;
};
struct CheckFailed {
  AttemptId attempt;
  Cause cause = Cause::kOutput;  // or kDisk
  std::string reason;
};
struct Saved {
  ObjectId object;
  AttemptId save;
};
struct SaveFailed {
  ObjectId object;
  AttemptId save;
  std::string reason;
};
struct Tick {};

}  // namespace input

using AgentInput =
    std::variant<input::Start, input::TakeBack, input::Stop, input::Save, input::Drop, input::Leave,
                 input::Fetched, input::FetchFailed, input::PartFetched, input::PartFailed,
                 input::ObjectLost, input::Staged, input::StageFailed, input::StartFailed,
                 input::Exited, input::Checked, input::CheckFailed, input::Saved, input::SaveFailed,
                 input::Tick>;

namespace effect {

// Bring the object into this worker's store; from a worker (perhaps on this node: hard link) or, if
// `source` is none, use the durable file in the run directory in place. Answer Fetched or
// FetchFailed.
struct Fetch {
  ObjectId object;
  WorkerId source;
};
// Bring what the attempt reads of the object, for it alone. Answer PartFetched or PartFailed,
// unless the attempt is cleaned before.
struct FetchPart {
  AttemptId attempt;
  ObjectId object;
  WorkerId source;
};
// Make the attempt's directory with its inputs linked. Answer Staged or StageFailed.
struct Stage {
  AttemptId attempt;
};
// Start the process on these cores. Answer StartFailed or Exited.
struct Launch {
  AttemptId attempt;
  std::vector<int32_t> cores;  // indexes into the worker's core list
};
struct Signal {
  AttemptId attempt;
  bool kill = false;  // false: the stop signal (SIGTERM to the process group); true: SIGKILL to
                      // every descendant
};
// Verify, seal and hash the outputs. Answer Checked or CheckFailed.
struct Check {
  AttemptId attempt;
};
// The attempt is over here: its directory, if it has one yet, may go (`failed`: keep a copy for
// people). Exactly once for every Start.
struct Clean {
  AttemptId attempt;
  bool failed = false;
};
struct SaveObject {
  ObjectId object;
  AttemptId save;
  Destination destination = Destination::kResults;
};
struct RemoveObject {
  ObjectId object;
};
struct Report {
  Event event;  // to rank 0's core
};
// Nothing is left here: the worker may end.
struct Left {};

}  // namespace effect

using Effect = std::variant<effect::Fetch, effect::FetchPart, effect::Stage, effect::Launch,
                            effect::Signal, effect::Check, effect::Clean, effect::SaveObject,
                            effect::RemoveObject, effect::Report, effect::Left>;

struct AgentOptions {
  WorkerId worker;
  Resources resources;
  Duration heartbeat = milliseconds(500);
};

class Agent {
 public:
  explicit Agent(const AgentOptions& options);
  ~Agent();
  Agent(Agent&&) noexcept;
  Agent& operator=(Agent&&) noexcept;

  void apply(Instant now, const AgentInput& input, std::vector<Effect>& out);
  // When Tick must come at the latest (timeouts, kill after grace, heartbeats).
  [[nodiscard]] Instant next_deadline() const;
  [[nodiscard]] size_t attempts() const;  // known and not reported yet
  [[nodiscard]] size_t running() const;
  [[nodiscard]] bool supplied() const;  // as many attempts wait here as run: no word is urgent
  [[nodiscard]] const Slots& slots() const;
  void check_invariants() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::scheduler
