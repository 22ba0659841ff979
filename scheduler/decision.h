// Everything the core decides. The driver turns each into an effect: a message to a worker's agent,
// a journal record, a rename, a line for people. Every decision about an attempt carries its
// number. Values; the caller of Core owns the vector they are appended to. Test:
// tests/scheduler/core_test.cpp
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "scheduler/event.h"
#include "scheduler/resources.h"
#include "scheduler/types.h"

namespace sluice::scheduler {

// Where a saved object goes: results/ (leaf or keep) or objects/ (an intermediate that an orderly
// stop made durable).
enum class Destination : uint8_t { kResults, kObjects };

// Where an attempt finds one of its input objects. `source` is a worker that holds a replica
// (perhaps its own), or none: then the object is durable in the run directory. Values have no
// place: their text travels with the message.
struct InputPlace {
  ObjectId object;
  WorkerId source;
  auto operator<=>(const InputPlace&) const = default;
};

enum class Outcome : uint8_t {
  kAllDone,  // exit 0
  kFailed,   // some instance failed or was skipped because of one: exit 1
  kStopped,  // orderly stop, work is left: exit 4
  kStuck,    // work is left that no worker can run (all suitable workers are lost): exit 4
  kDisk,     // results could not be made durable: exit 3
};

// What an attempt is given: it may grow from one attempt to the next (RetryChange).
struct Grant {
  Resources resources;
  Duration timeout;  // 0: none
  auto operator<=>(const Grant&) const = default;
};

namespace decision {

// -- to a worker's agent
// ---------------------------------------------------------------------------------------------

struct StartAttempt {
  WorkerId worker;
  AttemptId attempt;
  InstanceId instance;
  RequestId request;  // the task's; after a retry with more memory one that the core interned
  Grant grant;        // what that request says, and how long the attempt may take
  std::vector<InputPlace> inputs;  // distinct file and h5 objects, in order of first use
  bool ahead = false;    // more than the worker's slots hold: waits there until one is free
  int32_t priority = 0;  // the task's: what waits at the worker starts in this order, higher first
};
// Give an attempt back if it has not started; else the agent says nothing more than its usual
// reports.
struct TakeBack {
  WorkerId worker;
  AttemptId attempt;
};
// Stop signal, grace, SIGKILL; answered by AttemptStopped, or by Finished/Failed if that came
// first.
struct StopAttempt {
  WorkerId worker;
  AttemptId attempt;
};
// Copy the object's bytes to the run directory under a temporary name made of `save`, fsync, answer
// ObjectSaved.
struct SaveObject {
  WorkerId worker;
  ObjectId object;
  AttemptId save;
  Destination destination = Destination::kResults;
};
// No one needs this replica any more.
struct DropObject {
  WorkerId worker;
  ObjectId object;
};

// -- to rank 0's driver
// ----------------------------------------------------------------------------------------------

// Journal that the object is durable, rename it into place, then answer ObjectCommitted.
struct CommitObject {
  ObjectId object;
  AttemptId save;
  Destination destination = Destination::kResults;
};
// An intermediate in objects/ has no consumer left: remove the file.
struct RemoveSaved {
  ObjectId object;
};
// Journal: this instance is done under this key. Attempt none: its outputs are as the journal says,
// nothing to write; it may still run again, if a result of it was not safe. Comes again when the
// instance was run again for lost bytes; `outputs` then carry the first content ids, while a
// value's text is that of this attempt (the first one stands).
struct InstanceDone {
  InstanceId instance;
  AttemptId attempt;
  Hash128 key;
  std::vector<OutputReport> outputs;
  Usage usage;
  WorkerId worker;
};
// Journal: an attempt ended without success; `final`: no attempt is left, the instance has failed.
struct AttemptEnded {
  InstanceId instance;
  event::AttemptFailed report;
  bool final = false;
  Grant had = {};
  Grant next = {};         // what the next attempt will get; as `had` if there is none
  Duration delay = {};     // before the next attempt
  bool no_larger = false;  // final only because no worker has more memory than it had
  bool elsewhere = false;  // not charged: perhaps the worker is to blame, another one tries it
};
// The instance cannot run because `because` failed or was skipped.
struct InstanceSkipped {
  InstanceId instance;
  InstanceId because;
};
// A worker is silent or back; lost is the driver's own event echoed so that people are told once.
// Set aside: what fails there at once succeeds elsewhere; it gets only what nobody else could run.
enum class WorkerState : uint8_t { kSilent, kAlive, kLost, kSetAside };
struct WorkerChanged {
  WorkerId worker;
  WorkerState state = WorkerState::kAlive;
};
// Nothing new starts from now on, because of the core itself: an instance of a task with
// `on_failure: stop` failed (then running attempts are stopped too), or so many failed that it is
// enough (CoreOptions::failures_max; running attempts finish). `because` is the last that failed.
enum class StopReason : uint8_t { kFailure, kFailuresMax };
struct StopBegan {
  StopReason reason = StopReason::kFailure;
  InstanceId because;
};
// A recomputed output has other bytes than before; the first content id is kept.
struct NotReproducible {
  ObjectId object;
  Hash128 before;
  Hash128 now;
};
// The run has ended; nothing follows. All workers may be told to leave.
struct RunEnded {
  Outcome outcome = Outcome::kAllDone;
};

}  // namespace decision

using Decision = std::variant<decision::StartAttempt, decision::TakeBack, decision::StopAttempt,
                              decision::SaveObject, decision::DropObject, decision::CommitObject,
                              decision::RemoveSaved, decision::InstanceDone, decision::AttemptEnded,
                              decision::InstanceSkipped, decision::WorkerChanged,
                              decision::NotReproducible, decision::RunEnded, decision::StopBegan>;

}  // namespace sluice::scheduler
