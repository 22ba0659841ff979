// bench_simulator [instances ...]: what one instance costs core, agents and codec, without
// machines. Simulates so many independent instances, joined in groups, on 100 workers of 64 cores
// (default: 10 000 and 100 000), and prints processor time and memory per instance. The simulator's
// own share is in both. Not a test: nothing is checked but that the run ends.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "engine/simulator.h"
#include "tests/support/graph_dsl.h"

namespace {

using namespace sluice;

constexpr uint32_t kGroup = 100;  // instances that one join gathers
constexpr size_t kWorkers = 100;
constexpr int32_t kCores = 64;

double cpu_seconds() {
  return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

int64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<int64_t>(usage.ru_maxrss) * 1024;
}

// count × work, gathered by hundreds: each join reads one group.
scheduler::Graph make_graph(uint32_t count) {
  tests::GraphDsl dsl;
  const uint32_t joins = (count + kGroup - 1) / kGroup;
  const auto expected = scheduler::seconds(2);
  const scheduler::TaskId work = dsl.task("work", {.count = count, .expected = expected});
  const scheduler::TaskId join =
      dsl.task("join", {.count = joins, .expected = expected, .result = true});
  for (uint32_t i = 0; i < joins; ++i) {
    std::vector<scheduler::ObjectId> objects;
    for (uint32_t item = i * kGroup; item < count && item < (i + 1) * kGroup; ++item) {
      objects.push_back(dsl.so_far().object(dsl.so_far().instance(work, item), 0));
    }
    const scheduler::InstanceId consumer = dsl.so_far().instance(join, i);
    dsl.group(objects, {&consumer, 1});
  }
  return dsl.build();
}

void measure(uint32_t count) {
  const int64_t memory_before = peak_memory_bytes();
  const double start = cpu_seconds();
  const scheduler::Graph graph = make_graph(count);
  engine::SimulationOptions options;
  options.check_every = 0;
  engine::WorkerPlan worker;
  worker.resources = {kCores, 0};
  options.workers.assign(kWorkers, worker);
  engine::SimulatedRunDirectory directory;
  const engine::SimulationResult result = engine::simulate(graph, options, directory);
  const double seconds = cpu_seconds() - start;
  const auto instances = static_cast<double>(graph.instance_count());
  std::printf(
      "%8zu instances  %6.2f cpu s  %6.1f us/instance  %6.0f bytes/instance  %.1f events/instance  "
      "%.1f s simulated  %zu problems\n",
      graph.instance_count(), seconds, seconds * 1e6 / instances,
      static_cast<double>(peak_memory_bytes() - memory_before) / instances,
      static_cast<double>(result.events) / instances, static_cast<double>(result.ended.ns) * 1e-9,
      result.problems.size());
  for (const std::string& problem : result.problems) std::printf("  %s\n", problem.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<uint32_t> counts;
  for (int i = 1; i < argc; ++i) {
    counts.push_back(static_cast<uint32_t>(std::strtoul(argv[i], nullptr, 10)));
  }
  if (counts.empty()) counts = {10'000, 100'000};
  for (const uint32_t count : counts) measure(count);
  return 0;
}
