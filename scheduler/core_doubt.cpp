// Is the attempt to blame, or its worker? A node with a full disk or a missing mount fails whatever
// it is given, and being free again at once it gets ever more.
//
// A failure within kQuick is *quick*. From a worker's second in a row on, if a worker without any
// is there to try the same, it does, and the first failure is not charged (at most kOpinionsMax
// times per instance). After `quick_failures_max` in a row the worker is *suspect*: it gets no new
// work until one of these second opinions is in. If what failed there succeeds elsewhere, it is set
// aside for the rest of the run and named; if it fails elsewhere too, the worker is clear, and when
// that is so more often than not for a task, its failures say nothing about workers any more.
//
// So a task that fails everywhere blames nobody, and a doubted worker still gets what no other
// worker could run: the last one is never set aside.
#include <algorithm>

#include "scheduler/core_state.h"

namespace sluice::scheduler {

namespace {

constexpr Duration kQuick = seconds(1);
constexpr uint8_t kOpinionsMax = 3;

bool is_quick(const event::AttemptFailed& report) {
  switch (report.cause) {
    case Cause::kExit:
    case Cause::kSignal:
    case Cause::kOutput:
    case Cause::kSetup:
    case Cause::kStart:
    case Cause::kStaging:
    case Cause::kDisk:
      return report.usage.wall < kQuick;
    case Cause::kTimeout:
    case Cause::kOom:
    case Cause::kLost:
      break;
  }
  return false;
}

}  // namespace

// True: the failure is not charged, another worker tries.
bool Core::State::doubt_worker(const Flight& flight, const event::AttemptFailed& report) {
  if (options.quick_failures_max == 0) {
    return false;
  }
  WorkerRecord& worker = at(flight.worker);
  InstanceRecord& record = at(flight.instance);
  if (!is_quick(report)) {
    worker.quick_failures = 0;
    stop_avoiding(flight.instance);
    return false;
  }
  if (record.avoiding && avoided_by(flight.instance) != flight.worker) {
    hear_quick_failure(flight);
    return false;
  }
  const TaskRecord& task = task_of(flight.instance);
  if (task.failed_elsewhere > task.succeeded_elsewhere) {
    return false;
  }
  ++worker.quick_failures;
  uint8_t& opinions = troubles[flight.instance].opinions;
  if (worker.quick_failures < 2 || opinions >= kOpinionsMax || !sound_elsewhere(flight)) {
    stop_avoiding(flight.instance);
    return false;
  }
  ++opinions;
  record.avoiding = true;
  avoided[flight.instance] = flight.worker;
  if (worker.quick_failures >= options.quick_failures_max && !worker.doubted()) {
    suspect(flight.worker);
  }
  return true;
}

void Core::State::hear_success(const Flight& flight) {
  WorkerRecord& worker = at(flight.worker);
  worker.quick_failures = 0;
  worker.suspect = false;
  const WorkerId before = avoided_by(flight.instance);
  if (before.valid() && before != flight.worker) {
    ++task_of(flight.instance).succeeded_elsewhere;
    ++at(before).proofs;
    if (at(before).suspect) {
      set_aside(before);
    }
  }
  stop_avoiding(flight.instance);
}

// It failed on another worker as well: it is the instance's own failure.
void Core::State::hear_quick_failure(const Flight& flight) {
  WorkerRecord& before = at(avoided_by(flight.instance));
  stop_avoiding(flight.instance);
  ++task_of(flight.instance).failed_elsewhere;
  if (!before.set_aside) {
    before.quick_failures = 0;
    before.suspect = false;
  }
}

void Core::State::suspect(WorkerId id) {
  at(id).suspect = true;
  for (auto& [attempt, flight] : flights) {
    if (flight.worker == id && !flight.running && !flight.taken_back) {
      take_back(attempt, flight);
    }
  }
  if (at(id).proofs > 0) {
    set_aside(id);
  }
}

void Core::State::set_aside(WorkerId id) {
  WorkerRecord& worker = at(id);
  worker.suspect = false;
  if (!worker.set_aside && worker.alive()) {
    worker.set_aside = true;
    emit(decision::WorkerChanged{id, decision::WorkerState::kSetAside});
  }
}

// To be called while the instance is in no queue. A suspect about whom nothing more can be heard is
// clear.
void Core::State::stop_avoiding(InstanceId instance) {
  const WorkerId before = avoided_by(instance);
  if (!before.valid()) {
    return;
  }
  at(instance).avoiding = false;
  avoided.erase(instance);
  const bool open = std::any_of(avoided.begin(), avoided.end(),
                                [before](const auto& one) { return one.second == before; });
  if (!open && at(before).suspect) {
    at(before).suspect = false;
    at(before).quick_failures = 0;
  }
}

WorkerId Core::State::avoided_by(InstanceId instance) const {
  return at(instance).avoiding ? avoided.at(instance) : WorkerId();
}

// Is another worker there that can try the same and gives no cause for doubt?
bool Core::State::sound_elsewhere(const Flight& flight) const {
  for (size_t w = 0; w < workers.size(); ++w) {
    const WorkerRecord& other = workers[w];
    if (WorkerId(w) != flight.worker && other.accepts() && !other.doubted() &&
        other.quick_failures == 0 && other.total.covers(request_of(flight.request).resources)) {
      return true;
    }
  }
  return false;
}

bool Core::State::fits_elsewhere(WorkerId worker, RequestId request) const {
  for (size_t w = 0; w < workers.size(); ++w) {
    const WorkerRecord& other = workers[w];
    if (WorkerId(w) != worker && other.alive() && !other.doubted() &&
        other.total.covers(request_of(request).resources)) {
      return true;
    }
  }
  return false;
}

bool Core::State::may_get(WorkerId id, InstanceId instance, RequestId request) const {
  const WorkerRecord& worker = workers[id.index()];
  if (!worker.accepts()) {
    return false;
  }
  const bool unwelcome = worker.doubted() || avoided_by(instance) == id;
  return !unwelcome || !fits_elsewhere(id, request);
}

}  // namespace sluice::scheduler
