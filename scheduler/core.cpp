#include "scheduler/core.h"

#include <algorithm>
#include <utility>

#include "scheduler/check.h"
#include "scheduler/core_state.h"
#include "scheduler/ranking.h"

namespace sluice::scheduler {

Core::State::State(const Graph& graph_, const CoreOptions& options_)
    : graph(graph_),
      options(options_),
      objects(graph_, changes),
      gates(graph_, changes),
      requests(graph_.requests()),
      instances(graph_.instance_count()),
      start_order(scheduler::start_order(graph_)),
      tasks(graph_.task_count()),
      queues(2 * graph_.requests().size()),
      object_marks(graph_.object_count()) {
  for (size_t i = 0; i < start_order.size(); ++i) {
    at(start_order[i]).order = static_cast<uint32_t>(i);
  }
  for (const Limit& limit : graph.limits()) {
    limits_free.push_back(limit.total);
  }
  state_counts[static_cast<size_t>(InstanceState::kWaiting)] = instances.size();
}

AttemptId Core::State::new_attempt(InstanceId instance) {
  attempt_instance.push_back(instance);
  return AttemptId::make(options.epoch, static_cast<uint32_t>(attempt_instance.size()));
}

// The driver comes at next_deadline() at the latest, which is never farther than `silent_after`
// while there are workers. If it comes much later, it was not there to listen (a suspended job, a
// machine that slept), and that time is no silence of the workers.
void Core::State::advance(Instant given) {
  const Duration away = given - now;
  now = given;
  if (away <= options.silent_after * 2) {
    return;
  }
  for (WorkerRecord& worker : workers) {
    worker.heard = worker.heard + away;
  }
}

// Anything a worker says is a sign of life. What a lost or unknown worker says does not count.
bool Core::State::heard_from(WorkerId id) {
  if (id.index() >= workers.size() || !at(id).joined || at(id).lost) {
    return false;
  }
  WorkerRecord& worker = at(id);
  worker.heard = now;
  if (worker.silent) {
    worker.silent = false;
    emit(decision::WorkerChanged{id, decision::WorkerState::kAlive});
  }
  return true;
}

template <class E>
void Core::State::on_worker_event(const E& report) {
  if (heard_from(report.worker)) {
    on(report);
  }
}

void Core::State::dispatch(const Event& event) {
  std::visit(
      [this](const auto& it) {
        using E = std::decay_t<decltype(it)>;
        if constexpr (requires { it.worker; } && !std::is_same_v<E, event::WorkerJoined> &&
                      !std::is_same_v<E, event::WorkerLost>) {
          on_worker_event(it);
        } else {
          on(it);
        }
      },
      event);
}

Core::Core(const Graph& graph, const CoreOptions& options)
    : state_(std::make_unique<State>(graph, options)) {}
Core::~Core() = default;
Core::Core(Core&&) noexcept = default;
Core& Core::operator=(Core&&) noexcept = default;

void Core::apply(Instant now, const Event& event, std::vector<Decision>& out) {
  if (state_->ended) {
    return;
  }
  state_->advance(now);
  state_->out = &out;
  state_->dispatch(event);
  state_->drain();
  state_->check_end();
  state_->out = nullptr;
}

void Core::schedule(Instant now, std::vector<Decision>& out) {
  if (!state_->begun || state_->ended || state_->stop != State::Stop::kNo) {
    return;
  }
  state_->advance(now);
  state_->out = &out;
  state_->schedule();
  state_->out = nullptr;
}

Instant Core::next_deadline() const {
  Instant next = Instant::never();
  if (state_->ended) {
    return next;
  }
  if (!state_->delayed.empty()) {
    next = state_->delayed.begin()->first;
  }
  for (const State::WorkerRecord& worker : state_->workers) {
    if (worker.joined && !worker.lost) {
      const Duration patience =
          worker.silent ? state_->options.lost_after : state_->options.silent_after;
      next = std::min({next, worker.heard + patience, state_->now + state_->options.silent_after});
    }
  }
  return next;
}

bool Core::ended() const { return state_->ended; }
uint64_t Core::decision_count() const { return state_->decision_count; }
uint64_t Core::steps() const { return state_->steps; }
bool Core::waits_for_sync() const { return !state_->idle.empty() && !state_->ended; }

bool Core::workers_supplied() const {
  bool any = false;
  for (const State::WorkerRecord& worker : state_->workers) {
    if (!worker.alive() || worker.slots.empty()) {
      continue;
    }
    if (worker.ahead.size() < worker.slots.size()) {
      return false;
    }
    any = true;
  }
  return any;
}

Counts Core::counts() const {
  const auto count = [this](InstanceState state) {
    return state_->state_counts[static_cast<size_t>(state)];
  };
  Counts counts;
  counts.waiting = count(InstanceState::kWaiting);
  counts.blocked = count(InstanceState::kBlocked);
  counts.ready = count(InstanceState::kReady);
  counts.assigned = count(InstanceState::kAssigned);
  counts.running = count(InstanceState::kRunning);
  counts.done = count(InstanceState::kDone);
  counts.failed = count(InstanceState::kFailed);
  counts.skipped = count(InstanceState::kSkipped);
  counts.left_out = count(InstanceState::kLeftOut);
  counts.restored = state_->restored_count;
  counts.results_pending = state_->objects.pending_count();
  return counts;
}

InstanceState Core::state(InstanceId instance) const { return state_->at(instance).state; }
Hash128 Core::key(InstanceId instance) const { return state_->at(instance).key; }
Hash128 Core::content(ObjectId object) const { return state_->objects.content(object); }
AttemptId Core::current_attempt(InstanceId instance) const { return state_->at(instance).attempt; }

WorkerId Core::worker_of(InstanceId instance) const {
  const auto flight = state_->flights.find(state_->at(instance).attempt);
  return flight == state_->flights.end() ? WorkerId() : flight->second.worker;
}

bool Core::durable(ObjectId object) const { return state_->objects.durable(object); }

std::vector<WorkerId> Core::replicas(ObjectId object) const {
  const std::span<const WorkerId> all = state_->objects.replicas(object);
  return {all.begin(), all.end()};
}

std::vector<InstanceId> Core::impossible() const {
  std::vector<bool> fits;
  for (size_t r = 0; r < state_->requests.size(); ++r) {
    fits.push_back(state_->fits_ever(RequestId(r)));
  }
  std::vector<InstanceId> found;
  for (size_t i = 0; i < state_->instances.size(); ++i) {
    const InstanceState state = state_->instances[i].state;
    const bool over = state == InstanceState::kDone || state == InstanceState::kFailed ||
                      state == InstanceState::kSkipped || state == InstanceState::kLeftOut;
    if (!over && !fits[state_->request_of(InstanceId(i)).index()]) {
      found.emplace_back(i);
    }
  }
  return found;
}

uint64_t Core::digest() const { return state_->digest.value(); }
void Core::check_invariants() const { state_->check_invariants(); }

}  // namespace sluice::scheduler
