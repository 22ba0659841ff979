// What follows an attempt that did not succeed: another one, perhaps later and with more, or the
// instance's failure.
#include <algorithm>
#include <limits>
#include <utility>

#include "scheduler/core_state.h"

namespace sluice::scheduler {

namespace {

// Half the range: sums of a few never overflow.
constexpr int64_t kAmountMax = std::numeric_limits<int64_t>::max() / 2;

int64_t scaled(int64_t amount, uint32_t factor) {
  if (factor == 0) {
    return amount;
  }
  const int64_t most = kAmountMax / factor;
  const int64_t whole = amount / kFactorUnit;
  return whole >= most ? kAmountMax : whole * factor + amount % kFactorUnit * factor / kFactorUnit;
}

}  // namespace

bool Core::State::may_retry(InstanceId instance, const event::AttemptFailed& report) const {
  const uint8_t charged = troubles.at(instance).charged[static_cast<size_t>(report.cause)];
  if (report.cause == Cause::kLost) {
    return charged < kLostAttemptsMax;
  }
  const RetryPolicy& retry = spec_of(instance).retry;
  if (report.cause == Cause::kExit && !retry.exit_codes.empty() &&
      std::find(retry.exit_codes.begin(), retry.exit_codes.end(), report.exit_code) ==
          retry.exit_codes.end()) {
    return false;
  }
  return charged <= retry.max[static_cast<size_t>(report.cause)] &&
         charged < std::numeric_limits<uint8_t>::max();
}

void Core::State::charge(const Flight& flight, event::AttemptFailed report) {
  const InstanceId instance = flight.instance;
  if (doubt_worker(flight, report)) {
    decision::AttemptEnded over{instance, std::move(report)};
    over.had = over.next = {request_of(flight.request).resources, flight.timeout};
    over.elsewhere = true;
    emit(std::move(over));
    requeue(instance);
    return;
  }
  uint8_t& charged = troubles[instance].charged[static_cast<size_t>(report.cause)];
  if (charged < std::numeric_limits<uint8_t>::max()) {
    ++charged;
  }
  decision::AttemptEnded over{instance, std::move(report)};
  over.had = {request_of(flight.request).resources, flight.timeout};
  over.next = over.had;
  over.final = !may_retry(instance, over.report);
  if (!over.final && !plan_next(over)) {
    over.final = over.no_larger = true;
  }
  const bool again = !over.final;
  if (again) {
    escalate(over);
  }
  emit(std::move(over));
  if (again) {
    requeue(instance);
  } else {
    fail(instance);
  }
}

// Fills in what the next attempt gets. False: it should get more memory, and no worker has more.
// Where the task asks for no memory, what the attempt used is what there was.
bool Core::State::plan_next(decision::AttemptEnded& over) const {
  const RetryChange& change =
      spec_of(over.instance).retry.change[static_cast<size_t>(over.report.cause)];
  over.delay = change.delay;
  over.next.timeout.ns = scaled(over.had.timeout.ns, change.timeout_factor);
  if (change.memory_factor <= kFactorUnit) {
    return true;
  }
  const int64_t had = over.had.resources.memory_bytes;
  const int64_t most = most_memory(over.had.resources.cpus);
  if (had > 0 && had >= most) {
    return false;
  }
  const int64_t base = had > 0 ? had : over.report.usage.memory_peak_bytes;
  over.next.resources.memory_bytes = std::min(scaled(base, change.memory_factor), most);
  return true;
}

int64_t Core::State::most_memory(int32_t cpus) const {
  int64_t most = 0;
  for (const WorkerRecord& worker : workers) {
    if (worker.alive() && worker.total.cpus >= cpus) {
      most = std::max(most, worker.total.memory_bytes);
    }
  }
  return most;
}

// To be called while the instance is in no queue: its request changes.
void Core::State::escalate(const decision::AttemptEnded& over) {
  InstanceRecord& record = at(over.instance);
  if (over.next != over.had) {
    Request request = request_of(request_of(over.instance));
    request.resources = over.next.resources;
    escalations[over.instance] = {requests.intern(request), over.next.timeout};
    record.escalated = true;
    queues.resize(2 * requests.size());
  }
  if (over.delay > Duration{}) {
    record.delayed = true;
    delayed.emplace(now + over.delay, over.instance);
    delayed_until[over.instance] = now + over.delay;
  }
}

void Core::State::end_delays() {
  while (!delayed.empty() && delayed.begin()->first <= now) {
    const InstanceId instance = delayed.begin()->second;
    delayed.erase(delayed.begin());
    delayed_until.erase(instance);
    at(instance).delayed = false;
    settle(instance);
  }
}

}  // namespace sluice::scheduler
