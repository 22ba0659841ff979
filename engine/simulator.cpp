#include "engine/simulator.h"

#include <algorithm>
#include <utility>

#include "engine/simulator_rank_zero.h"
#include "scheduler/check.h"

namespace sluice::engine {

namespace event = scheduler::event;
using scheduler::Duration;
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
// What the plans' draws are about; see ExecutorModel::draw.
constexpr uint64_t kSubjectJoin = 1000;
constexpr uint64_t kSubjectDeathNoticed = 1001;
constexpr uint64_t kSubjectDamaged = 1004;
constexpr uint64_t kSubjectDamagedBit = 1005;

io::LocalNetworkOptions network_options(const SimulationOptions& options) {
  const Sabotage& sabotage = options.sabotage;
  return {options.latency_min,    options.latency_max, options.seed,
          sabotage.slow_permille, sabotage.slow_max,   sabotage.cuts};
}

}  // namespace

ExecutorModel model_of(const SimulationOptions& options) {
  ModelOptions model = options.model;
  model.seed = scheduler::mix64(options.model.seed ^ scheduler::mix64(options.seed));
  return ExecutorModel(model);
}

World::World(const Graph& given_graph, const SimulationOptions& given_options,
             SimulatedRunDirectory& given_directory)
    : graph(given_graph),
      options(given_options),
      directory(given_directory),
      model(model_of(given_options)),
      network(given_options.workers.size() + 1, network_options(given_options)),
      referee(given_graph),
      ahead(given_options.workers.size() + 1) {
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

Instant World::when(WorkerId end, Instant at) const {
  if (at == Instant::never()) return at;
  return std::max(time.now(), {at.ns - ahead[end.index()].ns});
}

// A worker's first message is spared: what never arrives is no worker of the run.
Expected<io::Message> World::read(std::span<const std::byte> bytes) {
  Expected<io::Message> message = io::decode(bytes);
  SLUICE_ASSERT(message.ok(), message.ok() ? "" : message.error().message.c_str());
  const Sabotage& sabotage = options.sabotage;
  const uint64_t number = ++messages_read;
  if (damaged >= sabotage.damaged_max || std::holds_alternative<io::message::Hello>(*message) ||
      model.draw(kSubjectDamaged, number, 1000) >= sabotage.damaged_permille) {
    return message;
  }
  ++damaged;
  io::Bytes other(bytes.begin(), bytes.end());
  const uint64_t bit = model.draw(kSubjectDamagedBit, number, other.size() * 8);
  other[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
  Expected<io::Message> seen = io::decode(other);
  if (!seen) return seen;
  // That bit makes another message that can be read. One that is cut short never can.
  seen = io::decode(bytes.first(model.draw(kSubjectDamagedBit, number, bytes.size())));
  if (seen) referee.problem("a part of message " + std::to_string(number) + " reads as a whole");
  return Error{"damaged"};
}

namespace {

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

void plan_sabotage(World& world, SimulatedRankZero& rank_zero) {
  for (const Pause& pause : world.options.sabotage.pauses) {
    world.time.at(pause.at, [&rank_zero, lasts = pause.lasts] { rank_zero.pause(lasts); });
  }
  for (const ClockJump& jump : world.options.sabotage.jumps) {
    world.time.at(jump.at, [&world, &rank_zero, jump] {
      world.ahead[jump.end.index()] = world.ahead[jump.end.index()] + jump.by;
      if (jump.end == WorkerId(0)) {
        rank_zero.clock_jumped();
      } else if (world.worker(jump.end).alive()) {
        world.worker(jump.end).clock_jumped();
      }
    });
  }
  world.death_noticed = [&world, &rank_zero](WorkerId worker) {
    const uint64_t delay = world.model.draw(kSubjectDeathNoticed, worker.value, kDeathNoticedMax);
    world.time.after(Duration{static_cast<int64_t>(delay)},
                     [&rank_zero, worker] { rank_zero.deliver(event::WorkerLost{worker}); });
  };
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
    const StoredObject* there = world.directory.file(object);
    if (there != nullptr && there->content != expected[object.index()]) {
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
  // What others than done instances read is kept, and what could not be saved, and goes with the
  // stores.
  const bool all = result.counts.done == world.graph.instance_count();
  if (all && result.counts.results_pending == 0) check_stores_are_empty(world);
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
  plan_sabotage(world, rank_zero);
  world.time.at(Instant{} + kBeginsAfter, [&rank_zero] { rank_zero.begin(); });
  if (options.stop_at != Instant::never()) {
    world.time.at(options.stop_at, [&rank_zero] { rank_zero.deliver(event::StopRequested{}); });
  }
  run_to_end(world, rank_zero);

  SimulationResult result;
  rank_zero.fill(result);
  result.messages = world.network.messages();
  result.fetches_failed = world.fetches_failed;
  result.damaged = world.damaged;
  check_end(world, result);
  result.launches = std::move(world.referee.launches);
  result.completions = std::move(world.referee.completions);
  result.running_max = world.referee.running_max;
  result.cores_max = world.referee.cores_max;
  result.problems = std::move(world.referee.problems());
  return result;
}

}  // namespace sluice::engine
