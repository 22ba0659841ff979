#include "engine/estimate.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "engine/simulator.h"
#include "scheduler/ranking.h"

namespace sluice::engine {

using scheduler::Duration;
using scheduler::Graph;
using scheduler::GroupId;
using scheduler::InstanceId;
using scheduler::ObjectId;
using scheduler::Resources;
using scheduler::TaskId;

namespace {

constexpr size_t kSimulatedInstancesMax = 50'000;
// A simulated worker says every second that it is alive. Long runs are simulated on a faster clock,
// so that all of that together stays below so many messages.
constexpr int64_t kWorkerSecondsMax = 5'000;
constexpr int64_t kSecondNs = 1'000'000'000;
constexpr Duration kBeginsAfter = scheduler::milliseconds(10);  // of the simulator's run
constexpr int64_t kMemoryNotCounted = int64_t{1} << 60U;

Duration expected_of(const scheduler::TaskSpec& task) {
  return task.expected.ns > 0 ? task.expected : scheduler::kExpectedWhenUnknown;
}

// Copies the chosen instances task by task, then the groups between them.
class PartBuilder {
 public:
  PartBuilder(const Graph& graph, const std::vector<bool>& chosen,
              const std::vector<LearnedDuration>& learned)
      : graph_(graph), chosen_(chosen), learned_(learned), copies_(graph.instance_count()) {}

  Graph run() {
    for (const scheduler::Limit& limit : graph_.limits()) builder_.limit(limit.name, limit.total);
    for (size_t t = 0; t < graph_.task_count(); ++t) add_task(TaskId(t));
    for (size_t g = 0; g < graph_.group_count(); ++g) add_group(GroupId(g));
    for (size_t g = 0; g < graph_.gate_count(); ++g) add_gate(scheduler::GateId(g));
    return builder_.build();
  }

 private:
  void add_task(TaskId id) {
    const scheduler::TaskSpec& task = graph_.task(id);
    std::vector<scheduler::Hash128> keys;
    std::vector<InstanceId> originals;
    for (uint32_t item = 0; item < task.instance_count; ++item) {
      const InstanceId instance = graph_.instance(id, item);
      if (!chosen_[instance.index()]) continue;
      keys.push_back(graph_.static_key(instance));
      originals.push_back(instance);
    }
    if (keys.empty()) return;
    scheduler::TaskSpec copy = task;
    copy.request = builder_.request(graph_.requests()[task.request]);
    copy.timeout = {};
    copy.expected = learned_[id.index()].samples > 0 ? learned_[id.index()].median : task.expected;
    const TaskId added = builder_.task(std::move(copy), keys);
    for (size_t i = 0; i < originals.size(); ++i) {
      copies_[originals[i].index()] = builder_.so_far().instance(added, static_cast<uint32_t>(i));
    }
  }

  void add_group(GroupId id) {
    std::vector<ObjectId> objects;
    for (const ObjectId object : graph_.group_objects(id)) {
      const InstanceId producer = copies_[graph_.producer(object).index()];
      if (producer.valid())
        objects.push_back(builder_.so_far().object(producer, graph_.output_index(object)));
    }
    const std::vector<InstanceId> consumers = copies_of(graph_.group_consumers(id));
    if (!objects.empty() && !consumers.empty()) builder_.group(objects, consumers);
  }

  [[nodiscard]] std::vector<InstanceId> copies_of(std::span<const InstanceId> originals) const {
    std::vector<InstanceId> copies;
    for (const InstanceId original : originals) {
      if (copies_[original.index()].valid()) copies.push_back(copies_[original.index()]);
    }
    return copies;
  }

  void add_gate(scheduler::GateId id) {
    const std::vector<InstanceId> before = copies_of(graph_.gate_predecessors(id));
    const std::vector<InstanceId> behind = copies_of(graph_.gate_successors(id));
    if (!before.empty() && !behind.empty()) builder_.gate(before, behind);
  }

  const Graph& graph_;
  const std::vector<bool>& chosen_;
  const std::vector<LearnedDuration>& learned_;
  std::vector<InstanceId> copies_;  // by original; invalid: not chosen
  scheduler::GraphBuilder builder_;
};

// Seconds in double: a bound for people, and the sum over many instances may be large.
double seconds_of(Duration duration) { return static_cast<double>(duration.ns) / kSecondNs; }
Duration of_seconds(double seconds) { return {static_cast<int64_t>(seconds * kSecondNs)}; }

Duration work_bound(const Graph& graph, const MachineShape& machine) {
  double core_seconds = 0;
  std::vector<double> limit_seconds(graph.limits().size());
  for (const scheduler::TaskSpec& task : graph.tasks()) {
    const scheduler::Request& request = graph.requests()[task.request];
    const double all = seconds_of(expected_of(task)) * task.instance_count;
    core_seconds += all * request.resources.cpus;
    for (const scheduler::LimitUse& use : request.limits) {
      limit_seconds[use.limit.index()] +=
          all * static_cast<double>(use.amount) /
          static_cast<double>(graph.limits()[use.limit.index()].total);
    }
  }
  double bound = core_seconds / static_cast<double>(machine.workers) / machine.each.cpus;
  for (const double one : limit_seconds) bound = std::max(bound, one);
  return of_seconds(bound);
}

Resources capacity_of(const MachineShape& machine) {
  Resources capacity = machine.each;
  if (capacity.memory_bytes == 0) capacity.memory_bytes = kMemoryNotCounted;
  return capacity;
}

std::string task_that_does_not_fit(const Graph& graph, const Resources& capacity) {
  for (const scheduler::TaskSpec& task : graph.tasks()) {
    if (!capacity.covers(graph.requests()[task.request].resources)) return task.name;
  }
  return "";
}

// The same graph on a clock that runs `speed` times as fast.
Graph faster(const Graph& graph, int64_t speed) {
  std::vector<LearnedDuration> durations;
  for (const scheduler::TaskSpec& task : graph.tasks()) {
    durations.push_back({{std::max<int64_t>(1, expected_of(task).ns / speed)}, 1});
  }
  return part_of(graph, std::vector<bool>(graph.instance_count(), true), durations);
}

SimulationOptions simulation_options(const MachineShape& machine, int64_t speed) {
  SimulationOptions options;
  WorkerPlan worker;
  worker.resources = capacity_of(machine);
  options.workers.assign(machine.workers, worker);
  options.model.exact = true;
  options.model.bytes_min = options.model.bytes_max = 0;
  for (Duration* overhead : {&options.model.stage, &options.model.check, &options.model.commit,
                             &options.latency_min, &options.latency_max}) {
    overhead->ns = std::max<int64_t>(1, overhead->ns / speed);
  }
  options.check_every = 0;
  options.time_max = Duration{INT64_MAX / 4};
  options.steps_max = UINT64_MAX;
  return options;
}

}  // namespace

Duration Estimate::bound() const { return std::max(critical_path, work_bound); }

std::vector<LearnedDuration> learn_durations(const io::Pipeline& pipeline,
                                             const io::JournalState& journal) {
  std::map<std::string, std::vector<int64_t>> walls;
  for (const auto& [name, facts] : journal.instances) {
    if (facts.done && facts.done->usage.wall.ns > 0)
      walls[name.first].push_back(facts.done->usage.wall.ns);
  }
  std::vector<LearnedDuration> learned;
  for (const scheduler::TaskSpec& task : pipeline.graph.tasks()) {
    std::vector<int64_t>& known = walls[task.name];
    LearnedDuration one;
    one.samples = known.size();
    if (!known.empty()) {
      const auto middle = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
      std::nth_element(known.begin(), middle, known.end());
      one.median = {*middle};
    }
    learned.push_back(one);
  }
  return learned;
}

Graph part_of(const Graph& graph, const std::vector<bool>& chosen,
              const std::vector<LearnedDuration>& learned) {
  return PartBuilder(graph, chosen, learned).run();
}

Estimate estimate(const Graph& graph, const MachineShape& machine) {
  Estimate result;
  for (const Duration rank : scheduler::upward_ranks(graph))
    result.critical_path = std::max(result.critical_path, rank);
  result.work_bound = work_bound(graph, machine);
  if (graph.instance_count() > kSimulatedInstancesMax) {
    result.why_not =
        "more than " + std::to_string(kSimulatedInstancesMax) + " instances are not simulated";
    return result;
  }
  if (const std::string name = task_that_does_not_fit(graph, capacity_of(machine)); !name.empty()) {
    result.why_not = "task '" + name + "' does not fit on these workers";
    return result;
  }
  const int64_t worker_seconds =
      (result.bound().ns / kSecondNs + 1) * static_cast<int64_t>(machine.workers);
  const int64_t speed = worker_seconds / kWorkerSecondsMax + 1;
  SimulatedRunDirectory directory;
  const SimulationResult run = simulate(speed == 1 ? graph : faster(graph, speed),
                                        simulation_options(machine, speed), directory);
  result.simulated = run.outcome == scheduler::Outcome::kAllDone;
  result.why_not = result.simulated ? "" : "the simulated run did not end well";
  result.makespan = (run.ended - (scheduler::Instant{} + kBeginsAfter)) * speed;
  return result;
}

}  // namespace sluice::engine
