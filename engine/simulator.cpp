#include "engine/simulator.h"

#include <algorithm>
#include <set>
#include <utility>

#include "engine/simulator_world.h"
#include "scheduler/check.h"

namespace sluice::engine {

namespace decision = scheduler::decision;
namespace event = scheduler::event;
namespace message = io::message;
using scheduler::AttemptId;
using scheduler::Core;
using scheduler::Duration;
using scheduler::Event;
using scheduler::Graph;
using scheduler::InstanceId;
using scheduler::InstanceState;
using scheduler::Instant;
using scheduler::ObjectId;
using scheduler::Outcome;
using scheduler::OutputKind;
using scheduler::WorkerId;

namespace {

constexpr Duration kBeginsAfter = scheduler::milliseconds(10);
constexpr uint64_t kJoinDelayMax = 5'000'000;
constexpr uint64_t kDeathNoticedMax = 50'000'000;
constexpr uint64_t kSyncMax = 200'000'000;  // from a record to its sync
// What the plans' draws are about; see ExecutorModel::draw.
constexpr uint64_t kSubjectJoin = 1000;
constexpr uint64_t kSubjectDeathNoticed = 1001;
constexpr uint64_t kSubjectSync = 1002;

io::LocalNetworkOptions network_options(const SimulationOptions& options) {
  return {options.latency_min, options.latency_max, options.seed};
}

ModelOptions model_options(const SimulationOptions& options) {
  ModelOptions model = options.model;
  model.seed = scheduler::mix64(options.model.seed ^ scheduler::mix64(options.seed));
  return model;
}

}  // namespace

World::World(const Graph& given_graph, const SimulationOptions& given_options,
             SimulatedRunDirectory& given_directory)
    : graph(given_graph),
      options(given_options),
      directory(given_directory),
      model(model_options(given_options)),
      network(given_options.workers.size() + 1, network_options(given_options)),
      referee(given_graph) {
  for (size_t i = 0; i < options.workers.size(); ++i) {
    workers.push_back(
        std::make_unique<SimulatedWorker>(*this, WorkerId(i + 1), options.workers[i]));
  }
}

World::~World() = default;

SimulatedWorker& World::worker(WorkerId id) {
  SLUICE_ASSERT(id.index() > 0 && id.index() <= workers.size(), id, workers.size());
  return *workers[id.index() - 1];
}

namespace {

// Rank 0: what engine/scheduler_rank does on a machine.
class SimulatedRankZero {
 public:
  explicit SimulatedRankZero(World& world)
      : world_(world),
        core_(world.graph, core_options(world)),
        end_(world.network.end(WorkerId(0))),
        failures_(world.graph.instance_count()) {}

  void begin();
  void poll();
  void deliver(const Event& event) {
    apply(event);
    schedule();
  }
  [[nodiscard]] bool crashed() const { return crashed_; }
  // The run has ended and every worker that is still there has said goodbye.
  [[nodiscard]] bool over() const;
  void fill(SimulationResult& result) const;

 private:
  static scheduler::CoreOptions core_options(World& world) {
    scheduler::CoreOptions options = world.options.core;
    options.epoch = world.directory.next_epoch();
    return options;
  }

  void received(WorkerId from, const io::Message& message);
  void apply(const Event& event);
  void note_late(const Event& event);
  void schedule();
  void ask_for_sync();
  void perform_all();
  void arm_tick();
  void tell(WorkerId worker, const io::Message& message) {
    end_.send(worker, io::Channel::kControl, io::encode(message));
  }
  void give_up(WorkerId worker);

  // What the referee must know of an event before the core's decisions about it.
  template <class Other>
  void note(const Other&) {}
  void note(const event::WorkerLost& e) { give_up(e.worker); }
  void note(const event::Restored& e) { world_.referee.restored(e); }
  void note(const event::AttemptFinished& e) {
    world_.referee.attempt_finished(e.worker, e.attempt);
  }
  void note(const event::AttemptFailed& e) { world_.referee.attempt_over(e.attempt); }
  void note(const event::AttemptStopped& e) { world_.referee.attempt_over(e.attempt); }
  void note(const event::AttemptReturned& e) {
    world_.referee.attempt_returned(e.attempt, e.missing);
  }
  void note(const event::ReplicaAdded& e) { world_.referee.replica_added(e.worker, e.object); }
  void note(const event::ReplicaLost& e) { world_.referee.replica_gone(e.worker, e.object); }
  void note(const event::ObjectCommitted& e) { world_.referee.durable(e.object, true); }
  void note(const event::ObjectSaved& e) { world_.referee.save_answered(e.save); }
  void note(const event::ObjectSaveFailed& e) { world_.referee.save_answered(e.save); }

  void perform(const decision::StartAttempt& d);
  void perform(const decision::TakeBack& d) { tell(d.worker, message::TakeBack{d.attempt}); }
  void perform(const decision::StopAttempt& d) { tell(d.worker, message::Stop{d.attempt}); }
  void perform(const decision::SaveObject& d);
  void perform(const decision::DropObject& d) {
    world_.referee.replica_gone(d.worker, d.object);
    tell(d.worker, message::Drop{d.object});
  }
  void perform(const decision::CommitObject& d);
  void perform(const decision::RemoveSaved& d);
  void perform(const decision::InstanceDone& d);
  void perform(const decision::AttemptEnded& d);
  void perform(const decision::InstanceSkipped&) {}
  void perform(const decision::StopBegan&) {}
  void perform(const decision::WorkerChanged& d) {
    if (d.state == decision::WorkerState::kLost) give_up(d.worker);
  }
  void perform(const decision::NotReproducible& d) {
    world_.referee.problem("object " + std::to_string(d.object.value) + " is not reproducible");
  }
  void perform(const decision::RunEnded& d);

  World& world_;
  Core core_;
  io::Transport& end_;
  std::vector<scheduler::Decision> decisions_;
  std::set<WorkerId> joined_;
  std::set<WorkerId> lost_;
  std::optional<Outcome> outcome_;
  Instant ended_;
  bool crashed_ = false;
  bool sync_asked_ = false;
  uint64_t events_ = 0;
  Instant armed_ = Instant::never();
  std::vector<uint32_t> failures_;
};

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

// -- the whole ------------------------------------------------------------------------------------

void plan_worker(World& world, SimulatedRankZero& rank_zero, SimulatedWorker& worker) {
  const WorkerPlan& plan = worker.plan();
  const auto delay = [&](uint64_t subject, uint64_t bound) {
    return Duration{static_cast<int64_t>(world.model.draw(subject, worker.id().value, bound))};
  };
  world.time.at(plan.joins + delay(kSubjectJoin, kJoinDelayMax), [&worker] {
    if (worker.alive()) worker.join();
  });
  if (plan.dies != Instant::never()) {
    world.time.at(plan.dies, [&worker] { worker.die(); });
    if (plan.death_reported) {
      world.time.at(plan.dies + delay(kSubjectDeathNoticed, kDeathNoticedMax),
                    [&worker, &rank_zero] { rank_zero.deliver(event::WorkerLost{worker.id()}); });
    }
  }
  if (plan.stalls != Instant::never()) {
    world.time.at(plan.stalls, [&worker, duration = plan.stall] { worker.stall(duration); });
  }
}

void run_to_end(World& world, const SimulatedRankZero& rank_zero) {
  uint64_t steps = 0;
  while (!rank_zero.over() && !rank_zero.crashed()) {
    const Instant next = world.time.next();
    if (next == Instant::never()) {
      world.referee.problem("nothing is left to happen, yet the run has not ended");
      return;
    }
    world.network.advance(next);
    world.time.step();
    if (++steps > world.options.steps_max || next > Instant{} + world.options.time_max) {
      world.referee.problem("the run did not end within " + std::to_string(steps) + " steps, " +
                            std::to_string(world.time.now().ns / 1'000'000) + " ms");
      return;
    }
  }
}

void check_stores_are_empty(World& world) {
  for (const auto& worker : world.workers) {
    if (!worker->left()) continue;
    for (const auto& [object, bytes] : worker->store()) {
      if (world.late_replicas.count({worker->id(), object}) > 0) continue;
      world.referee.problem("object " + std::to_string(object.value) + " is left on worker " +
                            std::to_string(worker->id().value));
    }
  }
}

void check_files(World& world, const SimulationResult& result) {
  const auto expected = expected_contents(world.graph, world.model);
  for (const auto& [object, file] : world.directory.files()) {
    if (file.content != expected[object.index()]) {
      world.referee.problem("the file of object " + std::to_string(object.value) +
                            " has a wrong content");
    }
  }
  const bool complete = result.outcome == Outcome::kAllDone || result.outcome == Outcome::kFailed;
  for (size_t o = 0; o < world.graph.object_count() && complete; ++o) {
    const ObjectId object(o);
    const scheduler::OutputSpec& output = world.graph.output(object);
    if (!output.result || output.kind == OutputKind::kValue) continue;
    const InstanceId producer = world.graph.producer(object);
    if (result.states[producer.index()] == InstanceState::kDone &&
        world.directory.file(object) == nullptr) {
      world.referee.problem("result object " + std::to_string(o) + " is not in the run directory");
    }
  }
}

void check_end(World& world, const SimulationResult& result) {
  check_files(world, result);
  if (!result.outcome) return;
  world.referee.ended();
  for (const auto& worker : world.workers) {
    if (worker->left() && worker->attempts() > 0) {
      world.referee.problem("worker " + std::to_string(worker->id().value) + " left with attempts");
    }
  }
  // What left-out instances read is kept, and goes with the stores.
  const bool all = world.options.selected.empty();
  if (all && result.outcome == Outcome::kAllDone) check_stores_are_empty(world);
}

}  // namespace

SimulationResult simulate(const Graph& graph, const SimulationOptions& options,
                          SimulatedRunDirectory& directory) {
  World world(graph, options, directory);
  SimulatedRankZero rank_zero(world);
  world.network.arrivals = [&](WorkerId to, Instant at) {
    world.time.at(at, [&world, &rank_zero, to] {
      if (to == WorkerId(0)) {
        rank_zero.poll();
      } else {
        world.worker(to).poll();
      }
    });
  };
  for (const auto& worker : world.workers) plan_worker(world, rank_zero, *worker);
  world.time.at(Instant{} + kBeginsAfter, [&rank_zero] { rank_zero.begin(); });
  if (options.stop_at != Instant::never()) {
    world.time.at(options.stop_at, [&rank_zero] { rank_zero.deliver(event::StopRequested{}); });
  }
  run_to_end(world, rank_zero);

  SimulationResult result;
  rank_zero.fill(result);
  result.messages = world.network.messages();
  result.fetches_failed = world.fetches_failed;
  check_end(world, result);
  result.launches = std::move(world.referee.launches);
  result.completions = std::move(world.referee.completions);
  result.running_max = world.referee.running_max;
  result.cores_max = world.referee.cores_max;
  result.problems = std::move(world.referee.problems());
  return result;
}

}  // namespace sluice::engine
