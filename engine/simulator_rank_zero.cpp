#include "engine/simulator_rank_zero.h"

#include <algorithm>
#include <utility>

#include "scheduler/check.h"

namespace sluice::engine {

namespace decision = scheduler::decision;
namespace event = scheduler::event;
namespace message = io::message;
using scheduler::Duration;
using scheduler::Event;
using scheduler::InstanceId;
using scheduler::Instant;
using scheduler::ObjectId;
using scheduler::WorkerId;

namespace {

constexpr uint64_t kSyncMax = 200'000'000;  // from a record to its sync
constexpr uint64_t kSubjectSync = 1002;     // see ExecutorModel::draw

}  // namespace

void SimulatedRankZero::begin() {
  for (event::Restored& fact : world_.directory.restored(world_.graph)) {
    const auto& forced = world_.options.forced;
    if (std::find(forced.begin(), forced.end(), fact.instance) != forced.end()) fact.key = {};
    apply(fact);
  }
  if (!world_.options.selected.empty()) {
    world_.referee.select(world_.options.selected);
    apply(event::Selected{world_.options.selected});
  }
  deliver(event::Begin{});
}

void SimulatedRankZero::poll() {
  end_.poll(
      [this](WorkerId from, io::Channel, std::span<const std::byte> bytes) {
        const Expected<io::Message> decoded = io::decode(bytes);
        SLUICE_ASSERT(decoded.ok(), decoded.ok() ? "" : decoded.error().message.c_str());
        received(from, *decoded);
      },
      SIZE_MAX);
  schedule();
}

void SimulatedRankZero::received(WorkerId from, const io::Message& given) {
  if (const auto* report = std::get_if<message::Report>(&given)) {
    apply(report->event);
  } else if (const auto* hello = std::get_if<message::Hello>(&given)) {
    if (outcome_) {
      tell(from, message::Leave{});
      return;
    }
    joined_.insert(from);
    world_.referee.worker_joined(from, hello->resources);
    apply(event::WorkerJoined{from, scheduler::NodeId(from.value), hello->resources});
  }
}

void SimulatedRankZero::apply(const Event& given) {
  if (crashed_) return;
  std::visit([this](const auto& e) { note(e); }, given);
  if (outcome_) {
    note_late(given);
    return;
  }
  core_.apply(world_.time.now(), given, decisions_);
  perform_all();
  ++events_;
  const uint32_t every = world_.options.check_every;
  if (every > 0 && events_ % every == 0) core_.check_invariants();
  const uint64_t crash_after = world_.options.core_crash_after_events;
  crashed_ = crash_after > 0 && events_ >= crash_after;
  if (core_.waits_for_sync()) ask_for_sync();
}

// As engine/record_keeper does: one sync under way, for all records so far.
void SimulatedRankZero::ask_for_sync() {
  if (sync_asked_ || crashed_) return;
  sync_asked_ = true;
  const auto delay = static_cast<int64_t>(world_.model.draw(kSubjectSync, events_, kSyncMax));
  world_.time.after(Duration{delay}, [this, decisions = core_.decision_count()] {
    sync_asked_ = false;
    if (crashed_ || outcome_) return;
    world_.directory.sync();
    deliver(event::RecordsSynced{decisions});
  });
}

// A fetch for an attempt that was not needed any more: nobody is left to drop what it brought.
void SimulatedRankZero::note_late(const Event& given) {
  const auto* added = std::get_if<event::ReplicaAdded>(&given);
  if (added != nullptr) world_.late_replicas.insert({added->worker, added->object});
}

void SimulatedRankZero::schedule() {
  if (outcome_ || crashed_) return;
  core_.schedule(world_.time.now(), decisions_);
  perform_all();
  arm_tick();
}

void SimulatedRankZero::perform_all() {
  const std::vector<scheduler::Decision> decisions = std::exchange(decisions_, {});
  for (const scheduler::Decision& d : decisions) {
    std::visit([this](const auto& concrete) { perform(concrete); }, d);
  }
}

void SimulatedRankZero::arm_tick() {
  const Instant deadline = std::max(core_.next_deadline(), world_.time.now());
  if (deadline >= armed_) return;
  armed_ = deadline;
  world_.time.at(deadline, [this, deadline] {
    if (armed_ == deadline) armed_ = Instant::never();
    if (outcome_ || crashed_) return;
    if (core_.next_deadline() <= world_.time.now()) {
      deliver(event::Tick{});
    } else {
      arm_tick();
    }
  });
}

// Dead, or silent for so long that it counts as dead: its replicas are gone for the run.
void SimulatedRankZero::give_up(WorkerId worker) {
  if (!lost_.insert(worker).second) return;
  world_.referee.worker_lost(worker);
  end_.forget(worker);
}

void SimulatedRankZero::perform(const decision::StartAttempt& d) {
  world_.referee.attempt_started(d);
  const scheduler::TaskSpec& task = world_.graph.task(world_.graph.task_of(d.instance));
  message::Start start;
  start.decision = d;
  start.grace = task.grace;
  for (const ObjectId object : world_.graph.objects_of(d.instance)) {
    io::AttemptOutput output;
    output.object = object;
    output.kind = world_.graph.output(object).kind;
    start.spec.outputs.push_back(std::move(output));
  }
  tell(d.worker, start);
}

void SimulatedRankZero::perform(const decision::SaveObject& d) {
  world_.referee.save_asked(d.worker, d.save);
  tell(d.worker, message::Save{d.object, d.save, ""});
}

void SimulatedRankZero::perform(const decision::CommitObject& d) {
  const auto saved = world_.temporaries.find({d.object, d.save});
  if (saved == world_.temporaries.end()) {
    world_.referee.problem("object " + std::to_string(d.object.value) +
                           " is committed without having been saved");
    return;
  }
  const StoredObject file = saved->second;
  world_.temporaries.erase(saved);
  world_.time.after(world_.model.options().commit, [this, object = d.object, file] {
    if (crashed_) return;
    world_.directory.append(SimulatedRunDirectory::Durable{object, file});
    deliver(event::ObjectCommitted{object});
  });
}

void SimulatedRankZero::perform(const decision::RemoveSaved& d) {
  world_.referee.durable(d.object, false);
  world_.directory.sync();
  world_.directory.append(SimulatedRunDirectory::Removed{d.object});
  world_.directory.sync();
}

void SimulatedRankZero::perform(const decision::InstanceDone& d) {
  world_.referee.instance_done(d.instance, d.attempt, d.outputs);
  if (!d.attempt.valid()) return;
  world_.directory.append(SimulatedRunDirectory::Done{d.instance, d.key, d.outputs});
}

void SimulatedRankZero::perform(const decision::AttemptEnded& d) {
  if (d.report.cause != scheduler::Cause::kLost) ++failures_[d.instance.index()];
}

void SimulatedRankZero::perform(const decision::RunEnded& d) {
  outcome_ = d.outcome;
  ended_ = world_.time.now();
  world_.directory.sync();
  for (const WorkerId worker : joined_) {
    if (lost_.count(worker) == 0) tell(worker, message::Leave{});
  }
}

bool SimulatedRankZero::over() const {
  if (!outcome_) return false;
  return std::all_of(joined_.begin(), joined_.end(), [this](WorkerId id) {
    const SimulatedWorker& worker = world_.worker(id);
    return worker.left() || !worker.alive() || lost_.count(id) > 0;
  });
}

void SimulatedRankZero::fill(SimulationResult& result) const {
  result.outcome = outcome_;
  result.ended = ended_;
  result.digest = core_.digest();
  result.counts = core_.counts();
  for (size_t i = 0; i < world_.graph.instance_count(); ++i) {
    result.states.push_back(core_.state(InstanceId(i)));
  }
  result.events = events_;
  result.failures = failures_;
}

}  // namespace sluice::engine
