// Everything that can happen to the core: its only inputs. Feeding the same events with the same
// `now` gives the same decisions, which is what resume, replay and the simulator rest on. Encoded
// by io/wire.h for messages and the trace. Values; owned by whoever made them. Test:
// tests/scheduler/core_test.cpp
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "scheduler/graph.h"
#include "scheduler/resources.h"
#include "scheduler/types.h"

namespace sluice::scheduler {

// What an attempt used, as the kernel reports it.
struct Usage {
  Duration wall;
  Duration cpu;  // user + system, of the whole process tree that was waited for
  int64_t memory_peak_bytes = 0;
};

struct OutputReport {
  Hash128 content;  // XXH3-128 of the bytes
  int64_t bytes = 0;
  std::string value;  // kValue: the text; else empty. The core does not look at it.
};

namespace event {

// -- from the driver on rank 0
// --------------------------------------------------------------------------------------

// A worker is there. Ids may have gaps and may join late.
struct WorkerJoined {
  WorkerId worker;
  NodeId node;
  Resources resources;
};
// A worker is gone for good (its guard reported it, or the driver's deadline passed): its attempts
// are lost, its replicas too. A worker that was declared lost never comes back; what it still says
// is ignored.
struct WorkerLost {
  WorkerId worker;
};
// The journal says that this instance was done under this key, with these outputs. Before Begin
// only, at most once per instance (the last one wins in the reader). `durable[i]`: output i is
// safely in the run directory (values: always).
struct Restored {
  InstanceId instance;
  Hash128 key;
  std::vector<OutputReport> outputs;
  std::vector<bool> durable;
};
// Only these instances are to run (`instances[i]`: instance i); the others are left out. With an
// instance goes what it reads and what it comes after. Before Begin only, at most once; without it
// all are to run.
struct Selected {
  std::vector<bool> instances;
};
// All facts are in: scheduling may start. Exactly once.
struct Begin {};
// Time has passed: the driver sends it at Core::next_deadline() at the latest.
struct Tick {};
// Orderly stop: nothing new starts, running attempts are stopped, what unsettled instances need is
// made durable.
struct StopRequested {};
// Rank 0 has journalled and renamed what a worker saved: the object is durable.
struct ObjectCommitted {
  ObjectId object;
};
// The records of the first `decisions` decisions (Core::decision_count) are on disk.
struct RecordsSynced {
  uint64_t decisions = 0;
};
struct ObjectCommitFailed {
  ObjectId object;
  std::string reason;
};

// -- reports of a worker
// ---------------------------------------------------------------------------------------------

struct Heartbeat {
  WorkerId worker;
};
struct AttemptStarted {
  WorkerId worker;
  AttemptId attempt;
};
// Success: the outputs were checked, sealed and hashed; outputs[i] is output i of the task.
struct AttemptFinished {
  WorkerId worker;
  AttemptId attempt;
  std::vector<OutputReport> outputs;
  Usage usage;
};
struct AttemptFailed {
  WorkerId worker;
  AttemptId attempt;
  Cause cause = Cause::kExit;
  int32_t exit_code = 0;    // kExit
  int32_t signal = 0;       // kSignal, kTimeout
  std::string detail;       // one line for people
  std::string stderr_tail;  // last lines, at most 2 KiB
  Usage usage;
};
// The attempt never ran: taken back, or an input could not be fetched (then `missing` names it), or
// the worker is stopping. Not a failure and not charged.
struct AttemptReturned {
  WorkerId worker;
  AttemptId attempt;
  ObjectId missing;
  WorkerId source = {};  // where the missing one was said to be; none: in the run directory
};
// The attempt was stopped because the core asked (StopAttempt). Not charged.
struct AttemptStopped {
  WorkerId worker;
  AttemptId attempt;
  Usage usage;
};
// The worker's store now holds a copy (it fetched an input). Objects that AttemptFinished reports
// are held implicitly.
struct ReplicaAdded {
  WorkerId worker;
  ObjectId object;
};
// The worker found that it does not hold the object after all (the file is gone or unreadable).
struct ReplicaLost {
  WorkerId worker;
  ObjectId object;
};
// Answer to SaveObject: the bytes are fsynced under the agreed temporary name in the run directory.
struct ObjectSaved {
  WorkerId worker;
  ObjectId object;
  AttemptId save;  // the number that SaveObject carried
};
struct ObjectSaveFailed {
  WorkerId worker;
  ObjectId object;
  AttemptId save;
  std::string reason;
};

}  // namespace event

using Event =
    std::variant<event::WorkerJoined, event::WorkerLost, event::Restored, event::Begin, event::Tick,
                 event::StopRequested, event::ObjectCommitted, event::ObjectCommitFailed,
                 event::Heartbeat, event::AttemptStarted, event::AttemptFinished,
                 event::AttemptFailed, event::AttemptReturned, event::AttemptStopped,
                 event::ReplicaAdded, event::ReplicaLost, event::ObjectSaved,
                 event::ObjectSaveFailed, event::RecordsSynced, event::Selected>;

}  // namespace sluice::scheduler
