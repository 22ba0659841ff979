// What lasts: publishing results, dropping what has no use any more, the stop, the end.
#include <algorithm>
#include <iterator>
#include <utility>

#include "scheduler/check.h"
#include "scheduler/core_state.h"

namespace sluice::scheduler {

namespace {
constexpr uint8_t kSaveFailuresMax = 3;
}  // namespace

// ---- saving ----

// Starts saving a pending result, or has it made again if its bytes are gone.
void Core::State::publish(ObjectId object) {
  if (!objects.pending(object)) {
    return;
  }
  const auto save = saves.find(object);
  if (save != saves.end() && (save->second.active || save->second.given_up)) {
    return;
  }
  if (objects.absent(object)) {
    changes.push_back({Change::Kind::kWanted, graph.producer(object), {}, {}});
    return;
  }
  start_save(object, Destination::kResults);
}

void Core::State::start_save(ObjectId object, Destination destination) {
  Save& save = saves[object];
  SLUICE_ASSERT(!save.active && !save.given_up, object);
  save.worker = save_holder(object, save);
  save.number = new_attempt(InstanceId());
  save.destination = destination;
  save.active = true;
  save.committing = false;
  ++saves_active;
  emit(decision::SaveObject{save.worker, object, save.number, destination});
}

// The first holder; after a failure, the next one after the last.
WorkerId Core::State::save_holder(ObjectId object, const Save& save) const {
  const std::span<const WorkerId> all = objects.replicas(object);
  SLUICE_ASSERT(!all.empty(), object);
  if (save.worker.valid()) {
    const auto next = std::upper_bound(all.begin(), all.end(), save.worker);
    if (next != all.end()) {
      return *next;
    }
  }
  return all.front();
}

void Core::State::on(const event::ObjectSaved& saved) {
  const auto it = saves.find(saved.object);
  if (it == saves.end() || it->second.number != saved.save || !it->second.active ||
      it->second.committing) {
    return;
  }
  it->second.committing = true;
  emit(decision::CommitObject{saved.object, saved.save, it->second.destination});
}

void Core::State::on(const event::ObjectSaveFailed& failed) {
  const auto it = saves.find(failed.object);
  if (it != saves.end() && it->second.number == failed.save && it->second.active &&
      !it->second.committing) {
    save_failed(failed.object, it->second);
  }
}

void Core::State::on(const event::ObjectCommitted& committed) {
  const auto it = saves.find(committed.object);
  if (it == saves.end() || !it->second.committing) {
    return;
  }
  const Destination destination = it->second.destination;
  saves.erase(it);
  --saves_active;
  objects.set_durable(committed.object, destination);
  changes.push_back({Change::Kind::kIdle, {}, {}, committed.object});
}

void Core::State::on(const event::ObjectCommitFailed& failed) {
  const auto it = saves.find(failed.object);
  if (it != saves.end() && it->second.committing) {
    save_failed(failed.object, it->second);
  }
}

void Core::State::save_failed(ObjectId object, Save& save) {
  save.active = false;
  save.committing = false;
  --saves_active;
  if (++save.failures >= kSaveFailuresMax) {
    save.given_up = true;
  } else if (objects.pending(object)) {
    publish(object);
  } else if (objects.open(object) && !objects.absent(object)) {
    start_save(object, save.destination);
  }
  changes.push_back({Change::Kind::kIdle, {}, {}, object});
}

// The worker that was saving has gone, or its replica. That is not a failure of the disk.
void Core::State::interrupt_save(ObjectId object, WorkerId worker) {
  const auto it = saves.find(object);
  if (it == saves.end() || !it->second.active || it->second.committing ||
      it->second.worker != worker) {
    return;
  }
  it->second.active = false;
  --saves_active;
  publish(object);  // an intermediate is looked for again when nothing else is being saved
  changes.push_back({Change::Kind::kIdle, {}, {}, object});
}

// ---- dropping ----

bool Core::State::useless(ObjectId object) const {
  if (!objects.known(object) || objects.is_value(object) || objects.open(object) ||
      objects.pending(object)) {
    return false;
  }
  const auto save = saves.find(object);
  return save == saves.end() || !save->second.active;  // looked at again once it is durable
}

// A death of rank 0 must not leave a journal that lacks what made the object useless.
void Core::State::review_idle(ObjectId object) {
  const bool there = !objects.replicas(object).empty() || objects.in_objects_folder(object);
  if (there && useless(object)) {
    idle[object] = decision_count;
  }
}

void Core::State::on(const event::RecordsSynced& synced) { drop_idle(synced.decisions); }

void Core::State::drop_idle(uint64_t decisions) {
  for (auto it = idle.begin(); it != idle.end();) {
    if (it->second > decisions) {
      ++it;
      continue;
    }
    const ObjectId object = it->first;
    it = idle.erase(it);
    if (useless(object)) {  // it may have been needed again since
      drop(object);
    }
  }
}

void Core::State::drop(ObjectId object) {
  for (const WorkerId holder : objects.replicas(object)) {
    emit(decision::DropObject{holder, object});
  }
  objects.remove_all_replicas(object);
  if (objects.in_objects_folder(object)) {
    emit(decision::RemoveSaved{object});
    objects.clear_durable(object);
  }
}

// ---- stop and end ----

void Core::State::on(const event::StopRequested& /*stop_requested*/) { begin_stop(Stop::kAsked); }

void Core::State::begin_stop(Stop reason, InstanceId because) {
  if (stop >= reason || stop == Stop::kAsked) {
    return;
  }
  stop = reason;
  if (reason != Stop::kAsked) {
    emit(decision::StopBegan{reason == Stop::kFailure ? decision::StopReason::kFailure
                                                      : decision::StopReason::kFailuresMax,
                             because});
  }
  for (auto& [attempt, flight] : flights) {
    if (reason != Stop::kFailuresMax || !flight.running) {
      stop_flight(attempt, flight);
    }
  }
}

void Core::State::stop_flight(AttemptId attempt, Flight& flight) {
  if (at(flight.worker).lost) {
    return;
  }
  if (flight.running && !flight.stopping) {
    flight.stopping = true;
    emit(decision::StopAttempt{flight.worker, attempt});
  } else if (!flight.running && !flight.taken_back) {
    take_back(attempt, flight);
  }
}

size_t Core::State::unfinished() const {
  const auto count = [this](InstanceState state) {
    return state_counts[static_cast<size_t>(state)];
  };
  return instances.size() - count(InstanceState::kDone) - count(InstanceState::kFailed) -
         count(InstanceState::kSkipped) - count(InstanceState::kLeftOut);
}

bool Core::State::all_done() const {
  const auto count = [this](InstanceState state) {
    return state_counts[static_cast<size_t>(state)];
  };
  return count(InstanceState::kDone) + count(InstanceState::kLeftOut) == instances.size() &&
         objects.pending_count() == 0;
}

bool Core::State::fits_ever(RequestId id) const {
  const Request& request = request_of(id);
  const bool limits_suffice =
      std::all_of(request.limits.begin(), request.limits.end(), [this](const LimitUse& use) {
        return use.amount <= graph.limits()[use.limit.index()].total;
      });
  return limits_suffice &&
         std::any_of(workers.begin(), workers.end(), [&request](const WorkerRecord& worker) {
           return worker.alive() && worker.total.covers(request.resources);
         });
}

bool Core::State::work_can_start() const {
  if (!delayed.empty()) {
    return true;
  }
  for (size_t q = 0; q < queues.size(); ++q) {
    if (queues[q].ready > 0 && fits_ever(queue_request(q))) {
      return true;
    }
  }
  return false;
}

// The run ends when nothing is under way and nothing can start. What unfinished instances need is
// saved first; if a worker goes meanwhile, work may become possible again, and the run goes on.
void Core::State::check_end() {
  if (!begun || ended || !flights.empty() || saves_active > 0) {
    return;
  }
  const bool done = all_done();
  if (!done && stop == Stop::kNo && (work_can_start() || (unfinished() > 0 && !any_joined))) {
    return;
  }
  if (!done || state_counts[static_cast<size_t>(InstanceState::kLeftOut)] > 0) {
    spill();
    if (saves_active > 0) {
      return;
    }
  }
  drop_idle(decision_count);  // the driver makes its last records last before it removes anything
  drain();
  ended = true;
  emit(decision::RunEnded{outcome()});
}

// Saves what an instance that is not done reads and only workers hold, costliest to make again
// first.
void Core::State::spill() {
  struct Candidate {
    int64_t cost;
    ObjectId object;
  };
  std::vector<Candidate> candidates;
  for (size_t o = 0; o < graph.object_count(); ++o) {
    const ObjectId object(o);
    const auto save = saves.find(object);
    const bool given_up = save != saves.end() && save->second.given_up;
    if (objects.replicas(object).empty() || objects.durable(object) || !objects.open(object) ||
        given_up) {
      continue;
    }
    const InstanceId producer = graph.producer(object);
    const int64_t cpus = request_of(request_of(producer)).resources.cpus;
    candidates.push_back({at(producer).wall.ns * cpus, object});
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.cost != b.cost ? a.cost > b.cost : a.object < b.object;
  });
  for (const Candidate& candidate : candidates) {
    start_save(candidate.object, Destination::kObjects);
  }
}

Outcome Core::State::outcome() const {
  if (all_done()) {
    return Outcome::kAllDone;
  }
  for (const auto& [object, save] : saves) {
    if (save.given_up && objects.pending(object)) {
      return Outcome::kDisk;
    }
  }
  if (unfinished() > 0 && (stop == Stop::kNo || stop == Stop::kAsked)) {
    return stop == Stop::kAsked ? Outcome::kStopped : Outcome::kStuck;
  }
  return failures > 0 ? Outcome::kFailed : Outcome::kAllDone;
}

}  // namespace sluice::scheduler
