// What is sent ahead, and what is taken back. An attempt that waits at its worker starts the moment
// a slot is free there, without asking rank 0; but where it waits was chosen early.
//
// So the depth follows the time that attempts take. One per slot hides the way to rank 0 and the
// fetching of inputs. Of short ones as many more may wait as cover kAheadCovers, which is about a
// round trip and a turn of rank 0. Of long ones that read nothing none is sent ahead: there is
// nothing to hide, and a late choice is a better one.
//
// What waits at a worker gets slots by priority, first come first served among equals: what is sent
// ahead later is held up only by what is as important, and does not find the places taken by what
// is not. Limits are counted from the sending on, so that no start can exceed one.
//
// Taken back is what an idle worker could run now; what waits where attempts turned out to be much
// longer than was thought; and what keeps a limit from a higher priority.
#include <algorithm>
#include <iterator>

#include "scheduler/core_state.h"

namespace sluice::scheduler {

namespace {

constexpr Duration kAheadCovers = milliseconds(5);
// A worker whose slots have not changed hands for so long gets one attempt ahead per slot.
constexpr Duration kStalledAfter = kAheadCovers * 10;
constexpr Duration kLong = seconds(10);
constexpr size_t kSurplusLooks = 8;     // workers looked at in a schedule(), in turn
constexpr int64_t kMicrosecond = 1000;  // in ns
constexpr int64_t kWeight = 4;  // an attempt moves the estimate by 1 / kWeight of the difference

Amount amount_of(const Request& request, LimitId limit) {
  for (const LimitUse& use : request.limits) {
    if (use.limit == limit) {
      return use.amount;
    }
  }
  return 0;
}

}  // namespace

// ---- how much ----

void Core::State::learn_duration(InstanceId instance, Duration wall) {
  Duration& typical = task_of(instance).typical;
  wall = std::max(wall, microseconds(1));
  typical.ns = typical.ns == 0 ? wall.ns : typical.ns + (wall.ns - typical.ns) / kWeight;
}

// Of recent attempts of its task that succeeded; before there are any, what the task expects; 0:
// unknown.
Duration Core::State::typical_duration(InstanceId instance) const {
  const Duration typical = tasks[graph.task_of(instance).index()].typical;
  return typical.ns > 0 ? typical : spec_of(instance).expected;
}

// Attempts of such a duration that may wait per slot.
size_t Core::State::depth(Duration typical) const {
  if (typical.ns <= 0 || typical >= kAheadCovers) {
    return 1;
  }
  const auto covering = static_cast<size_t>((kAheadCovers.ns + typical.ns - 1) / typical.ns);
  return std::max<size_t>(1, std::min<size_t>(covering, options.ahead_per_slot_max));
}

// Attempts of the request that could run on the worker at once, or what does.
size_t Core::State::slots_for(const WorkerRecord& worker, const Request& request) {
  const auto could_run =
      static_cast<size_t>(worker.total.cpus / std::max(1, request.resources.cpus));
  return std::max(worker.slots.size(), could_run);
}

bool Core::State::stalled(const WorkerRecord& worker) const {
  return now - worker.turned > kStalledAfter;
}

int32_t Core::State::priority_of(AttemptId attempt) const {
  return spec_of(attempt_instance[attempt.number() - 1]).priority;
}

// How many of what waits at the worker would get a slot before one of this priority.
size_t Core::State::ahead_before(const WorkerRecord& worker, int32_t priority) const {
  const auto goes_first = [&](AttemptId other) { return priority_of(other) >= priority; };
  if (worker.ahead.empty() || goes_first(worker.ahead.back())) {
    return worker.ahead.size();
  }
  return static_cast<size_t>(
      std::partition_point(worker.ahead.begin(), worker.ahead.end(), goes_first) -
      worker.ahead.begin());
}

int64_t Core::State::load_of(InstanceId instance, RequestId request) const {
  const Duration typical = typical_duration(instance);
  const int64_t ns = typical.ns > 0 ? std::min(typical.ns, kLong.ns) : kAheadCovers.ns;
  return ns / kMicrosecond * std::max(1, request_of(request).resources.cpus);
}

bool Core::State::has_room_ahead(const WorkerRecord& worker, InstanceId instance,
                                 RequestId id) const {
  const size_t slots = slots_for(worker, request_of(id));
  if (ahead_before(worker, spec_of(instance).priority) < slots) {
    return true;
  }
  const int64_t covered = kAheadCovers.ns / kMicrosecond * worker.total.cpus;
  return worker.ahead.size() < slots * depth(typical_duration(instance)) &&
         worker.ahead_load + load_of(instance, id) <= covered && !stalled(worker);
}

// Ahead goes only where every core is given out.
WorkerId Core::State::choose_for_ahead(RequestId id, InstanceId instance) {
  const Request& request = request_of(id);
  const bool fits = limits_fit(request);
  if ((!fits && limited_ahead.empty()) ||
      (typical_duration(instance) >= kLong && graph.inputs(instance).empty())) {
    return {};
  }
  std::vector<WorkerId> candidates;
  steps += workers.size();
  for (size_t w = 0; w < workers.size(); ++w) {
    const WorkerRecord& worker = workers[w];
    if (worker.free.cpus <= 0 && worker.total.covers(request.resources) &&
        has_room_ahead(worker, instance, id) && may_get(WorkerId(w), instance, id)) {
      candidates.emplace_back(w);
    }
  }
  if (!fits) {
    if (!candidates.empty()) {
      take_back_for_limit(request, spec_of(instance).priority);
    }
    return {};
  }
  const int32_t priority = spec_of(instance).priority;
  return choose_best(candidates, instance, [&](const WorkerRecord& a, const WorkerRecord& b) {
    return ahead_before(a, priority) < ahead_before(b, priority);
  });
}

// ---- taking back ----

void Core::State::take_back(AttemptId attempt, Flight& flight) {
  flight.taken_back = true;
  emit(decision::TakeBack{flight.worker, attempt});
}

void Core::State::take_back_ahead() {
  std::vector<Donor> donors;
  steps += workers.size();
  for (size_t w = 0; w < workers.size(); ++w) {
    if (!workers[w].ahead.empty()) {
      donors.push_back({WorkerId(w), workers[w].ahead.size()});
    }
  }
  for (size_t i = std::min(kSurplusLooks, donors.size()); i > 0; --i) {
    take_back_surplus(at(donors[surplus_turn++ % donors.size()].worker));
  }
  if (!donors.empty()) {
    take_back_for_idle(donors);
  }
}

// What is more than twice of what would be sent there now, the last first.
void Core::State::take_back_surplus(const WorkerRecord& worker) {
  const Flight& last = flights.at(worker.ahead.back());
  const size_t slots = slots_for(worker, request_of(last.request));
  const size_t room = slots * (stalled(worker) ? 1 : depth(typical_duration(last.instance)));
  if (worker.ahead.size() <= 2 * room) {
    return;
  }
  steps += worker.ahead.size() - room;
  for (size_t i = worker.ahead.size(); i > room; --i) {
    const AttemptId attempt = worker.ahead[i - 1];
    Flight& flight = flights.at(attempt);
    if (!flight.running && !flight.taken_back) {
      take_back(attempt, flight);
    }
  }
}

// Somebody of this priority could start but for limits that attempts hold which wait ahead.
void Core::State::take_back_for_limit(const Request& request, int32_t priority) {
  for (const LimitUse& use : request.limits) {
    Amount missing = use.amount - limits_free[use.limit.index()];
    std::vector<AttemptId> holders;
    Amount held = 0;
    for (const AttemptId attempt : limited_ahead) {
      const Flight& flight = flights.at(attempt);
      const Amount amount = amount_of(request_of(flight.request), use.limit);
      if (flight.taken_back) {
        missing -= amount;
      } else if (amount > 0 && !flight.running && priority_of(attempt) < priority) {
        holders.push_back(attempt);
        held += amount;
      }
    }
    if (held < missing) {
      return;  // it would not help
    }
    for (; missing > 0; holders.pop_back()) {
      Flight& flight = flights.at(holders.back());
      missing -= amount_of(request_of(flight.request), use.limit);
      take_back(holders.back(), flight);
    }
  }
}

// A worker with free slots, for which nothing is ready, gets what waits ahead elsewhere.
void Core::State::take_back_for_idle(std::vector<Donor>& donors) {
  Resources too_small;  // nothing fits where there is no more room than this
  steps += workers.size();
  for (size_t w = 0; w < workers.size(); ++w) {
    if (!workers[w].accepts() || workers[w].doubted() || !workers[w].ahead.empty()) {
      continue;
    }
    while (true) {
      Resources room = workers[w].free;
      room -= workers[w].promised;
      if (room.cpus <= 0 || too_small.covers(room)) {
        break;
      }
      const AttemptId attempt = find_take_back(donors, WorkerId(w), room);
      if (!attempt.valid()) {
        too_small = room;
        break;
      }
      Flight& flight = flights.at(attempt);
      flight.wanted_by = WorkerId(w);
      workers[w].promised += request_of(flight.request).resources;
      take_back(attempt, flight);
    }
  }
}

// The last attempt, on the worker with the most left, that has not started and would fit.
AttemptId Core::State::find_take_back(std::vector<Donor>& donors, WorkerId taker,
                                      const Resources& room) {
  AttemptId best;
  size_t best_left = 0;
  steps += donors.size();
  for (Donor& donor : donors) {
    const std::vector<AttemptId>& ahead = at(donor.worker).ahead;
    const auto gone = [&](const Flight& flight) { return flight.running || flight.taken_back; };
    for (; donor.left > 0 && gone(flights.at(ahead[donor.left - 1])); --donor.left) {
      ++steps;
    }
    if (donor.left <= best_left) {
      continue;
    }
    for (size_t i = donor.left; i > 0; --i) {
      const Flight& flight = flights.at(ahead[i - 1]);
      ++steps;
      if (!gone(flight) && avoided_by(flight.instance) != taker &&
          room.covers(request_of(flight.request).resources)) {
        best = ahead[i - 1];
        best_left = donor.left;
        break;
      }
    }
  }
  return best;
}

}  // namespace sluice::scheduler
