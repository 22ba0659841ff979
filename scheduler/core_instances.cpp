// What becomes of an instance: its key, its demand, its turn in the queue, its end.
#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "scheduler/check.h"
#include "scheduler/core_state.h"

namespace sluice::scheduler {

void Core::State::drain() {
  for (size_t next = 0; next < changes.size(); ++next, ++steps) {
    handle(Change(changes[next]));  // a copy: handling appends
  }
  changes.clear();
}

// Every change is a hint: things may have moved on since it was noted.
void Core::State::handle(const Change& change) {
  const InstanceId instance = change.instance;
  const InstanceState state = instance.valid() ? at(instance).state : InstanceState::kWaiting;
  const bool before_start = state == InstanceState::kBlocked || state == InstanceState::kReady;
  switch (change.kind) {
    case Change::Kind::kResolved:
      if (state == InstanceState::kWaiting) {
        resolve(instance);
      } else if (state == InstanceState::kLeftOut) {
        resolve_left_out(instance);
      }
      break;
    case Change::Kind::kAvailable:
      if (state == InstanceState::kBlocked) {
        settle(instance);
      }
      break;
    case Change::Kind::kAbsent:
      if (state == InstanceState::kReady && !objects.inputs_available(instance)) {
        set_state(instance, InstanceState::kBlocked);
      }
      break;
    case Change::Kind::kWanted:
      if (state == InstanceState::kDone && wanted(instance)) {
        run_again(instance);
      }
      break;
    case Change::Kind::kUnwanted:
      if (before_start && at(instance).sealed && !wanted(instance)) {
        back_to_done(instance);
      }
      break;
    case Change::Kind::kHopeless:
      if ((before_start && obstacle(instance).valid()) ||
          (state == InstanceState::kWaiting && objects.hopeless_group(instance, true).valid())) {
        skip(instance, change.because);
      }
      break;
    case Change::Kind::kIdle:
      review_idle(change.object);
      break;
    case Change::Kind::kExposed:
      review_closed(instance);
      break;
  }
}

void Core::State::set_state(InstanceId instance, InstanceState state) {
  InstanceRecord& record = at(instance);
  --state_counts[static_cast<size_t>(record.state)];
  ++state_counts[static_cast<size_t>(state)];
  if (record.state == InstanceState::kReady) {
    --queues[queue_of(instance)].ready;
  }
  if (record.state == InstanceState::kDone && !record.ran) {
    --restored_count;
  }
  if (state == InstanceState::kDone && !record.ran) {
    ++restored_count;
  }
  if (record.delayed && state != InstanceState::kBlocked) {
    record.delayed = false;
    const auto until = delayed_until.find(instance);
    delayed.erase({until->second, instance});
    delayed_until.erase(until);
  }
  record.state = state;
}

bool Core::State::matches(InstanceId instance, const Prior& prior) const {
  return prior.key == at(instance).key && prior.outputs.size() == spec_of(instance).outputs.size();
}

std::optional<Core::State::Prior> Core::State::take_prior(InstanceId instance) {
  auto node = priors.extract(instance);
  return node.empty() ? std::optional<Prior>() : std::move(node.mapped());
}

// It does not run, so it is done only if nothing of it is missing. What the journal knows of it
// else stays as it is, for a run that includes it.
void Core::State::resolve_left_out(InstanceId instance) {
  at(instance).key = objects.key(instance);
  const std::optional<Prior> prior = take_prior(instance);
  if (!prior || !matches(instance, *prior)) {
    return;
  }
  for (size_t i = 0; i < prior->outputs.size(); ++i) {
    const bool durable = i < prior->durable.size() && prior->durable[i];
    if (objects.is_result(graph.object(instance, i)) && !durable) {
      return;
    }
  }
  restore(instance, *prior);
}

// All inputs' contents are known: the key decides whether the journal already has the outputs.
void Core::State::resolve(InstanceId instance) {
  InstanceRecord& record = at(instance);
  record.key = objects.key(instance);
  const std::optional<Prior> prior = take_prior(instance);
  if (prior && matches(instance, *prior)) {
    restore(instance, *prior);
    return;
  }
  if (prior) {
    const size_t count = std::min(prior->durable.size(), spec_of(instance).outputs.size());
    for (size_t i = 0; i < count; ++i) {
      const ObjectId object = graph.object(instance, i);
      if (prior->durable[i] && !objects.is_value(object) && !objects.is_result(object)) {
        emit(decision::RemoveSaved{object});  // made by another key
      }
    }
  }
  set_state(instance, InstanceState::kBlocked);
  demand(instance);
  settle(instance);
}

void Core::State::restore(InstanceId instance, const Prior& prior) {
  at(instance).sealed = true;
  gates.pass(instance);
  ++task_of(instance).successes;
  bool published = true;
  for (size_t i = 0; i < prior.outputs.size(); ++i) {
    const ObjectId object = graph.object(instance, i);
    if (!objects.is_value(object) && i < prior.durable.size() && prior.durable[i]) {
      objects.set_durable(
          object, objects.is_result(object) ? Destination::kResults : Destination::kObjects);
    }
    objects.learn(object, prior.outputs[i].content, prior.outputs[i].bytes);
    published = published && !objects.pending(object);
  }
  emit(decision::InstanceDone{instance, {}, at(instance).key, prior.outputs, {}, {}});
  if (published) {
    set_state(instance, InstanceState::kDone);
    review_closed(instance);
    return;
  }
  set_state(instance, InstanceState::kBlocked);
  demand(instance);
  settle(instance);
}

// Does anyone need an output of this done instance that is gone?
bool Core::State::wanted(InstanceId instance) const {
  for (const ObjectId object : graph.objects_of(instance)) {
    if (objects.absent(object) &&
        (objects.demanded(object) || (objects.pending(object) && !saved_elsewhere(object)))) {
      return true;
    }
  }
  return false;
}

// A pending result needs no replica once its bytes are in the run directory, or once saving it was
// given up.
bool Core::State::saved_elsewhere(ObjectId object) const {
  const auto save = saves.find(object);
  return save != saves.end() && (save->second.committing || save->second.given_up);
}

void Core::State::demand(InstanceId instance) {
  if (!at(instance).demanding) {
    at(instance).demanding = true;
    objects.demand_inputs(instance);
  }
}

void Core::State::release(InstanceId instance) {
  if (at(instance).demanding) {
    at(instance).demanding = false;
    objects.release_inputs(instance);
  }
}

bool Core::State::startable(InstanceId instance) const {
  return objects.inputs_available(instance) && gates.open(instance) && !at(instance).delayed;
}

// The failed or skipped instance because of which this one, whose key is known, can never start.
InstanceId Core::State::obstacle(InstanceId instance) const {
  const GroupId hopeless = objects.hopeless_group(instance, false);
  return hopeless.valid() ? objects.hopeless_producer(hopeless) : gates.barrier(instance);
}

// A blocked instance: can it ever start, can it start now?
void Core::State::settle(InstanceId instance) {
  if (task_of(instance).held) {
    skip(instance, task_of(instance).last_failed);
    return;
  }
  const InstanceId because = obstacle(instance);
  if (because.valid()) {
    skip(instance, because);
  } else if (startable(instance)) {
    make_ready(instance);
  }
}

void Core::State::make_ready(InstanceId instance) {
  set_state(instance, InstanceState::kReady);
  ReadyQueue& queue = queues[queue_of(instance)];
  ++queue.ready;
  InstanceRecord& record = at(instance);
  if (!record.queued) {
    record.queued = true;
    queue.heap.push_back(record.order);
    std::push_heap(queue.heap.begin(), queue.heap.end(), std::greater<>());
  }
}

// A done instance lets go of its inputs, unless an output of it is gone that someone not done yet
// reads: then it will run again when that one's turn comes, and keeps its inputs until then.
void Core::State::review_closed(InstanceId instance) {
  InstanceRecord& record = at(instance);
  bool closed = record.state == InstanceState::kDone;
  for (const ObjectId object : graph.objects_of(instance)) {
    closed = closed && !objects.exposed(object);
  }
  if (closed == record.closed) {
    return;
  }
  record.closed = closed;
  if (closed) {
    objects.close_inputs(instance);
  } else {
    objects.reopen_inputs(instance);
  }
}

void Core::State::run_again(InstanceId instance) {
  set_state(instance, InstanceState::kBlocked);
  review_closed(instance);
  demand(instance);
  settle(instance);
}

void Core::State::back_to_done(InstanceId instance) {
  release(instance);
  set_state(instance, InstanceState::kDone);
  review_closed(instance);
  if (at(instance).avoiding) {
    stop_avoiding(instance);  // no second opinion will come
  }
}

// Its attempt is over without success or blame enough to fail it.
void Core::State::requeue(InstanceId instance) {
  set_state(instance, InstanceState::kBlocked);
  if (at(instance).sealed && !wanted(instance)) {
    back_to_done(instance);
    return;
  }
  demand(instance);
  settle(instance);
}

void Core::State::fail(InstanceId instance) {
  release(instance);
  set_state(instance, InstanceState::kFailed);
  stop_avoiding(instance);
  for (const ObjectId object : graph.objects_of(instance)) {
    objects.abandon(object);
  }
  gates.bar(instance);
  const TaskSpec& spec = spec_of(instance);
  TaskRecord& task = task_of(instance);
  ++task.failures;
  task.last_failed = instance;
  if (spec.on_failure != OnFailure::kIgnore) {
    ++failures;
  }
  if (!task.held && task.successes == 0 && task.failures >= options.failures_without_success_max) {
    hold(graph.task_of(instance));
  }
  if (spec.on_failure == OnFailure::kStop) {
    begin_stop(Stop::kFailure, instance);
  }
  if (options.failures_max > 0 && failures >= options.failures_max) {
    begin_stop(Stop::kFailuresMax, instance);
  }
}

void Core::State::hold(TaskId id) {
  tasks[id.index()].held = true;
  const TaskSpec& spec = graph.task(id);
  for (uint32_t item = 0; item < spec.instance_count; ++item) {
    const InstanceId instance = graph.instance(id, item);
    switch (at(instance).state) {
      case InstanceState::kWaiting:
      case InstanceState::kBlocked:
      case InstanceState::kReady:
        skip(instance, tasks[id.index()].last_failed);
        break;
      case InstanceState::kAssigned: {
        const auto flight = flights.find(at(instance).attempt);
        SLUICE_ASSERT(flight != flights.end(), instance);
        if (!flight->second.taken_back && !at(flight->second.worker).lost) {
          take_back(flight->first, flight->second);
        }
        break;
      }
      case InstanceState::kRunning:
      case InstanceState::kDone:
      case InstanceState::kFailed:
      case InstanceState::kSkipped:
      case InstanceState::kLeftOut:
        break;
    }
  }
}

void Core::State::skip(InstanceId instance, InstanceId because) {
  release(instance);
  set_state(instance, InstanceState::kSkipped);
  stop_avoiding(instance);
  emit(decision::InstanceSkipped{instance, because});
  for (const ObjectId object : graph.objects_of(instance)) {
    objects.abandon(object);
  }
  gates.bar(instance);
}

}  // namespace sluice::scheduler
