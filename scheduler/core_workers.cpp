// What workers report: attempts, replicas, signs of life, loss.
#include <algorithm>
#include <string>
#include <utility>

#include "scheduler/check.h"
#include "scheduler/core_state.h"

namespace sluice::scheduler {

namespace {
// An instance whose inputs could not be fetched this often is charged with a staging failure.
constexpr uint8_t kMissingReturnsMax = 10;
}  // namespace

// ---- from the driver ----

void Core::State::on(const event::WorkerJoined& joined) {
  const size_t index = joined.worker.index();
  if (index >= workers.size()) {
    workers.resize(index + 1);
  }
  WorkerRecord& worker = workers[index];
  SLUICE_ASSERT(!worker.joined, joined.worker);
  if (worker.lost) {
    return;  // its end was seen before its first word was read
  }
  const auto node = std::find(nodes.begin(), nodes.end(), joined.node);
  worker.node = static_cast<uint32_t>(node - nodes.begin());
  if (node == nodes.end()) {
    nodes.push_back(joined.node);
  }
  worker.joined = true;
  worker.total = joined.resources;
  worker.free = joined.resources;
  worker.heard = now;
  worker.turned = now;
  any_joined = true;
}

void Core::State::on(const event::WorkerLost& lost) {
  const size_t index = lost.worker.index();
  if (index >= workers.size()) {
    workers.resize(index + 1);
  }
  if (!workers[index].joined) {
    workers[index].lost = true;
  } else if (!workers[index].lost) {
    lose_worker(lost.worker);
  }
}

void Core::State::on(const event::Restored& restored) {
  SLUICE_ASSERT(!begun, restored.instance);
  const bool first =
      priors.emplace(restored.instance, Prior{restored.key, restored.outputs, restored.durable})
          .second;
  SLUICE_ASSERT(first, restored.instance);
}

void Core::State::on(const event::Selected& selected) {
  SLUICE_ASSERT(!begun && selected.instances.size() == instances.size(), instances.size());
  for (size_t i = 0; i < instances.size(); ++i) {
    if (!selected.instances[i]) {
      set_state(InstanceId(i), InstanceState::kLeftOut);
    }
  }
}

void Core::State::on(const event::Begin& /*begin*/) {
  SLUICE_ASSERT(!begun);
  begun = true;
  for (size_t i = 0; i < instances.size(); ++i) {
    if (objects.inputs_known(InstanceId(i))) {
      changes.push_back({Change::Kind::kResolved, InstanceId(i), {}, {}});
      drain();  // so that there is never a list of all instances
    }
  }
}

void Core::State::on(const event::Tick& /*tick*/) {
  end_delays();
  for (size_t w = 0; w < workers.size(); ++w) {
    WorkerRecord& worker = workers[w];
    if (!worker.joined || worker.lost) {
      continue;
    }
    const Duration silence = now - worker.heard;
    if (silence >= options.lost_after) {
      lose_worker(WorkerId(w));
    } else if (silence >= options.silent_after && !worker.silent) {
      worker.silent = true;
      emit(decision::WorkerChanged{WorkerId(w), decision::WorkerState::kSilent});
    }
  }
}

// ---- attempts ----

std::map<AttemptId, Core::State::Flight>::iterator Core::State::find_flight(WorkerId worker,
                                                                            AttemptId attempt) {
  const auto found = flights.find(attempt);
  return found != flights.end() && found->second.worker == worker ? found : flights.end();
}

// The attempt is over for its worker: its slot is free for the next one. The instance's state is
// the caller's to change.
Core::State::FlightEntry Core::State::end_flight(std::map<AttemptId, Flight>::iterator it) {
  FlightEntry entry(it->first, it->second);
  flights.erase(it);
  unpromise(entry.second);
  free_slot(entry.first, entry.second);
  at(entry.second.instance).attempt = AttemptId();
  return entry;
}

void Core::State::free_slot(AttemptId attempt, const Flight& flight) {
  WorkerRecord& worker = at(flight.worker);
  std::vector<AttemptId>& list = flight.ahead ? worker.ahead : worker.slots;
  const auto found = std::find(list.begin(), list.end(), attempt);
  SLUICE_ASSERT(found != list.end(), attempt, flight.worker);
  list.erase(found);
  const Request& request = request_of(flight.request);
  if (flight.ahead) {
    leave_ahead(attempt, flight);
  } else {
    worker.free += request.resources;
    worker.turned = now;
  }
  for (const LimitUse& use : request.limits) {
    limits_free[use.limit.index()] += use.amount;
  }
  promote(flight.worker);
}

void Core::State::leave_ahead(AttemptId attempt, const Flight& flight) {
  at(flight.worker).ahead_load -= flight.load;
  limited_ahead.erase(attempt);
}

// Attempts sent ahead get free slots as the agent gives them: in order, none overtaken.
void Core::State::promote(WorkerId id) {
  WorkerRecord& worker = at(id);
  while (!worker.ahead.empty()) {
    Flight& next = flights.at(worker.ahead.front());
    const Resources& need = request_of(next.request).resources;
    if (!worker.free.covers(need)) {
      return;
    }
    worker.free -= need;
    next.ahead = false;
    leave_ahead(worker.ahead.front(), next);
    worker.slots.push_back(worker.ahead.front());
    worker.ahead.erase(worker.ahead.begin());
  }
}

void Core::State::unpromise(Flight& flight) {
  if (flight.wanted_by.valid()) {
    at(flight.wanted_by).promised -= request_of(flight.request).resources;
    flight.wanted_by = WorkerId();
  }
}

void Core::State::on(const event::AttemptStarted& started) {
  const auto it = find_flight(started.worker, started.attempt);
  if (it == flights.end() || it->second.running) {
    return;
  }
  Flight& flight = it->second;
  flight.running = true;
  unpromise(flight);
  set_state(flight.instance, InstanceState::kRunning);
  release(flight.instance);  // its inputs are in its directory now
  if (stop == Stop::kAsked || stop == Stop::kFailure) {
    stop_flight(it->first, flight);  // too late to take it back
  }
}

void Core::State::on(const event::AttemptFinished& finished) {
  const auto it = find_flight(finished.worker, finished.attempt);
  if (it == flights.end()) {
    drop_late_outputs(finished);
    return;
  }
  const Flight flight = end_flight(it).second;
  const InstanceId instance = flight.instance;
  hear_success(flight);
  InstanceRecord& record = at(instance);
  SLUICE_ASSERT(finished.outputs.size() == spec_of(instance).outputs.size(), instance,
                finished.outputs.size());
  release(instance);
  decision::InstanceDone done{instance,         finished.attempt, record.key,
                              finished.outputs, finished.usage,   finished.worker};
  for (size_t i = 0; i < done.outputs.size(); ++i) {
    take_output(graph.object(instance, i), done.outputs[i], finished.worker);
  }
  record.sealed = true;
  gates.pass(instance);
  record.ran = true;
  if (const auto trouble = troubles.find(instance); trouble != troubles.end()) {
    trouble->second.missing_returns = 0;
  }
  record.wall = finished.usage.wall;
  ++task_of(instance).successes;
  learn_duration(instance, finished.usage.wall);
  set_state(instance, InstanceState::kDone);
  review_closed(instance);
  emit(std::move(done));
  for (const ObjectId object : graph.objects_of(instance)) {
    publish(object);
    changes.push_back({Change::Kind::kIdle, {}, {}, object});
  }
}

// The first content id stands. A copy with other bytes is kept only if there is no other.
void Core::State::take_output(ObjectId object, OutputReport& report, WorkerId worker) {
  const bool value = objects.is_value(object);
  if (!objects.known(object)) {
    if (!value) {
      objects.add_replica(object, worker);
    }
    objects.learn(object, report.content, report.bytes);
    return;
  }
  const Hash128 before = objects.content(object);
  const bool differs = report.content != before;
  if (differs) {
    emit(decision::NotReproducible{object, before, report.content});
    report.content = before;
  }
  if (value) {
    return;
  }
  if (differs && !objects.absent(object)) {
    if (!objects.held_by(object, worker)) {
      emit(decision::DropObject{worker, object});
    }
    return;
  }
  objects.set_bytes(object, report.bytes);
  objects.add_replica(object, worker);
}

// An attempt that no longer counts has left outputs in its worker's store.
void Core::State::drop_late_outputs(const event::AttemptFinished& finished) {
  const size_t number = finished.attempt.number();
  if (finished.attempt.epoch() != options.epoch || number == 0 ||
      number > attempt_instance.size() || !attempt_instance[number - 1].valid()) {
    return;
  }
  const InstanceId instance = attempt_instance[number - 1];
  if (find_flight(finished.worker, at(instance).attempt) != flights.end()) {
    return;  // a newer attempt there makes the same objects
  }
  for (const ObjectId object : graph.objects_of(instance)) {
    if (!objects.is_value(object) && !objects.held_by(object, finished.worker)) {
      emit(decision::DropObject{finished.worker, object});
    }
  }
}

void Core::State::on(const event::AttemptFailed& failed) {
  const auto it = find_flight(failed.worker, failed.attempt);
  if (it != flights.end()) {
    charge(end_flight(it).second, failed);
  }
}

void Core::State::on(const event::AttemptReturned& returned) {
  const auto it = find_flight(returned.worker, returned.attempt);
  if (it == flights.end()) {
    return;
  }
  const Flight flight = end_flight(it).second;
  if (!returned.missing.valid()) {
    if (!flight.taken_back && !flight.stopping) {
      at(flight.worker).closing = true;
    }
    requeue(flight.instance);
    return;
  }
  input_missing(flight, returned);
  uint8_t& missing_returns = troubles[flight.instance].missing_returns;
  if (++missing_returns <= kMissingReturnsMax) {
    requeue(flight.instance);
    return;
  }
  missing_returns = 0;
  event::AttemptFailed report;
  report.worker = returned.worker;
  report.attempt = returned.attempt;
  report.cause = Cause::kStaging;
  report.detail = "an input could not be fetched in " + std::to_string(kMissingReturnsMax + 1) +
                  " attempts; the last one missing was output '" +
                  graph.output(returned.missing).name + "' of task '" +
                  spec_of(graph.producer(returned.missing)).name + "'";
  charge(flight, std::move(report));
}

bool Core::State::reads(InstanceId instance, ObjectId object) const {
  const std::span<const GroupId> inputs = graph.inputs(instance);
  const std::span<const GroupId> fed = graph.object_groups(object);
  return std::any_of(fed.begin(), fed.end(), [inputs](GroupId group) {
    return std::find(inputs.begin(), inputs.end(), group) != inputs.end();
  });
}

// The place that was named does not have the object after all.
void Core::State::input_missing(const Flight& flight, const event::AttemptReturned& returned) {
  const ObjectId object = returned.missing;
  if (object.index() >= graph.object_count() || objects.is_value(object) ||
      !reads(flight.instance, object)) {
    return;
  }
  if (returned.source.valid()) {
    replica_lost(object, returned.source);
    // It may be there all the same and only be unreadable: nobody would ever drop it then.
    emit(decision::DropObject{returned.source, object});
  } else {
    objects.clear_durable(object);
    publish(object);
  }
}

void Core::State::on(const event::AttemptStopped& stopped) {
  const auto it = find_flight(stopped.worker, stopped.attempt);
  if (it != flights.end()) {
    requeue(end_flight(it).second.instance);
  }
}

// ---- replicas and loss ----

void Core::State::on(const event::Heartbeat& /*heartbeat*/) {}

void Core::State::on(const event::ReplicaAdded& added) {
  if (objects.is_value(added.object)) {
    return;
  }
  if (!objects.known(added.object)) {
    emit(decision::DropObject{added.worker, added.object});
    return;
  }
  objects.add_replica(added.object, added.worker);
  publish(added.object);
  changes.push_back({Change::Kind::kIdle, {}, {}, added.object});
}

void Core::State::on(const event::ReplicaLost& lost) { replica_lost(lost.object, lost.worker); }

void Core::State::replica_lost(ObjectId object, WorkerId worker) {
  if (objects.remove_replica(object, worker)) {
    interrupt_save(object, worker);
  }
}

void Core::State::lose_worker(WorkerId id) {
  at(id).lost = true;
  at(id).silent = false;
  emit(decision::WorkerChanged{id, decision::WorkerState::kLost});
  objects.forget_worker(id);
  std::vector<ObjectId> interrupted;
  for (const auto& [object, save] : saves) {
    if (save.active && !save.committing && save.worker == id) {
      interrupted.push_back(object);
    }
  }
  for (const ObjectId object : interrupted) {
    interrupt_save(object, id);
  }
  std::vector<AttemptId> attempts = at(id).slots;
  attempts.insert(attempts.end(), at(id).ahead.begin(), at(id).ahead.end());
  for (const AttemptId attempt : attempts) {
    const Flight flight = end_flight(flights.find(attempt)).second;
    if (!flight.running) {
      requeue(flight.instance);  // it cannot be to blame
      continue;
    }
    event::AttemptFailed report;
    report.worker = id;
    report.attempt = attempt;
    report.cause = Cause::kLost;
    report.detail = "worker " + std::to_string(id.value) + " was lost while it ran the attempt";
    charge(flight, std::move(report));
  }
}

}  // namespace sluice::scheduler
