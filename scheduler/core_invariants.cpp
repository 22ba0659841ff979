// What must always hold between events, recounted from scratch.
#include <algorithm>

#include "scheduler/check.h"
#include "scheduler/core_state.h"

namespace sluice::scheduler {

void Core::State::check_invariants() const {
  SLUICE_ASSERT(changes.empty());
  std::vector<bool> open;
  std::vector<bool> demand;
  std::array<size_t, kInstanceStateCount> counts{};
  size_t restored = 0;
  for (size_t i = 0; i < instances.size(); ++i) {
    const InstanceRecord& record = instances[i];
    open.push_back(!record.closed);
    demand.push_back(record.demanding);
    ++counts[static_cast<size_t>(record.state)];
    restored += record.state == InstanceState::kDone && !record.ran ? 1 : 0;
    check_instance(InstanceId(i));
  }
  SLUICE_ASSERT(counts == state_counts);
  SLUICE_ASSERT(restored == restored_count, restored, restored_count);
  objects.check_invariants(open, demand);
  gates.check_invariants();
  check_flights();
  for (size_t w = 0; w < workers.size(); ++w) {
    check_worker(WorkerId(w));
  }
  check_queues();
}

void Core::State::check_instance(InstanceId id) const {
  const InstanceRecord& record = at(id);
  const InstanceState state = record.state;
  const bool in_flight = state == InstanceState::kAssigned || state == InstanceState::kRunning;
  SLUICE_ASSERT(record.attempt.valid() == in_flight, id, state, record.attempt);
  const bool demands = state == InstanceState::kBlocked || state == InstanceState::kReady ||
                       state == InstanceState::kAssigned;
  SLUICE_ASSERT(record.demanding == demands, id, state);
  const bool started = demands || in_flight || state == InstanceState::kDone;
  SLUICE_ASSERT(!started || objects.inputs_known(id), id, state);
  SLUICE_ASSERT(state != InstanceState::kReady || startable(id), id);
  SLUICE_ASSERT(state != InstanceState::kBlocked || !startable(id), id);
  SLUICE_ASSERT(state != InstanceState::kDone || record.sealed, id);
  SLUICE_ASSERT(state != InstanceState::kReady || record.queued, id);
  bool closed = state == InstanceState::kDone;
  for (const ObjectId object : graph.objects_of(id)) {
    closed = closed && !objects.exposed(object);
    SLUICE_ASSERT(objects.known(object) == record.sealed, id, object);
    SLUICE_ASSERT(!useless(object) || objects.replicas(object).empty() || idle.count(object) > 0,
                  id, object);
    if (state == InstanceState::kDone) {
      SLUICE_ASSERT(!objects.pending(object) || saves.count(object) > 0, id, object);
      SLUICE_ASSERT(!wanted(id), id, object);
    }
  }
  SLUICE_ASSERT(record.closed == closed, id, state);
}

void Core::State::check_flights() const {
  size_t in_flight = 0;
  for (const InstanceRecord& record : instances) {
    in_flight += record.attempt.valid() ? 1 : 0;
  }
  SLUICE_ASSERT(in_flight == flights.size(), in_flight, flights.size());
  size_t active = 0;
  for (const auto& [object, save] : saves) {
    active += save.active ? 1 : 0;
    SLUICE_ASSERT(save.active || !save.committing, object);
    const bool saving = save.active && !save.committing;
    SLUICE_ASSERT(!saving || objects.held_by(object, save.worker), object, save.worker);
  }
  SLUICE_ASSERT(active == saves_active, active, saves_active);
  std::vector<Amount> limits;
  for (const Limit& limit : graph.limits()) {
    limits.push_back(limit.total);
  }
  size_t limited_count = 0;
  for (const auto& [attempt, flight] : flights) {
    SLUICE_ASSERT(at(flight.instance).attempt == attempt, attempt, flight.instance);
    const bool running = at(flight.instance).state == InstanceState::kRunning;
    SLUICE_ASSERT(running == flight.running, attempt);
    SLUICE_ASSERT(!workers[flight.worker.index()].lost, attempt, flight.worker);
    const bool limited = !request_of(flight.request).limits.empty();
    SLUICE_ASSERT((flight.ahead && limited) == (limited_ahead.count(attempt) > 0), attempt);
    limited_count += flight.ahead && limited ? 1 : 0;
    for (const LimitUse& use : request_of(flight.request).limits) {
      limits[use.limit.index()] -= use.amount;
    }
  }
  SLUICE_ASSERT(limited_count == limited_ahead.size(), limited_count, limited_ahead.size());
  SLUICE_ASSERT(limits == limits_free);
  for (const Amount amount : limits) {
    SLUICE_ASSERT(amount >= 0, amount);
  }
}

void Core::State::check_worker(WorkerId id) const {
  const WorkerRecord& worker = workers[id.index()];
  Resources free = worker.total;
  Resources promised;
  size_t attempts = 0;
  int64_t load = 0;
  for (const auto& [attempt, flight] : flights) {
    if (flight.wanted_by == id) {
      promised += request_of(flight.request).resources;
    }
    if (flight.worker != id) {
      continue;
    }
    ++attempts;
    const std::vector<AttemptId>& list = flight.ahead ? worker.ahead : worker.slots;
    SLUICE_ASSERT(std::count(list.begin(), list.end(), attempt) == 1, attempt, id);
    if (flight.ahead) {
      load += flight.load;
    } else {
      free -= request_of(flight.request).resources;
    }
  }
  SLUICE_ASSERT(attempts == worker.slots.size() + worker.ahead.size(), id, attempts);
  SLUICE_ASSERT(free == worker.free, id, free.cpus, worker.free.cpus);
  SLUICE_ASSERT(promised == worker.promised, id, promised.cpus, worker.promised.cpus);
  SLUICE_ASSERT(free.cpus >= 0 && free.memory_bytes >= 0, id, free.cpus, free.memory_bytes);
  SLUICE_ASSERT(load == worker.ahead_load, id, load, worker.ahead_load);
  SLUICE_ASSERT(
      std::is_sorted(worker.ahead.begin(), worker.ahead.end(),
                     [this](AttemptId a, AttemptId b) { return priority_of(a) > priority_of(b); }),
      id);
  if (!worker.ahead.empty()) {
    const Flight& first = flights.at(worker.ahead.front());
    SLUICE_ASSERT(!worker.free.covers(request_of(first.request).resources), id);
  }
}

void Core::State::check_queues() const {
  std::vector<size_t> ready(queues.size());
  for (size_t i = 0; i < instances.size(); ++i) {
    if (instances[i].state == InstanceState::kReady) {
      ++ready[queue_of(InstanceId(i))];
    }
  }
  SLUICE_ASSERT(queues.size() == 2 * requests.size(), queues.size(), requests.size());
  const auto avoiding = std::count_if(instances.begin(), instances.end(),
                                      [](const InstanceRecord& record) { return record.avoiding; });
  SLUICE_ASSERT(static_cast<size_t>(avoiding) == avoided.size(), avoiding, avoided.size());
  size_t delays = 0;
  for (const InstanceRecord& record : instances) {
    delays += record.delayed ? 1 : 0;
    SLUICE_ASSERT(!record.delayed || record.state == InstanceState::kBlocked, record.state);
  }
  SLUICE_ASSERT(delays == delayed.size(), delays, delayed.size());
  SLUICE_ASSERT(delays == delayed_until.size(), delays, delayed_until.size());
  for (const auto& [time, instance] : delayed) {
    SLUICE_ASSERT(delayed_until.at(instance) == time, instance, time);
    SLUICE_ASSERT(at(instance).delayed, instance);
  }
  size_t entries = 0;
  for (size_t r = 0; r < queues.size(); ++r) {
    SLUICE_ASSERT(ready[r] == queues[r].ready, r, ready[r], queues[r].ready);
    entries += queues[r].heap.size();
  }
  const auto queued = std::count_if(instances.begin(), instances.end(),
                                    [](const InstanceRecord& record) { return record.queued; });
  SLUICE_ASSERT(entries == static_cast<size_t>(queued), entries, queued);
}

}  // namespace sluice::scheduler
