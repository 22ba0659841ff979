// bench_simulator [core|simulator|join|depth] [instances ...]: what large graphs cost, without
// machines; one of four or all.
//
//   core       the graph and the core alone, in an honest world (tests/support/honest_world.h)
//   simulator  the same with agents, codec, network, referee and run directory, all in one process
//   join       10^4 producers and 10^4 consumers of all of them, the core alone on 4 x 4 cores
//   (each
//              start names all inputs: what is sent at once is not a matter of the tables)
//   depth      10^4 attempts of 1 ms, 200 us from rank 0: one ahead per slot, and adaptive depth
//
// The first two simulate so many independent instances (default: 10^4, 10^5, 10^6), gathered by
// hundreds, on 100 workers of 64 cores, and print processor time and the peak of allocated bytes
// per instance (as malloc rounds them, with its 8 bytes of its own). Not a test: nothing is checked
// but that the runs end.
#include <malloc.h>

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <new>
#include <string_view>
#include <vector>

#include "engine/simulator.h"
#include "tests/support/graph_dsl.h"
#include "tests/support/honest_world.h"

namespace {

size_t g_live_bytes = 0;  // this program has one thread
size_t g_peak_bytes = 0;

void* counted(void* memory) {
  if (memory == nullptr) std::abort();
  g_live_bytes += malloc_usable_size(memory) + sizeof(size_t);
  if (g_live_bytes > g_peak_bytes) g_peak_bytes = g_live_bytes;
  return memory;
}

void uncounted_free(void* memory) noexcept {
  if (memory == nullptr) return;
  g_live_bytes -= malloc_usable_size(memory) + sizeof(size_t);
  std::free(memory);
}

}  // namespace

void* operator new(size_t size) { return counted(std::malloc(size)); }
void operator delete(void* memory) noexcept { uncounted_free(memory); }
void operator delete(void* memory, size_t) noexcept { uncounted_free(memory); }

namespace {

using namespace sluice;

constexpr uint32_t kGroup = 100;  // instances that one join gathers
constexpr uint32_t kWorkers = 100;
constexpr int32_t kCores = 64;

// What happened since it was made.
class Meter {
 public:
  Meter() { g_peak_bytes = g_live_bytes; }
  [[nodiscard]] double cpu_seconds() const {
    return static_cast<double>(std::clock() - start_) / static_cast<double>(CLOCKS_PER_SEC);
  }
  [[nodiscard]] double live_bytes() const {
    return static_cast<double>(g_live_bytes) - static_cast<double>(before_);
  }
  [[nodiscard]] double peak_bytes() const {
    return static_cast<double>(g_peak_bytes) - static_cast<double>(before_);
  }

 private:
  std::clock_t start_ = std::clock();
  size_t before_ = g_live_bytes;
};

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

void measure_core(uint32_t count) {
  const Meter meter;
  const scheduler::Graph graph = make_graph(count);
  const double graph_bytes = meter.live_bytes();
  const auto cost = tests::HonestWorld(graph, kWorkers, kCores).run();
  const auto instances = static_cast<double>(graph.instance_count());
  std::printf(
      "core      %8zu instances  %6.2f cpu s  %5.1f us/instance  %5.0f bytes/instance (graph %.0f) "
      " "
      "%.0f steps/instance%s\n",
      graph.instance_count(), meter.cpu_seconds(), meter.cpu_seconds() * 1e6 / instances,
      meter.peak_bytes() / instances, graph_bytes / instances,
      static_cast<double>(cost.steps) / instances, cost.ended ? "" : "  NOT ENDED");
}

void measure_simulator(uint32_t count) {
  const Meter meter;
  const scheduler::Graph graph = make_graph(count);
  engine::SimulationOptions options;
  options.check_every = 0;
  engine::WorkerPlan worker;
  worker.resources = {kCores, 0};
  options.workers.assign(kWorkers, worker);
  engine::SimulatedRunDirectory directory;
  const engine::SimulationResult result = engine::simulate(graph, options, directory);
  const auto instances = static_cast<double>(graph.instance_count());
  std::printf(
      "simulator %8zu instances  %6.2f cpu s  %5.1f us/instance  %5.0f bytes/instance  "
      "%.1f events/instance  %.1f s simulated  %zu problems\n",
      graph.instance_count(), meter.cpu_seconds(), meter.cpu_seconds() * 1e6 / instances,
      meter.peak_bytes() / instances, static_cast<double>(result.events) / instances,
      static_cast<double>(result.ended.ns) * 1e-9, result.problems.size());
  for (const std::string& problem : result.problems) std::printf("  %s\n", problem.c_str());
}

void measure_join(uint32_t side) {
  const Meter meter;
  tests::GraphDsl dsl;
  const auto a = dsl.task("a", {.count = side});
  const auto b = dsl.task("b", {.count = side, .outputs = 0});
  dsl.join(a, b);
  const scheduler::Graph graph = dsl.build();
  const auto cost = tests::HonestWorld(graph, 4, 4).run();
  std::printf("join      %u x %u  %6.2f cpu s  %5.0f bytes and %.1f events per member%s\n", side,
              side, meter.cpu_seconds(), meter.peak_bytes() / (2.0 * side),
              static_cast<double>(cost.events) / (2.0 * side), cost.ended ? "" : "  NOT ENDED");
}

void measure_depth(uint32_t ahead_per_slot_max) {
  constexpr uint32_t kCount = 10'000;
  constexpr int32_t kWide = 4;
  tests::GraphDsl dsl;
  dsl.task("short", {.count = kCount, .expected = scheduler::milliseconds(1), .outputs = 0});
  const scheduler::Graph graph = dsl.build();
  engine::SimulationOptions options;
  options.check_every = 0;
  options.latency_min = options.latency_max = scheduler::microseconds(200);
  options.model.exact = true;
  options.core.ahead_per_slot_max = ahead_per_slot_max;
  engine::WorkerPlan worker;
  worker.resources = {kWide, 0};
  options.workers.assign(kWide, worker);
  engine::SimulatedRunDirectory directory;
  const engine::SimulationResult result = engine::simulate(graph, options, directory);
  const double ran = static_cast<double>(result.ended.ns) * 1e-6 - 10.0;  // it begins after 10 ms
  std::printf("depth     at most %u ahead per slot: %.2f of the cores' time is used\n",
              ahead_per_slot_max, kCount / (ran * kWide * kWide));
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view only = argc > 1 ? argv[1] : "";
  if (!only.empty() && std::isdigit(static_cast<unsigned char>(only.front())) != 0) only = "";
  const auto asked = [only](std::string_view what) { return only.empty() || only == what; };
  std::vector<uint32_t> counts;
  for (int i = only.empty() ? 1 : 2; i < argc; ++i) {
    counts.push_back(static_cast<uint32_t>(std::strtoul(argv[i], nullptr, 10)));
  }
  if (counts.empty()) counts = {10'000, 100'000, 1'000'000};
  for (const uint32_t count : counts) {
    if (asked("core")) measure_core(count);
  }
  for (const uint32_t count : counts) {
    if (asked("simulator")) measure_simulator(count);
  }
  if (asked("join")) measure_join(10'000);
  for (const uint32_t most : {1U, 16U}) {
    if (asked("depth")) measure_depth(most);
  }
  return 0;
}
