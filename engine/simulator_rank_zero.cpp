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
constexpr uint64_t kLateAgainMax = 10'000'000'000;
// What the draws are about; see ExecutorModel::draw.
constexpr uint64_t kSubjectSync = 1002;
constexpr uint64_t kSubjectLateAgain = 1003;

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

void SimulatedRankZero::after(Duration delay, VirtualTime::Action action) {
  world_.time.at(std::max(world_.time.now() + delay, paused_until_),
                 [this, action = std::move(action)] {
                   if (paused()) {
                     after({}, action);
                   } else {
                     action();
                   }
                 });
}

void SimulatedRankZero::pause(Duration duration) {
  paused_until_ = std::max(paused_until_, world_.time.now() + duration);
}

void SimulatedRankZero::deliver(const Event& given) {
  if (paused()) {
    after({}, [this, given] { deliver(given); });
    return;
  }
  apply(given);
  schedule();
}

void SimulatedRankZero::poll() {
  if (paused()) {
    after({}, [this] { poll(); });
    return;
  }
  end_.poll(
      [this](WorkerId from, io::Channel, std::span<const std::byte> bytes) {
        const Expected<io::Message> decoded = world_.read(bytes);
        if (decoded) {
          received(from, *decoded);
        } else {
          unreadable(from);
        }
      },
      SIZE_MAX);
  schedule();
}

// Nobody knows what it said, so nothing that it says can be relied on any more.
void SimulatedRankZero::unreadable(WorkerId from) {
  if (lost_.count(from) == 0) apply(event::WorkerLost{from});
}

void SimulatedRankZero::received(WorkerId from, const io::Message& given) {
  if (const auto* report = std::get_if<message::Report>(&given)) {
    const bool success = std::holds_alternative<event::AttemptFinished>(report->event);
    if (success && world_.springs(PlantedBug::kReportDropped)) return;
    if (lost_.count(from) > 0) report_again(from, report->event);
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

// Of a lost worker: once more, when other things have happened.
void SimulatedRankZero::report_again(WorkerId from, const Event& report) {
  if (!world_.options.sabotage.late_reports_again) return;
  const uint64_t subject = (uint64_t{from.value} << 40U) | world_.messages_read;
  const uint64_t delay = world_.model.draw(kSubjectLateAgain, subject, kLateAgainMax);
  after({static_cast<int64_t>(delay)}, [this, report] { deliver(report); });
}

void SimulatedRankZero::apply(const Event& given) {
  if (crashed_) return;
  std::visit([this](const auto& e) { note(e); }, given);
  if (outcome_) {
    note_late(given);
    return;
  }
  core_.apply(now(), given, decisions_);
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
  const Instant asked = world_.time.now() + Duration{delay};
  const Instant synced = world_.options.sabotage.has_room(FullTier::Step::kJournal, asked);
  after(synced - world_.time.now(), [this, decisions = core_.decision_count()] {
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
  core_.schedule(now(), decisions_);
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
  const Instant deadline = world_.when(WorkerId(0), core_.next_deadline());
  if (deadline >= armed_) return;
  armed_ = deadline;
  after(deadline - world_.time.now(), [this, deadline] {
    if (armed_ == deadline) armed_ = Instant::never();
    if (outcome_ || crashed_) return;
    if (core_.next_deadline() <= now()) {
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
  for (const WorkerId other : joined_) {
    if (lost_.count(other) == 0) tell(other, message::PeerLost{worker});
  }
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
  after(world_.model.options().commit, [this, object = d.object, file] {
    if (crashed_) return;
    const Sabotage& sabotage = world_.options.sabotage;
    if (sabotage.is_full(FullTier::Step::kCommitting, WorkerId(0), world_.time.now())) {
      deliver(event::ObjectCommitFailed{object, "the disk is full"});
      return;
    }
    if (!world_.springs(PlantedBug::kCommitForgotten)) {
      world_.directory.append(SimulatedRunDirectory::Durable{object, file});
    }
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
  if (!d.attempt.valid() || world_.springs(PlantedBug::kRecordForgotten)) return;
  world_.directory.append(SimulatedRunDirectory::Done{d.instance, d.key, d.outputs});
}

void SimulatedRankZero::perform(const decision::AttemptEnded& d) {
  if (d.report.cause != scheduler::Cause::kLost) ++failures_[d.instance.index()];
  if (d.final) failed_by_[d.instance.index()] = d.report.cause;
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
  result.failed_by = failed_by_;
  result.workers_lost = lost_.size();
}

}  // namespace sluice::engine
