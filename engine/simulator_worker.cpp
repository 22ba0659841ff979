#include <algorithm>
#include <utility>

#include "engine/simulator_world.h"
#include "scheduler/check.h"

namespace sluice::engine {

namespace effect = scheduler::effect;
namespace input = scheduler::input;
namespace message = io::message;
using scheduler::AgentInput;
using scheduler::AgentOptions;
using scheduler::AttemptId;
using scheduler::Duration;
using scheduler::GroupId;
using scheduler::Hash128;
using scheduler::Instant;
using scheduler::ObjectId;
using scheduler::OutputKind;
using scheduler::WorkerId;

namespace {

constexpr Duration kFetchLatency = scheduler::microseconds(30);
constexpr Duration kDeadPeerNoticed = scheduler::seconds(2);
constexpr Duration kSignalTakes = scheduler::milliseconds(2);
constexpr Duration kBrokenRuns = scheduler::milliseconds(50);

AgentOptions agent_options(WorkerId id, const WorkerPlan& plan) {
  AgentOptions options;
  options.worker = id;
  options.resources = plan.resources;
  return options;
}

}  // namespace

// -- virtual time ---------------------------------------------------------------------------------

void VirtualTime::at(Instant when, Action action) {
  SLUICE_ASSERT(when >= now_, when, now_);
  heap_.push_back({when, ++sequence_, std::move(action)});
  std::push_heap(heap_.begin(), heap_.end());
}

void VirtualTime::step() {
  SLUICE_ASSERT(!heap_.empty());
  std::pop_heap(heap_.begin(), heap_.end());
  const Entry entry = std::move(heap_.back());
  heap_.pop_back();
  now_ = entry.when;
  entry.action();
}

// -- the worker -----------------------------------------------------------------------------------

SimulatedWorker::SimulatedWorker(World& world, WorkerId id, const WorkerPlan& plan)
    : world_(world),
      id_(id),
      plan_(plan),
      agent_(agent_options(id, plan)),
      end_(world.network.end(id)) {}

const StoredObject* SimulatedWorker::stored(ObjectId object) const {
  const auto entry = store_.find(object);
  return alive_ && entry != store_.end() ? &entry->second : nullptr;
}

void SimulatedWorker::at(Instant when, VirtualTime::Action action) {
  world_.time.at(std::max(when, stalled_until_), [this, action = std::move(action)] {
    if (!alive_) return;
    if (world_.time.now() < stalled_until_) {
      at(stalled_until_, action);
    } else {
      action();
    }
  });
}

void SimulatedWorker::after(Duration delay, VirtualTime::Action action) {
  at(world_.time.now() + delay, std::move(action));
}

void SimulatedWorker::answer_after(Duration delay, AgentInput in) {
  after(delay, [this, in = std::move(in)] { give(in); });
}

void SimulatedWorker::join() {
  message::Hello hello;
  hello.host = "node" + std::to_string(id_.value);
  hello.node_key = hello.host;
  hello.resources = plan_.resources;
  tell(hello);
  arm_tick();
}

void SimulatedWorker::die() {
  if (!alive_) return;
  alive_ = false;
  world_.network.kill(id_);
  world_.referee.machine_gone(id_);
}

void SimulatedWorker::stall(Duration duration) {
  stalled_until_ = std::max(stalled_until_, world_.time.now() + duration);
}

void SimulatedWorker::give(const AgentInput& in) {
  std::vector<scheduler::Effect> effects;
  agent_.apply(now(), in, effects);
  for (const scheduler::Effect& effect : effects) {
    std::visit([this](const auto& e) { perform(e); }, effect);
  }
  const uint32_t every = world_.options.check_every;
  if (every > 0 && ++inputs_given_ % every == 0) agent_.check_invariants();
  arm_tick();
}

void SimulatedWorker::arm_tick() {
  const Instant deadline = world_.when(id_, agent_.next_deadline());
  if (deadline >= armed_) return;
  armed_ = deadline;
  at(deadline, [this, deadline] {
    if (armed_ == deadline) armed_ = Instant::never();
    if (agent_.next_deadline() <= now()) {
      give(input::Tick{});
    } else {
      arm_tick();
    }
  });
}

void SimulatedWorker::tell(const io::Message& message) {
  end_.send(WorkerId(0), io::Channel::kControl, io::encode(message));
}

void SimulatedWorker::poll() {
  if (world_.time.now() >= stalled_until_) {
    take_messages();
  } else {
    after(Duration{}, [this] { take_messages(); });
  }
}

void SimulatedWorker::take_messages() {
  end_.poll(
      [this](WorkerId, io::Channel, std::span<const std::byte> bytes) {
        const Expected<io::Message> decoded = world_.read(bytes);
        if (decoded) {
          received(*decoded);
        } else {  // it cannot know what it missed
          die();
          world_.death_noticed(id_);
        }
      },
      SIZE_MAX);
}

void SimulatedWorker::received(const io::Message& given) {
  if (const auto* start = std::get_if<message::Start>(&given)) {
    Attempt& attempt = attempts_[start->decision.attempt];
    attempt.start = *start;
    attempt.run = world_.model.run(world_.graph, start->decision.instance, start->decision.attempt);
    if (plan_.broken) {
      attempt.run = {};
      attempt.run.runs = kBrokenRuns;
      attempt.run.exit_code = 1;
    }
    input::Start in{start->decision,
                    start->decision.grant.resources,
                    start->decision.grant.timeout,
                    start->grace,
                    {},
                    {}};
    for (const io::AttemptOutput& output : start->spec.outputs) in.outputs.push_back(output.kind);
    if (!start->spec.outputs.empty()) in.first_object = start->spec.outputs.front().object;
    for (const scheduler::InputPlace& place : start->decision.inputs) {
      in.partial.push_back(place.source != id_ &&
                           world_.model.reads_part(start->decision.instance, place.object));
    }
    give(in);
  } else if (const auto* back = std::get_if<message::TakeBack>(&given)) {
    give(input::TakeBack{back->attempt});
  } else if (const auto* stop = std::get_if<message::Stop>(&given)) {
    give(input::Stop{stop->attempt});
  } else if (const auto* save = std::get_if<message::Save>(&given)) {
    give(input::Save{save->object, save->save, scheduler::Destination::kResults});
  } else if (const auto* drop = std::get_if<message::Drop>(&given)) {
    give(input::Drop{drop->object});
  } else if (const auto* lost = std::get_if<message::PeerLost>(&given)) {
    peer_lost(lost->worker);
  } else if (std::holds_alternative<message::Leave>(given)) {
    give(input::Leave{});
  } else {
    world_.referee.problem("a worker got a message that is not for workers");
  }
}

// -- inputs ---------------------------------------------------------------------------------------

bool SimulatedWorker::under_way(ObjectId object, uint64_t fetch) const {
  const auto found = fetches_.find(object);
  return found != fetches_.end() && found->second.number == fetch;
}

void SimulatedWorker::fetch_failed(ObjectId object, uint64_t fetch, const char* reason) {
  if (!under_way(object, fetch)) return;
  fetches_.erase(object);
  ++world_.fetches_failed;
  give(input::FetchFailed{object, reason});
}

void SimulatedWorker::peer_lost(WorkerId peer) {
  const std::map<ObjectId, Fetch> before = fetches_;
  for (const auto& [object, fetch] : before) {
    if (fetch.source == peer) fetch_failed(object, fetch.number, "the peer is lost");
  }
}

void SimulatedWorker::perform(const effect::Fetch& e) {
  const ObjectId object = e.object;
  const Fetch fetch{e.source, ++world_.fetches};
  fetches_[object] = fetch;
  if (fetch.source.valid()) {
    after(kFetchLatency, [this, object, fetch] { ask_source(object, fetch); });
    return;
  }
  after(Duration{}, [this, object, fetch] {
    if (world_.directory.file(object) == nullptr) {
      fetch_failed(object, fetch.number, "no such file in the run directory");
    } else if (under_way(object, fetch.number)) {
      fetches_.erase(object);
      give(input::Fetched{object});
    }
  });
}

// A source that stands still or is cut off answers when it goes on; a dead one never: that takes a
// while to see.
void SimulatedWorker::ask_source(ObjectId object, Fetch fetch) {
  const SimulatedWorker& peer = world_.worker(fetch.source);
  if (!under_way(object, fetch.number)) return;
  if (!peer.alive()) {
    after(kDeadPeerNoticed,
          [this, object, fetch] { fetch_failed(object, fetch.number, "the peer is gone"); });
    return;
  }
  const StoredObject* found = peer.stored(object);
  if (found == nullptr || world_.model.fetch_fails(object, fetch.number)) {
    after(kFetchLatency, [this, object, fetch] {
      fetch_failed(object, fetch.number, "the peer does not send it");
    });
    return;
  }
  const Instant answers = std::max(world_.time.now(), peer.stalled_until_);
  const Instant arrives =
      world_.network.passes(id_, fetch.source, answers + world_.model.transfer(found->bytes));
  at(arrives, [this, object, fetch, bytes = *found] { bring(object, fetch, bytes); });
}

void SimulatedWorker::bring(ObjectId object, Fetch fetch, StoredObject found) {
  if (!under_way(object, fetch.number)) return;
  if (!world_.worker(fetch.source).alive()) {
    after(kDeadPeerNoticed,
          [this, object, fetch] { fetch_failed(object, fetch.number, "the peer is gone"); });
    return;
  }
  if (world_.springs(PlantedBug::kFetchFlipped)) found.content.low ^= 1;
  fetches_.erase(object);
  store_[object] = found;
  give(input::Fetched{object});
}

// A part is a quarter, of the same content. It is made by a helper of the source, which may not.
void SimulatedWorker::perform(const effect::FetchPart& e) {
  const uint64_t number = ++world_.fetches;
  after(kFetchLatency, [this, e, number] {
    const SimulatedWorker& peer = world_.worker(e.source);
    const StoredObject* found = peer.stored(e.object);
    const bool fails = world_.model.fetch_fails(e.object, number);
    if (!peer.alive()) {
      answer_after(kDeadPeerNoticed, input::PartFailed{e.attempt, e.object, true});
    } else if (found == nullptr || fails) {
      answer_after(kFetchLatency, input::PartFailed{e.attempt, e.object});
    } else {
      const Instant answers = std::max(world_.time.now(), peer.stalled_until_);
      const Instant arrives =
          world_.network.passes(id_, e.source, answers + world_.model.transfer(found->bytes / 4));
      at(arrives, [this, e, part = *found] { bring_part(e, part); });
    }
  });
}

void SimulatedWorker::bring_part(const effect::FetchPart& wanted, StoredObject found) {
  const auto attempt = attempts_.find(wanted.attempt);
  if (!world_.worker(wanted.source).alive()) {
    answer_after(kDeadPeerNoticed, input::PartFailed{wanted.attempt, wanted.object, true});
  } else if (attempt != attempts_.end()) {
    attempt->second.parts[wanted.object] = found;
    give(input::PartFetched{wanted.attempt, wanted.object});
  }
}

// The bytes of every input must really be here, whatever core and agent believe.
bool SimulatedWorker::collect_inputs(Attempt& attempt) {
  std::map<ObjectId, Hash128> here;
  for (const scheduler::InputPlace& place : attempt.start.decision.inputs) {
    const auto part = attempt.parts.find(place.object);
    const StoredObject* found = part != attempt.parts.end() ? &part->second
                                : place.source.valid()      ? stored(place.object)
                                                            : world_.directory.file(place.object);
    if (found != nullptr) here[place.object] = found->content;
  }
  for (const GroupId group : world_.graph.inputs(attempt.start.decision.instance)) {
    for (const ObjectId object : world_.graph.group_objects(group)) {
      const auto found = here.find(object);
      const bool value = world_.graph.output(object).kind == OutputKind::kValue;
      const Hash128 content = value                 ? world_.referee.value(object)
                              : found == here.end() ? Hash128{}
                                                    : found->second;
      if (!content.known()) {
        world_.referee.problem(
            "attempt " + std::to_string(attempt.start.decision.attempt.number()) +
            " is staged without the bytes of object " + std::to_string(object.value));
        return false;
      }
      attempt.inputs.push_back(content);
    }
  }
  return true;
}

void SimulatedWorker::perform(const effect::Stage& e) {
  const AttemptId id = e.attempt;
  after(world_.model.options().stage, [this, id] {
    const auto entry = attempts_.find(id);
    if (entry == attempts_.end()) return;
    const Sabotage& sabotage = world_.options.sabotage;
    if (sabotage.is_full(FullTier::Step::kStaging, id_, world_.time.now())) {
      give(input::StageFailed{id, scheduler::Cause::kDisk, "the tier is full"});
    } else if (world_.model.stage_fails(id)) {
      give(input::StageFailed{id, scheduler::Cause::kStaging, "the model says so"});
    } else if (collect_inputs(entry->second)) {
      give(input::Staged{id});
    } else {
      give(input::StageFailed{id, scheduler::Cause::kStaging, "an input is missing"});
    }
  });
}

// -- processes ------------------------------------------------------------------------------------

void SimulatedWorker::perform(const effect::Launch& e) {
  const AttemptId id = e.attempt;
  Attempt& attempt = attempts_.at(id);
  attempt.running = true;
  attempt.started = now();
  world_.referee.launched(id_, id, attempt.start.decision.grant.resources, e.cores);
  if (attempt.run.hangs) return;
  if (world_.springs(PlantedBug::kRunTwice)) {
    world_.referee.launched(id_, id, attempt.start.decision.grant.resources, e.cores);
  }
  after(attempt.run.runs, [this, id, code = attempt.run.exit_code, signal = attempt.run.signal] {
    exit_process(id, code, signal);
  });
}

void SimulatedWorker::perform(const effect::Signal& e) {
  constexpr int32_t kTerminate = 15;
  constexpr int32_t kKill = 9;
  const auto entry = attempts_.find(e.attempt);
  if (entry == attempts_.end() || (entry->second.run.ignores_stop && !e.kill)) return;
  after(kSignalTakes, [this, id = e.attempt, signal = e.kill ? kKill : kTerminate] {
    exit_process(id, 0, signal);
  });
}

void SimulatedWorker::exit_process(AttemptId id, int32_t exit_code, int32_t signal) {
  const auto entry = attempts_.find(id);
  if (entry == attempts_.end() || !entry->second.running) return;
  Attempt& attempt = entry->second;
  attempt.running = false;
  world_.referee.process_gone(id_, id);
  scheduler::Usage usage;
  usage.wall = now() - attempt.started;
  usage.cpu = usage.wall * attempt.start.decision.grant.resources.cpus;
  give(input::Exited{id, exit_code, signal, usage, ""});
}

void SimulatedWorker::perform(const effect::Check& e) {
  after(world_.model.options().check, [this, id = e.attempt] { check_outputs(id); });
}

void SimulatedWorker::check_outputs(AttemptId id) {
  const Attempt& attempt = attempts_.at(id);
  if (attempt.run.bad_output) {
    give(input::CheckFailed{id, scheduler::Cause::kOutput, "the model says so"});
    return;
  }
  if (world_.options.sabotage.is_full(FullTier::Step::kSealing, id_, world_.time.now())) {
    give(input::CheckFailed{id, scheduler::Cause::kDisk, "the tier is full"});
    return;
  }
  const auto reports =
      world_.model.outputs(world_.graph, attempt.start.decision.instance, attempt.inputs);
  for (size_t i = 0; i < reports.size(); ++i) {
    const io::AttemptOutput& output = attempt.start.spec.outputs[i];
    if (output.kind == OutputKind::kValue) continue;
    store_[output.object] = {reports[i].content, reports[i].bytes};
  }
  give(input::Checked{id, reports});
}

void SimulatedWorker::perform(const effect::Clean& e) {
  const auto entry = attempts_.find(e.attempt);
  if (entry == attempts_.end() || entry->second.running) {
    world_.referee.problem(
        "attempt " + std::to_string(e.attempt.number()) +
        (entry == attempts_.end() ? " is cleaned twice" : " is cleaned while it runs"));
    return;
  }
  attempts_.erase(entry);
}

// -- objects --------------------------------------------------------------------------------------

void SimulatedWorker::perform(const effect::SaveObject& e) {
  const StoredObject* found = stored(e.object);
  const int64_t bytes = found == nullptr ? 0 : found->bytes;
  after(world_.model.transfer(bytes), [this, e] { finish_save(e); });
}

void SimulatedWorker::finish_save(const effect::SaveObject& e) {
  const StoredObject* found = stored(e.object);
  if (found == nullptr) {
    world_.referee.problem("object " + std::to_string(e.object.value) + " went during its save");
  }
  const bool full =
      world_.options.sabotage.is_full(FullTier::Step::kSaving, id_, world_.time.now());
  if (found == nullptr || full || world_.model.save_fails(e.object, e.save)) {
    give(input::SaveFailed{e.object, e.save, full ? "the disk is full" : "the model says so"});
    return;
  }
  StoredObject& saved = world_.temporaries[{e.object, e.save}];
  saved = *found;
  if (world_.springs(PlantedBug::kSaveFlipped)) saved.content.low ^= 1;
  give(input::Saved{e.object, e.save});
}

void SimulatedWorker::perform(const effect::RemoveObject& e) {
  if (world_.springs(PlantedBug::kDropForgotten)) return;
  if (store_.erase(e.object) == 0) {
    world_.referee.problem("object " + std::to_string(e.object.value) + " is removed from worker " +
                           std::to_string(id_.value) + ", which does not hold it");
  }
}

void SimulatedWorker::perform(const effect::Report& e) { tell(message::Report{e.event}); }

void SimulatedWorker::perform(const effect::Left&) {
  left_ = true;
  tell(message::Left{});
}

}  // namespace sluice::engine
