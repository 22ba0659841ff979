// How much is sent ahead, in which order it gets slots, and what is taken back.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "scheduler/core.h"
#include "tests/support/core_bench.h"
#include "tests/support/graph_dsl.h"

using namespace sluice::scheduler;
using sluice::tests::CoreBench;
using sluice::tests::GraphDsl;

namespace {

size_t in_flight(const CoreBench& bench) {
  const Counts counts = bench.core.counts();
  return counts.assigned + counts.running;
}

std::vector<uint32_t> started(const std::vector<decision::StartAttempt>& starts) {
  std::vector<uint32_t> instances;
  for (const decision::StartAttempt& start : starts) {
    instances.push_back(start.instance.value);
  }
  return instances;
}

std::vector<uint32_t> taken_back(const CoreBench& bench) {
  std::map<AttemptId, uint32_t> instances;
  for (const auto& start : bench.all<decision::StartAttempt>()) {
    instances[start.attempt] = start.instance.value;
  }
  std::vector<uint32_t> found;
  for (const auto& back : bench.all<decision::TakeBack>()) {
    found.push_back(instances.at(back.attempt));
  }
  return found;
}

// Finishes so many attempts of that duration, each followed by a turn of schedule().
void work(CoreBench& bench, int count, Duration wall) {
  bench.wall_of = [wall](InstanceId) { return wall; };
  for (int i = 0; i < count; ++i) {
    bench.finish(bench.lowest_in_flight());
    bench.schedule();
    bench.serve();
    bench.schedule();
  }
}

Graph independent(uint32_t count) {
  GraphDsl dsl;
  dsl.task("a", {.count = count, .outputs = 0});
  return dsl.build();
}

}  // namespace

// 5 ms are to be covered, 20 by four slots: 5 attempts of 1 ms per slot, never more than 16, and
// one of 1 s.
TEST_CASE("depth: what waits ahead follows how long attempts take, up and down") {
  CoreBench bench(independent(2000));
  bench.join(0, 4);
  bench.begin();
  bench.schedule();
  CHECK(in_flight(bench) == 4 + 4);  // nothing is known yet: one per slot
  work(bench, 40, milliseconds(1));
  CHECK(in_flight(bench) == 4 + 5 * 4);
  work(bench, 200, microseconds(100));
  CHECK(in_flight(bench) == 4 + 16 * 4);
  work(bench, 200, milliseconds(4));
  CHECK(in_flight(bench) == 4 + 5);
  work(bench, 200, microseconds(2500));
  CHECK(in_flight(bench) == 4 + 2 * 4);
  work(bench, 40, seconds(1));
  CHECK(in_flight(bench) == 4 + 4);
}

TEST_CASE("depth: workers are supplied while each that runs something has as much waiting") {
  CoreBench bench(independent(10));
  CHECK_FALSE(bench.core.workers_supplied());
  bench.join(0, 2);
  bench.join(1, 2);
  bench.begin();
  CHECK_FALSE(bench.core.workers_supplied());
  bench.schedule();  // 2 and 2 run, 2 and 2 wait, 2 are left
  CHECK(bench.core.workers_supplied());
  work(bench, 2, seconds(1));
  CHECK(bench.core.workers_supplied());
  work(bench, 1, seconds(1));  // nothing is left for the third slot
  CHECK_FALSE(bench.core.workers_supplied());
}

TEST_CASE("depth: the options bound it, to none at all") {
  for (const uint32_t most : {1U, 3U}) {
    CoreBench bench(independent(300), {.ahead_per_slot_max = most});
    bench.join(0, 4);
    bench.begin();
    bench.schedule();
    work(bench, 100, microseconds(50));
    CHECK(in_flight(bench) == 4 + most * 4);
  }
  CoreBench none(independent(20), {.dispatch_ahead = false});
  none.join(0, 4);
  none.begin();
  none.schedule();
  work(none, 10, microseconds(50));
  CHECK(in_flight(none) == 4);
}

//  quick x4 --one to one--> reads x4 (20 s)       alone x9 (20 s)
TEST_CASE("depth: of long attempts only those wait ahead that have inputs to fetch") {
  GraphDsl dsl;
  dsl.task("alone", {.count = 9, .expected = seconds(20), .outputs = 0});
  CoreBench alone(dsl.build());
  alone.join(0, 2);
  alone.begin();
  CHECK(alone.schedule().size() == 2);
  GraphDsl other;
  const TaskId quick = other.task("quick", {.count = 4});
  const TaskId reads = other.task("reads", {.count = 4, .expected = seconds(20), .outputs = 0});
  other.one_to_one(quick, reads);
  CoreBench bench(other.build());
  bench.join(0, 2);
  bench.begin();
  bench.schedule();
  for (const int i : {0, 1, 2, 3}) {
    bench.finish(i);
  }
  CHECK(bench.schedule().size() == 2 + 2);
}

//  first --gate--> high (priority 5)      low x3
TEST_CASE("depth: what is more important gets the next slot, whatever waits there") {
  GraphDsl dsl;
  const TaskId first = dsl.task("first", {.expected = seconds(2), .outputs = 0});
  dsl.task("low", {.count = 3, .outputs = 0});
  const TaskId high = dsl.task("high", {.priority = 5, .outputs = 0});
  dsl.gate(first, high);
  CoreBench bench(dsl.build());
  bench.join(0, 2);
  bench.begin();
  CHECK(started(bench.schedule()) == std::vector<uint32_t>{0, 1, 2, 3});
  bench.finish(0);  // 2 gets the slot at once: the worker does not ask
  const auto starts = bench.schedule();
  REQUIRE(started(starts) == std::vector<uint32_t>{4});
  CHECK(starts[0].ahead);
  CHECK(starts[0].priority == 5);
  bench.finish(1);
  bench.join(1, 4);  // idle, so it gets what waits: that is no longer the important one
  bench.schedule();
  CHECK(taken_back(bench) == std::vector<uint32_t>{3});
}

//  first --gate--> high (priority 5, one core)      low x3, wide (4 cores)
TEST_CASE("depth: what is more important takes a free core that a wide one waits beside") {
  GraphDsl dsl;
  const TaskId first = dsl.task("first", {.expected = seconds(2), .outputs = 0});
  dsl.task("low", {.count = 3, .priority = 1, .outputs = 0});
  dsl.task("wide", {.count = 1, .cpus = 4, .outputs = 0});
  const TaskId high = dsl.task("high", {.priority = 5, .outputs = 0});
  dsl.gate(first, high);
  CoreBench bench(dsl.build());
  bench.join(0, 4);
  bench.begin();
  REQUIRE(bench.schedule().size() == 5);  // wide is ahead
  bench.finish(0);
  const auto starts = bench.schedule();
  REQUIRE(started(starts) == std::vector<uint32_t>{5});
  CHECK_FALSE(starts[0].ahead);
}

// Worker 0 runs busy, worker 1 signal; low waits ahead with the only licence until high is ready.
//   signal --gate--> high (licence, priority 5)      low (licence)
TEST_CASE("depth: a limit that waits ahead is given to who is more important, once") {
  GraphDsl dsl;
  const LimitId licence = dsl.limit("licence", kAmountUnit);
  const std::vector<LimitUse> one{{licence, kAmountUnit}};
  dsl.task("busy", {.priority = 9, .outputs = 0});
  const TaskId signal = dsl.task("signal", {.priority = 8, .outputs = 0});
  dsl.task("low", {.limits = one, .outputs = 0});
  const TaskId high = dsl.task("high", {.limits = one, .priority = 5, .outputs = 0});
  dsl.gate(signal, high);
  CoreBench bench(dsl.build());
  bench.join(0, 1);
  bench.join(1, 1);
  bench.begin();
  REQUIRE(started(bench.schedule()) == std::vector<uint32_t>{0, 1, 2});
  REQUIRE(bench.worker(2) == WorkerId(0));
  bench.finish(1);
  CHECK(bench.schedule().empty());
  CHECK(taken_back(bench) == std::vector<uint32_t>{2});
  bench.serve();
  const auto starts = bench.schedule();
  REQUIRE(started(starts) == std::vector<uint32_t>{3});
  CHECK(starts[0].worker == WorkerId(1));
  CHECK(bench.schedule().empty());
  CHECK(taken_back(bench).size() == 1);
  CHECK(bench.run());
  CHECK(bench.successes == std::vector<int>{1, 1, 1, 1});
}

// As above, but high needs two licences, of which runs holds one.
TEST_CASE("depth: a limit is not taken back in vain") {
  GraphDsl dsl;
  const LimitId licence = dsl.limit("licence", 2 * kAmountUnit);
  const std::vector<LimitUse> one{{licence, kAmountUnit}};
  const std::vector<LimitUse> two{{licence, 2 * kAmountUnit}};
  dsl.task("runs", {.limits = one, .priority = 9, .outputs = 0});
  const TaskId signal = dsl.task("signal", {.priority = 8, .outputs = 0});
  dsl.task("low", {.limits = one, .outputs = 0});
  dsl.task("other", {.priority = -1, .outputs = 0});
  const TaskId high = dsl.task("high", {.limits = two, .priority = 5, .outputs = 0});
  dsl.gate(signal, high);
  CoreBench bench(dsl.build());
  bench.join(0, 1);
  bench.join(1, 1);
  bench.begin();
  REQUIRE(bench.schedule().size() == 4);
  bench.finish(1);
  bench.schedule();
  CHECK(bench.state(4) == InstanceState::kReady);
  CHECK(taken_back(bench).empty());
  CHECK(bench.run());
}

TEST_CASE("depth: what waits where nothing moves is taken back, and stays away") {
  CoreBench bench(independent(400));
  bench.join(0, 4);
  bench.begin();
  bench.schedule();
  work(bench, 200, microseconds(100));
  REQUIRE(in_flight(bench) == 4 + 64);
  bench.now = bench.now + milliseconds(60);  // the four that run are of another kind
  CHECK(bench.schedule().empty());
  CHECK(taken_back(bench).size() == 60);
  bench.serve();
  CHECK(bench.schedule().empty());
  CHECK(in_flight(bench) == 4 + 4);
  bench.join(1, 4);
  CHECK(bench.schedule().size() == 4 + 64);  // they go where something moves
  CHECK(taken_back(bench).size() == 60);
  CHECK(bench.run());
}

// Attempts of all lengths in a random order on three workers.
TEST_CASE("depth: nothing is sent and taken back in turns") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed ", seed);
    std::mt19937_64 random(seed);
    CoreBench bench(independent(300));
    const std::vector<Duration> lengths{microseconds(100), milliseconds(1), milliseconds(80)};
    bench.wall_of = [&](InstanceId) { return lengths[random() % lengths.size()]; };
    for (const int worker : {0, 1, 2}) {
      bench.join(worker, 2);
    }
    bench.begin();
    while (!bench.core.ended()) {
      bench.schedule();
      bench.serve();
      bench.schedule();
      bench.now = bench.now + lengths[random() % lengths.size()];
      if (const int next = bench.lowest_in_flight(); next >= 0) {
        bench.finish(next);
      }
    }
    CHECK(bench.outcome() == Outcome::kAllDone);
    std::map<uint32_t, int> times;
    for (const uint32_t instance : taken_back(bench)) {
      ++times[instance];
    }
    for (const auto& [instance, count] : times) {
      CHECK(count <= 4);
    }
  }
}
