#include "scheduler/agent.h"

#include <algorithm>
#include <set>
#include <utility>

#include "scheduler/check.h"

namespace sluice::scheduler {

namespace {

enum class Stage : uint8_t { kFetching, kStaging, kStaged, kRunning, kChecking };

struct Attempt {
  input::Start start;
  Stage stage = Stage::kFetching;
  size_t inputs_missing = 0;
  std::vector<ObjectId> uses;  // objects of this store that must stay while it lives
  // Of the running process: when the next signal is due.
  Instant deadline = Instant::never();
  bool stop_sent = false;
  bool kill_sent = false;
  bool stopping = false;   // because the core asked or the run ended: not the attempt's fault
  bool timed_out = false;  // because its time was up
  Usage usage;
};

struct Waiter {
  AttemptId attempt;
  WorkerId source;
};

// An object of this worker's store, or one that is on its way into it.
struct Holding {
  bool fetching = false;
  bool dropped = false;  // goes as soon as nothing here needs it
  uint32_t users = 0;    // live attempts
  uint32_t saves = 0;    // under way
};

bool queued(const Attempt& attempt) { return attempt.stage < Stage::kRunning; }

std::string seconds_text(Duration duration) {
  constexpr int64_t kMillisecond = 1'000'000;
  const int64_t milliseconds = duration.ns / kMillisecond;
  std::string fraction = std::to_string(milliseconds % 1000);
  fraction.insert(0, 3 - fraction.size(), '0');
  return std::to_string(milliseconds / 1000) + "." + fraction + " s";
}

}  // namespace

struct Agent::State {
  explicit State(const AgentOptions& given) : options(given), slots(given.resources) {}

  AgentOptions options;
  Slots slots;
  std::map<AttemptId, Attempt> attempts;
  std::vector<AttemptId> queue;  // queued attempts by priority, then in order of arrival
  bool may_launch = false;       // cores became free, or the queue has changed
  std::set<std::pair<Instant, AttemptId>> deadlines;
  std::map<ObjectId, Holding> objects;
  std::map<ObjectId, std::vector<Waiter>> waiters;  // for objects that are being fetched
  // Durable files of the run directory, used in place: they are looked up, never held.
  std::map<ObjectId, std::vector<Waiter>> in_place;
  std::set<std::pair<AttemptId, ObjectId>> parts;  // that are on their way
  size_t saves = 0;
  bool leaving = false;
  bool left = false;
  Instant last_report;

  // Of the call of apply that is under way.
  Instant now;
  std::vector<Effect>* out = nullptr;

  template <class E>
  void emit(E effect) {
    out->emplace_back(std::move(effect));
  }
  template <class E>
  void report(E event) {
    last_report = now;
    emit(effect::Report{std::move(event)});
  }
  [[nodiscard]] WorkerId self() const { return options.worker; }
  Attempt* find(AttemptId id) {
    const auto found = attempts.find(id);
    return found == attempts.end() ? nullptr : &found->second;
  }

  // -- objects
  void hold(ObjectId id);
  void drop(ObjectId id);
  void remove_if_unused(std::map<ObjectId, Holding>::iterator entry);
  std::vector<Waiter> take_waiters(ObjectId id);
  void want(AttemptId id, Attempt& attempt, ObjectId object, WorkerId source);
  void want_part(AttemptId id, Attempt& attempt, ObjectId object, WorkerId source);
  void arrived(const std::vector<Waiter>& waiting);
  void give_back_waiters(const std::vector<Waiter>& waiting, ObjectId missing);

  // -- attempts
  [[nodiscard]] ObjectId first_missing(const input::Start& start) const;
  void enqueue(AttemptId id, int32_t priority);
  void stage_if_complete(AttemptId id, Attempt& attempt);
  void launch_what_fits();
  void launch(AttemptId id, Attempt& attempt, std::vector<int32_t> cores);
  void free_slot(AttemptId id);
  void set_deadline(AttemptId id, Attempt& attempt, Instant at);
  void forget(AttemptId id, bool failed);
  void give_back(AttemptId id, ObjectId missing = {}, WorkerId source = {});
  void fail(AttemptId id, event::AttemptFailed failure);
  void stop(AttemptId id);
  void send_stop(AttemptId id, Attempt& attempt);
  void send_kill(AttemptId id, Attempt& attempt);
  void process_gone(AttemptId id, Attempt& attempt, const input::Exited& exited);
  void leave_if_empty();

  void apply(const input::Start& in);
  void apply(const input::TakeBack& in);
  void apply(const input::Stop& in) { stop(in.attempt); }
  void apply(const input::Save& in);
  void apply(const input::Drop& in) { drop(in.object); }
  void apply(const input::Leave& in);
  void apply(const input::Fetched& in);
  void apply(const input::FetchFailed& in);
  void apply(const input::PartFetched& in);
  void apply(const input::PartFailed& in);
  void apply(const input::ObjectLost& in);
  void apply(const input::Staged& in);
  void apply(const input::StageFailed& in);
  void apply(const input::StartFailed& in);
  void apply(const input::Exited& in);
  void apply(const input::Checked& in);
  void apply(const input::CheckFailed& in);
  void apply(const input::Saved& in);
  void apply(const input::SaveFailed& in);
  void apply(const input::Tick& in);

  void check_attempts() const;
  void check_objects() const;
};

// -- objects --------------------------------------------------------------------------------------

// The store has the object now, whatever was known of it before.
void Agent::State::hold(ObjectId id) {
  Holding& holding = objects[id];
  holding.fetching = false;
  holding.dropped = false;
  arrived(take_waiters(id));
}

std::vector<Waiter> Agent::State::take_waiters(ObjectId id) {
  auto node = waiters.extract(id);
  return node.empty() ? std::vector<Waiter>() : std::move(node.mapped());
}

// The core's view and ours cross on the way: an object that a live attempt uses stays until that
// attempt has ended.
void Agent::State::drop(ObjectId id) {
  const auto entry = objects.find(id);
  if (entry == objects.end()) return;
  entry->second.dropped = true;
  remove_if_unused(entry);
}

void Agent::State::remove_if_unused(std::map<ObjectId, Holding>::iterator entry) {
  const Holding& holding = entry->second;
  if (!holding.dropped || holding.fetching || holding.users > 0 || holding.saves > 0) return;
  emit(effect::RemoveObject{entry->first});
  objects.erase(entry);
}

// Registers the attempt's need of one input, and starts a fetch unless the object is here or on its
// way already.
void Agent::State::want(AttemptId id, Attempt& attempt, ObjectId object, WorkerId source) {
  const auto known = objects.find(object);
  const auto looked_up = in_place.find(object);
  if (known == objects.end() && looked_up != in_place.end()) {
    looked_up->second.push_back({id, source});
    ++attempt.inputs_missing;
    return;
  }
  if (known == objects.end() && !source.valid()) {
    in_place[object].push_back({id, source});
    ++attempt.inputs_missing;
    emit(effect::Fetch{object, source});
    return;
  }
  const bool start_fetch = known == objects.end();
  Holding& holding = objects[object];
  if (start_fetch) {
    holding.fetching = true;
    emit(effect::Fetch{object, source});
  }
  if (holding.dropped) {
    holding.dropped = false;
    if (!holding.fetching) report(event::ReplicaAdded{self(), object});
  }
  ++holding.users;
  attempt.uses.push_back(object);
  if (holding.fetching) {
    waiters[object].push_back({id, source});
    ++attempt.inputs_missing;
  }
}

// Without one there is nobody to ask for a part.
void Agent::State::want_part(AttemptId id, Attempt& attempt, ObjectId object, WorkerId source) {
  if (!source.valid() || objects.count(object) > 0) {
    want(id, attempt, object, source);
    return;
  }
  ++attempt.inputs_missing;
  parts.insert({id, object});
  emit(effect::FetchPart{id, object, source});
}

void Agent::State::apply(const input::PartFetched& in) {
  if (parts.erase({in.attempt, in.object}) == 0) return;
  Attempt& attempt = attempts.at(in.attempt);
  --attempt.inputs_missing;
  stage_if_complete(in.attempt, attempt);
}

void Agent::State::apply(const input::PartFailed& in) {
  if (parts.erase({in.attempt, in.object}) == 0) return;
  Attempt& attempt = attempts.at(in.attempt);
  const auto& inputs = attempt.start.decision.inputs;
  const auto place = std::find_if(inputs.begin(), inputs.end(),
                                  [&in](const InputPlace& one) { return one.object == in.object; });
  SLUICE_ASSERT(place != inputs.end(), in.attempt, in.object);
  const WorkerId source = place->source;
  if (in.source_lost) {
    give_back(in.attempt, in.object, source);
    return;
  }
  --attempt.inputs_missing;
  want(in.attempt, attempt, in.object, source);
  stage_if_complete(in.attempt, attempt);
}

void Agent::State::arrived(const std::vector<Waiter>& waiting) {
  for (const Waiter& waiter : waiting) {
    Attempt* attempt = find(waiter.attempt);
    if (attempt == nullptr) continue;
    --attempt->inputs_missing;
    stage_if_complete(waiter.attempt, *attempt);
  }
}

void Agent::State::give_back_waiters(const std::vector<Waiter>& waiting, ObjectId missing) {
  for (const Waiter& waiter : waiting) {
    if (find(waiter.attempt) != nullptr) give_back(waiter.attempt, missing, waiter.source);
  }
}

void Agent::State::apply(const input::Fetched& in) {
  if (const auto entry = in_place.find(in.object); entry != in_place.end()) {
    const std::vector<Waiter> waiting = std::move(entry->second);
    in_place.erase(entry);
    for (const Waiter& waiter : waiting) {
      Attempt* attempt = find(waiter.attempt);
      if (attempt == nullptr) continue;
      --attempt->inputs_missing;
      // It may use the file only if it was told so: else it needs a copy of its own.
      if (waiter.source.valid()) want(waiter.attempt, *attempt, in.object, waiter.source);
      stage_if_complete(waiter.attempt, *attempt);
    }
    return;
  }
  const auto entry = objects.find(in.object);
  if (entry == objects.end() || !entry->second.fetching) return;
  if (entry->second.dropped && entry->second.users == 0) {
    take_waiters(in.object);  // they are gone
    entry->second.fetching = false;
    remove_if_unused(entry);
    return;
  }
  const bool dropped = entry->second.dropped;
  if (!dropped) report(event::ReplicaAdded{self(), in.object});
  hold(in.object);
  objects.at(in.object).dropped = dropped;
}

void Agent::State::apply(const input::FetchFailed& in) {
  std::vector<Waiter> waiting;
  if (const auto entry = in_place.find(in.object); entry != in_place.end()) {
    waiting = std::move(entry->second);
    in_place.erase(entry);
  } else if (const auto known = objects.find(in.object);
             known != objects.end() && known->second.fetching) {
    waiting = take_waiters(in.object);
    // Its users are these waiters, which go now, and their `uses` find nothing to count down.
    objects.erase(known);
  }
  give_back_waiters(waiting, in.object);
}

void Agent::State::apply(const input::ObjectLost& in) {
  const auto entry = objects.find(in.object);
  if (entry == objects.end() || entry->second.fetching) return;
  if (!entry->second.dropped) report(event::ReplicaLost{self(), in.object});
  for (const AttemptId id : std::vector<AttemptId>(queue)) {
    const std::vector<ObjectId>& uses = attempts.at(id).uses;
    if (std::find(uses.begin(), uses.end(), in.object) != uses.end())
      give_back(id, in.object, self());
  }
  drop(in.object);
}

void Agent::State::apply(const input::Save& in) {
  const auto entry = objects.find(in.object);
  if (entry == objects.end() || entry->second.fetching) {
    report(event::ObjectSaveFailed{self(), in.object, in.save, "the worker does not hold it"});
    return;
  }
  ++entry->second.saves;
  ++saves;
  emit(effect::SaveObject{in.object, in.save, in.destination});
}

void Agent::State::apply(const input::Saved& in) {
  report(event::ObjectSaved{self(), in.object, in.save});
  const auto entry = objects.find(in.object);
  SLUICE_ASSERT(entry != objects.end() && entry->second.saves > 0, in.object, in.save);
  --entry->second.saves;
  --saves;
  remove_if_unused(entry);
}

void Agent::State::apply(const input::SaveFailed& in) {
  report(event::ObjectSaveFailed{self(), in.object, in.save, in.reason});
  const auto entry = objects.find(in.object);
  SLUICE_ASSERT(entry != objects.end() && entry->second.saves > 0, in.object, in.save);
  --entry->second.saves;
  --saves;
  remove_if_unused(entry);
}

// -- queue ----------------------------------------------------------------------------------------

// An input that the core believes to be here and that is not.
ObjectId Agent::State::first_missing(const input::Start& start) const {
  for (const InputPlace& place : start.decision.inputs) {
    if (place.source == self() && objects.find(place.object) == objects.end()) return place.object;
  }
  return {};
}

void Agent::State::apply(const input::Start& in) {
  const AttemptId id = in.decision.attempt;
  SLUICE_ASSERT(id.valid() && find(id) == nullptr, id);
  SLUICE_ASSERT(slots.total().covers(in.request), id, in.request.cpus, slots.total().cpus,
                in.request.memory_bytes, slots.total().memory_bytes);
  const ObjectId missing = first_missing(in);
  if (missing.valid()) report(event::ReplicaLost{self(), missing});
  if (missing.valid() || leaving) {
    report(event::AttemptReturned{self(), id, missing, missing.valid() ? self() : WorkerId()});
    emit(effect::Clean{id, false});
    return;
  }
  Attempt& attempt = attempts[id];
  attempt.start = in;
  enqueue(id, in.decision.priority);
  SLUICE_ASSERT(in.partial.empty() || in.partial.size() == in.decision.inputs.size(), id);
  for (size_t i = 0; i < in.decision.inputs.size(); ++i) {
    const InputPlace& place = in.decision.inputs[i];
    if (!in.partial.empty() && in.partial[i]) {
      want_part(id, attempt, place.object, place.source);
    } else {
      want(id, attempt, place.object, place.source);
    }
  }
  stage_if_complete(id, attempt);
}

// By priority, then in order of arrival.
void Agent::State::enqueue(AttemptId id, int32_t priority) {
  const auto goes_first = [&](AttemptId other) {
    return attempts.at(other).start.decision.priority >= priority;
  };
  if (queue.empty() || goes_first(queue.back())) {
    queue.push_back(id);
    return;
  }
  queue.insert(std::partition_point(queue.begin(), queue.end(), goes_first), id);
}

void Agent::State::stage_if_complete(AttemptId id, Attempt& attempt) {
  if (attempt.stage != Stage::kFetching || attempt.inputs_missing > 0) return;
  attempt.stage = Stage::kStaging;
  emit(effect::Stage{id});
}

void Agent::State::apply(const input::Staged& in) {
  Attempt* attempt = find(in.attempt);
  if (attempt == nullptr || attempt->stage != Stage::kStaging) return;
  attempt->stage = Stage::kStaged;
  may_launch = true;
}

void Agent::State::apply(const input::StageFailed& in) {
  const Attempt* attempt = find(in.attempt);
  if (attempt == nullptr || attempt->stage != Stage::kStaging) return;
  event::AttemptFailed failure;
  failure.cause = in.cause;
  failure.detail = in.reason;
  fail(in.attempt, std::move(failure));
}

// By priority, then in order of arrival. One that is staged and does not fit holds up the later
// ones, so that a wide attempt is not starved by narrow ones; one that still waits for its inputs
// does not.
void Agent::State::launch_what_fits() {
  if (leaving || !may_launch) return;
  may_launch = false;
  for (size_t next = 0; next < queue.size();) {
    const AttemptId id = queue[next];
    Attempt& attempt = attempts.at(id);
    if (attempt.stage != Stage::kStaged) {
      ++next;
      continue;
    }
    auto cores = slots.take(id, attempt.start.request);
    if (!cores) return;
    queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(next));
    launch(id, attempt, *std::move(cores));
  }
}

void Agent::State::launch(AttemptId id, Attempt& attempt, std::vector<int32_t> cores) {
  attempt.stage = Stage::kRunning;
  if (attempt.start.timeout > Duration{}) set_deadline(id, attempt, now + attempt.start.timeout);
  report(event::AttemptStarted{self(), id});
  emit(effect::Launch{id, std::move(cores)});
}

void Agent::State::apply(const input::TakeBack& in) {
  const Attempt* attempt = find(in.attempt);
  if (attempt != nullptr && queued(*attempt)) give_back(in.attempt);
}

void Agent::State::give_back(AttemptId id, ObjectId missing, WorkerId source) {
  report(event::AttemptReturned{self(), id, missing, source});
  forget(id, false);
}

// -- processes ------------------------------------------------------------------------------------

void Agent::State::send_stop(AttemptId id, Attempt& attempt) {
  attempt.stop_sent = true;
  set_deadline(id, attempt, now + attempt.start.grace);
  emit(effect::Signal{id, false});
}

void Agent::State::send_kill(AttemptId id, Attempt& attempt) {
  attempt.kill_sent = true;
  set_deadline(id, attempt, Instant::never());
  emit(effect::Signal{id, true});
}

// An attempt whose process is gone already goes on to its ordinary end.
void Agent::State::stop(AttemptId id) {
  Attempt* attempt = find(id);
  if (attempt == nullptr) return;
  if (queued(*attempt)) {
    give_back(id);
    return;
  }
  if (attempt->stage != Stage::kRunning || attempt->stop_sent) return;
  attempt->stopping = true;
  send_stop(id, *attempt);
}

void Agent::State::apply(const input::StartFailed& in) {
  const Attempt* attempt = find(in.attempt);
  if (attempt == nullptr || attempt->stage != Stage::kRunning) return;
  free_slot(in.attempt);
  if (attempt->stopping) {  // no failure: it was not to run any more
    report(event::AttemptStopped{self(), in.attempt, {}});
    forget(in.attempt, false);
    return;
  }
  event::AttemptFailed failure;
  failure.cause = Cause::kStart;
  failure.detail = in.reason;
  fail(in.attempt, std::move(failure));
}

void Agent::State::apply(const input::Exited& in) {
  Attempt* attempt = find(in.attempt);
  if (attempt == nullptr || attempt->stage != Stage::kRunning) return;
  free_slot(in.attempt);
  process_gone(in.attempt, *attempt, in);
}

void Agent::State::process_gone(AttemptId id, Attempt& attempt, const input::Exited& exited) {
  attempt.usage = exited.usage;
  set_deadline(id, attempt, Instant::never());
  if (attempt.stopping) {
    report(event::AttemptStopped{self(), id, exited.usage});
    forget(id, false);
    return;
  }
  const bool good = exited.exit_code == 0 && exited.signal == 0 && !exited.in_setup;
  if (!attempt.timed_out && good) {
    attempt.stage = Stage::kChecking;
    emit(effect::Check{id});
    return;
  }
  event::AttemptFailed failure;
  failure.exit_code = exited.exit_code;
  failure.signal = exited.signal;
  failure.stderr_tail = exited.stderr_tail;
  const std::string subject = exited.in_setup ? "setup " : "";
  if (attempt.timed_out) {
    failure.cause = Cause::kTimeout;
    failure.detail = "ran longer than its timeout of " + seconds_text(attempt.start.timeout);
  } else if (exited.signal != 0) {
    failure.cause = exited.in_setup ? Cause::kSetup : Cause::kSignal;
    failure.detail = subject + "ended by signal " + std::to_string(exited.signal);
  } else {
    failure.cause = exited.in_setup ? Cause::kSetup : Cause::kExit;
    failure.detail = subject + "exited with " + std::to_string(exited.exit_code);
  }
  if (exited.memory_ran_out && !attempt.timed_out) {
    failure.cause = Cause::kOom;
    failure.detail += ", while the kernel killed a process on its node for want of memory";
  }
  if (!exited.note.empty()) failure.detail += exited.note;
  fail(id, std::move(failure));
}

void Agent::State::apply(const input::Checked& in) {
  Attempt* attempt = find(in.attempt);
  if (attempt == nullptr || attempt->stage != Stage::kChecking) return;
  const input::Start& start = attempt->start;
  SLUICE_ASSERT(in.outputs.size() == start.outputs.size(), in.outputs.size(), start.outputs.size());
  report(event::AttemptFinished{self(), in.attempt, in.outputs, attempt->usage});
  for (size_t i = 0; i < start.outputs.size(); ++i) {
    if (start.outputs[i] != OutputKind::kValue) hold(ObjectId(start.first_object.index() + i));
  }
  forget(in.attempt, false);
}

void Agent::State::apply(const input::CheckFailed& in) {
  const Attempt* attempt = find(in.attempt);
  if (attempt == nullptr || attempt->stage != Stage::kChecking) return;
  event::AttemptFailed failure;
  failure.cause = in.cause;
  failure.detail = in.reason;
  fail(in.attempt, std::move(failure));
}

void Agent::State::fail(AttemptId id, event::AttemptFailed failure) {
  // What could not be staged has nothing to show, and a full disk must not be filled further.
  const bool keep_copy = failure.cause != Cause::kStaging && failure.cause != Cause::kDisk;
  failure.worker = self();
  failure.attempt = id;
  failure.usage = attempts.at(id).usage;
  report(std::move(failure));
  forget(id, keep_copy);
}

void Agent::State::forget(AttemptId id, bool failed) {
  const auto entry = attempts.find(id);
  const std::vector<ObjectId> uses = std::move(entry->second.uses);
  set_deadline(id, entry->second, Instant::never());
  if (queued(entry->second)) {
    queue.erase(std::find(queue.begin(), queue.end(), id));
    may_launch = true;  // it may have held up others
  }
  emit(effect::Clean{id, failed});
  attempts.erase(entry);
  parts.erase(parts.lower_bound({id, ObjectId(0)}), parts.upper_bound({id, ObjectId()}));
  for (const ObjectId object : uses) {
    const auto holding = objects.find(object);
    if (holding == objects.end()) continue;
    --holding->second.users;
    remove_if_unused(holding);
  }
}

void Agent::State::free_slot(AttemptId id) {
  slots.give_back(id);
  may_launch = true;
}

void Agent::State::set_deadline(AttemptId id, Attempt& attempt, Instant at) {
  if (attempt.deadline != Instant::never()) deadlines.erase({attempt.deadline, id});
  attempt.deadline = at;
  if (at != Instant::never()) deadlines.insert({at, id});
}

// -- time and the end -----------------------------------------------------------------------------

void Agent::State::apply(const input::Tick&) {
  while (!deadlines.empty() && deadlines.begin()->first <= now) {
    const AttemptId id = deadlines.begin()->second;
    Attempt& attempt = attempts.at(id);
    if (attempt.stop_sent) {
      send_kill(id, attempt);
    } else {
      attempt.timed_out = true;
      send_stop(id, attempt);
    }
  }
  if (!left && now >= last_report + options.heartbeat) report(event::Heartbeat{self()});
}

void Agent::State::apply(const input::Leave&) {
  leaving = true;
  for (const AttemptId id : std::vector<AttemptId>(queue)) give_back(id);
  for (auto& [id, attempt] : attempts) {
    if (attempt.stage != Stage::kRunning) continue;
    attempt.stopping = true;
    if (!attempt.kill_sent) send_kill(id, attempt);
  }
}

void Agent::State::leave_if_empty() {
  if (!leaving || left || !attempts.empty() || saves > 0) return;
  left = true;
  emit(effect::Left{});
}

// -- invariants -----------------------------------------------------------------------------------

void Agent::State::check_attempts() const {
  std::map<AttemptId, size_t> waits;
  for (const auto* table : {&waiters, &in_place}) {
    for (const auto& [object, waiting] : *table) {
      for (const Waiter& waiter : waiting) ++waits[waiter.attempt];
    }
  }
  for (const auto& [id, object] : parts) ++waits[id];
  Resources used;
  size_t queued_count = 0;
  size_t deadline_count = 0;
  for (const auto& [id, attempt] : attempts) {
    const auto found = waits.find(id);
    const size_t expected = found == waits.end() ? 0 : found->second;
    SLUICE_ASSERT(attempt.inputs_missing == expected, id, attempt.inputs_missing, expected);
    SLUICE_ASSERT((attempt.stage == Stage::kFetching) == (expected > 0), id);
    if (attempt.stage == Stage::kRunning) used += attempt.start.request;
    if (queued(attempt)) ++queued_count;
    if (attempt.deadline == Instant::never()) continue;
    SLUICE_ASSERT(attempt.stage == Stage::kRunning, id);
    SLUICE_ASSERT(deadlines.count({attempt.deadline, id}) == 1, id);
    ++deadline_count;
  }
  SLUICE_ASSERT(deadlines.size() == deadline_count, deadlines.size(), deadline_count);
  SLUICE_ASSERT(queue.size() == queued_count, queue.size(), queued_count);
  const auto precedes = [this](AttemptId a, AttemptId b) {
    return attempts.at(a).start.decision.priority > attempts.at(b).start.decision.priority;
  };
  SLUICE_ASSERT(std::is_sorted(queue.begin(), queue.end(), precedes), queue.size());
  for (const AttemptId id : queue) SLUICE_ASSERT(queued(attempts.at(id)), id);
  used += slots.free();
  SLUICE_ASSERT(used == slots.total(), used.cpus, slots.total().cpus);
}

void Agent::State::check_objects() const {
  std::map<ObjectId, uint32_t> users;
  for (const auto& [id, attempt] : attempts) {
    for (const ObjectId object : attempt.uses) ++users[object];
  }
  size_t save_count = 0;
  for (const auto& [object, holding] : objects) {
    const auto found = users.find(object);
    const uint32_t expected = found == users.end() ? 0 : found->second;
    SLUICE_ASSERT(holding.users == expected, object, holding.users, expected);
    SLUICE_ASSERT(holding.fetching || waiters.count(object) == 0, object);
    SLUICE_ASSERT(!holding.dropped || holding.fetching || holding.users > 0 || holding.saves > 0,
                  object);
    users.erase(object);
    save_count += holding.saves;
  }
  for (const auto& [object, waiting] : waiters) {
    SLUICE_ASSERT(objects.count(object) == 1 && !waiting.empty(), object, waiting.size());
  }
  SLUICE_ASSERT(users.empty(), users.size());
  SLUICE_ASSERT(save_count == saves, save_count, saves);
}

// -- the class ------------------------------------------------------------------------------------

Agent::Agent(const AgentOptions& options) : state_(std::make_unique<State>(options)) {}
Agent::~Agent() = default;
Agent::Agent(Agent&&) noexcept = default;
Agent& Agent::operator=(Agent&&) noexcept = default;

void Agent::apply(Instant now, const AgentInput& input, std::vector<Effect>& out) {
  state_->now = now;
  state_->out = &out;
  std::visit([&](const auto& in) { state_->apply(in); }, input);
  state_->launch_what_fits();
  state_->leave_if_empty();
  state_->out = nullptr;
}

Instant Agent::next_deadline() const {
  if (state_->left) return Instant::never();
  const Instant heartbeat = state_->last_report + state_->options.heartbeat;
  const auto& deadlines = state_->deadlines;
  return deadlines.empty() ? heartbeat : std::min(heartbeat, deadlines.begin()->first);
}

size_t Agent::attempts() const { return state_->attempts.size(); }

size_t Agent::running() const {
  return static_cast<size_t>(
      std::count_if(state_->attempts.begin(), state_->attempts.end(),
                    [](const auto& entry) { return entry.second.stage == Stage::kRunning; }));
}

bool Agent::supplied() const { return !state_->queue.empty() && state_->queue.size() >= running(); }

const Slots& Agent::slots() const { return state_->slots; }

void Agent::check_invariants() const {
  state_->slots.check_invariants();
  state_->check_attempts();
  state_->check_objects();
}

}  // namespace sluice::scheduler
