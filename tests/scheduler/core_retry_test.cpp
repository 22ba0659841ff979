// What the next attempt gets: later, more memory, more time.
#include <doctest/doctest.h>

#include "scheduler/core.h"
#include "tests/support/core_bench.h"
#include "tests/support/graph_dsl.h"

using namespace sluice::scheduler;
using sluice::tests::CoreBench;
using sluice::tests::DslTask;
using sluice::tests::GraphDsl;

namespace {

constexpr int64_t kGib = 1LL << 30U;

RetryPolicy retry(Cause cause, uint8_t max, const RetryChange& change) {
  RetryPolicy policy;
  policy.max[static_cast<size_t>(cause)] = max;
  policy.change[static_cast<size_t>(cause)] = change;
  return policy;
}

Graph one(const DslTask& task) {
  GraphDsl dsl;
  dsl.task("a", task);
  return dsl.build();
}

// The memory of each attempt until the instance has ended, all failing with `cause`.
std::vector<int64_t> memory_of_attempts(CoreBench& bench, Cause cause) {
  std::vector<int64_t> all;
  while (!bench.core.ended()) {
    const auto starts = bench.schedule();
    REQUIRE(starts.size() == 1);
    all.push_back(starts[0].grant.resources.memory_bytes / kGib);
    bench.start(0);
    bench.fail(0, cause);
  }
  return all;
}

}  // namespace

// UC-073
TEST_CASE("core: memory grows by its factor and never above the largest worker's") {
  CoreBench bench(
      one({.memory_bytes = 4 * kGib, .retry = retry(Cause::kOom, 9, {.memory_factor = 2000})}));
  bench.join(1, 4, 24 * kGib);
  bench.join(2, 4, 8 * kGib);
  bench.begin();
  CHECK(memory_of_attempts(bench, Cause::kOom) == std::vector<int64_t>{4, 8, 16, 24});
  const auto ended = bench.all<decision::AttemptEnded>();
  REQUIRE(ended.size() == 4);
  CHECK_FALSE(ended[0].no_larger);
  CHECK(ended[0].had.resources.memory_bytes == 4 * kGib);
  CHECK(ended[0].next.resources.memory_bytes == 8 * kGib);
  CHECK(ended[3].final);
  CHECK(ended[3].no_larger);
  CHECK(bench.outcome() == Outcome::kFailed);
}

// UC-073
TEST_CASE("core: no larger worker, no retry, and other tasks go on") {
  GraphDsl dsl;
  dsl.task("a",
           {.memory_bytes = 8 * kGib, .retry = retry(Cause::kOom, 3, {.memory_factor = 1500})});
  dsl.task("b");
  CoreBench bench(dsl.build());
  bench.join(1, 4, 8 * kGib);
  bench.begin();
  bench.schedule();
  bench.fail(0, Cause::kOom);
  CHECK(bench.state(0) == InstanceState::kFailed);
  CHECK(bench.all<decision::AttemptEnded>()[0].no_larger);
  bench.finish(1);
  CHECK(bench.state(1) == InstanceState::kDone);
  CHECK(bench.outcome() == Outcome::kFailed);
}

TEST_CASE("core: only workers with enough cores count as larger") {
  CoreBench bench(one({.cpus = 4,
                       .memory_bytes = 4 * kGib,
                       .retry = retry(Cause::kOom, 9, {.memory_factor = 4000})}));
  bench.join(1, 2, 100 * kGib);
  bench.join(2, 4, 8 * kGib);
  bench.begin();
  CHECK(memory_of_attempts(bench, Cause::kOom) == std::vector<int64_t>{4, 8});
}

TEST_CASE("core: the number of retries bounds memory too") {
  CoreBench bench(
      one({.memory_bytes = kGib, .retry = retry(Cause::kOom, 2, {.memory_factor = 2000})}));
  bench.join(1, 4, 1000 * kGib);
  bench.begin();
  CHECK(memory_of_attempts(bench, Cause::kOom) == std::vector<int64_t>{1, 2, 4});
  CHECK_FALSE(bench.all<decision::AttemptEnded>().back().no_larger);
}

TEST_CASE("core: a task that asks for no memory gets more than its attempt had used") {
  CoreBench bench(one({.retry = retry(Cause::kOom, 3, {.memory_factor = 1500})}));
  bench.join(1, 4, 100 * kGib);
  bench.begin();
  CHECK(bench.schedule()[0].grant.resources.memory_bytes == 0);
  bench.start(0);
  event::AttemptFailed report;
  report.worker = bench.worker(0);
  report.attempt = bench.attempt(0);
  report.cause = Cause::kOom;
  report.usage.memory_peak_bytes = 6 * kGib;
  bench.apply(report);
  CHECK(bench.schedule()[0].grant.resources.memory_bytes == 9 * kGib);
}

TEST_CASE("core: time grows by its factor and stays for retries by another cause") {
  RetryPolicy policy = retry(Cause::kTimeout, 2, {.timeout_factor = 2000});
  policy.max[static_cast<size_t>(Cause::kExit)] = 1;
  CoreBench bench(one({.timeout = seconds(10), .retry = policy}));
  bench.join(1, 4);
  bench.begin();
  CHECK(bench.schedule()[0].grant.timeout == seconds(10));
  bench.fail(0, Cause::kTimeout);
  CHECK(bench.schedule()[0].grant.timeout == seconds(20));
  bench.fail(0, Cause::kExit);
  CHECK(bench.schedule()[0].grant.timeout == seconds(20));
  bench.fail(0, Cause::kTimeout);
  CHECK(bench.schedule()[0].grant.timeout == seconds(40));
  bench.finish(0);
  CHECK(bench.outcome() == Outcome::kAllDone);
}

TEST_CASE("core: a lost worker changes nothing about the next attempt") {
  CoreBench bench(one({.memory_bytes = kGib,
                       .timeout = seconds(10),
                       .retry = retry(Cause::kOom, 2, {.memory_factor = 2000})}));
  bench.join(1, 4, 8 * kGib);
  bench.join(2, 4, 8 * kGib);
  bench.begin();
  bench.schedule();
  bench.start(0);
  bench.fail(0, Cause::kOom);
  const auto second = bench.schedule();
  bench.start(0);
  bench.lose(static_cast<int>(second[0].worker.value));
  CHECK(bench.schedule()[0].grant == second[0].grant);
}

TEST_CASE("core: an attempt that is to wait starts at its time and not before") {
  CoreBench bench(one({.retry = retry(Cause::kExit, 2, {.delay = seconds(2)})}));
  bench.join(1, 4);
  bench.begin();
  bench.schedule();
  bench.now = {seconds(1).ns};
  bench.fail(0, Cause::kExit);
  CHECK(bench.all<decision::AttemptEnded>()[0].delay == seconds(2));
  CHECK(bench.state(0) == InstanceState::kBlocked);
  CHECK(bench.schedule().empty());
  CHECK_FALSE(bench.core.ended());
  CHECK(bench.core.next_deadline() == Instant{seconds(3).ns});
  bench.tick({seconds(3).ns - 1});
  CHECK(bench.schedule().empty());
  bench.tick({seconds(3).ns});
  CHECK(bench.schedule().size() == 1);
  bench.finish(0);
  CHECK(bench.outcome() == Outcome::kAllDone);
}

TEST_CASE("core: a stop does not wait for delayed attempts") {
  CoreBench bench(one({.retry = retry(Cause::kExit, 2, {.delay = seconds(1000)})}));
  bench.join(1, 4);
  bench.begin();
  bench.schedule();
  bench.fail(0, Cause::kExit);
  bench.apply(event::StopRequested{});
  CHECK(bench.outcome() == Outcome::kStopped);
}

//   a --> b : a's outputs are lost while b waits for its next attempt
TEST_CASE("core: lost inputs are made again while an attempt is delayed") {
  GraphDsl dsl;
  const TaskId a = dsl.task("a");
  const TaskId b =
      dsl.task("b", {.result = true, .retry = retry(Cause::kExit, 1, {.delay = seconds(20)})});
  dsl.one_to_one(a, b);
  CoreBench bench(dsl.build());
  bench.join(1, 4);
  bench.begin();
  bench.schedule();
  bench.finish(0);
  bench.schedule();
  bench.start(1);
  bench.fail(1, Cause::kExit);
  bench.lose(1);
  bench.join(2, 4);
  CHECK(bench.state(0) == InstanceState::kReady);
  bench.schedule();
  bench.finish(0);
  CHECK(bench.schedule().empty());
  bench.now = {seconds(19).ns};
  bench.apply(event::Heartbeat{WorkerId(2)});
  bench.tick({seconds(20).ns});
  CHECK(bench.run());
  CHECK(bench.successes == std::vector<int>{2, 1});
}

TEST_CASE("core: a task that is held skips its delayed attempts") {
  GraphDsl dsl;
  dsl.task("a", {.count = 2, .retry = retry(Cause::kOom, 1, {.delay = seconds(5)})});
  CoreOptions options;
  options.failures_without_success_max = 1;
  CoreBench bench(dsl.build(), options);
  bench.join(1, 4);
  bench.begin();
  bench.schedule();
  bench.fail(0, Cause::kOom);
  bench.fail(1, Cause::kExit);
  CHECK(bench.state(0) == InstanceState::kSkipped);
  CHECK(bench.outcome() == Outcome::kFailed);
}
