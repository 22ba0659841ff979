// UC-105: is the attempt to blame, or its worker?
#include <doctest/doctest.h>

#include <set>

#include "scheduler/core.h"
#include "tests/support/core_bench.h"
#include "tests/support/graph_dsl.h"

using namespace sluice::scheduler;
using sluice::tests::CoreBench;
using sluice::tests::DslTask;
using sluice::tests::GraphDsl;

namespace {

Graph tasks(uint32_t count, const DslTask& options = {}) {
  GraphDsl dsl;
  DslTask task = options;
  task.count = count;
  dsl.task("a", task);
  return dsl.build();
}

CoreOptions one_deep() {
  CoreOptions options;
  options.dispatch_ahead = false;
  options.failures_without_success_max = 1'000'000;
  return options;
}

// Each round starts what can start; then everything on a worker of `broken` fails at once, and
// everything else succeeds, for items that are `bad` fails as well.
void play(
    CoreBench& bench, const std::set<uint32_t>& broken,
    const std::function<bool(int)>& bad = [](int) { return false; }) {
  bench.auto_serve = true;
  while (!bench.core.ended()) {
    const auto starts = bench.schedule();
    REQUIRE_FALSE(starts.empty());
    for (const bool fail : {true, false}) {  // failures are quicker
      for (const auto& start : starts) {
        const int instance = static_cast<int>(start.instance.value);
        const bool fails = broken.count(start.worker.value) > 0 || bad(instance);
        if (fails != fail || bench.attempt(instance) != start.attempt) continue;
        bench.start(instance);
        if (fails) {
          bench.fail(instance, Cause::kExit);
        } else {
          bench.finish(instance);
        }
      }
    }
  }
}

size_t set_aside(const CoreBench& bench) {
  size_t count = 0;
  for (const auto& change : bench.all<decision::WorkerChanged>()) {
    count += change.state == decision::WorkerState::kSetAside ? 1 : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("core: a worker where everything fails at once is set aside, its work done elsewhere") {
  CoreBench bench(tasks(1000), one_deep());
  for (const int worker : {1, 2, 3}) bench.join(worker, 1);
  bench.begin();
  play(bench, {2});
  CHECK(set_aside(bench) == 1);
  CHECK(bench.core.counts().failed <= 1);  // the first of the row
  CHECK(bench.core.counts().done >= 999);
  size_t there = 0;
  for (const auto& ended : bench.all<decision::AttemptEnded>()) {
    CHECK(ended.report.worker == WorkerId(2));
    ++there;
  }
  CHECK(there == 5);
}

TEST_CASE("core: with many slots a broken worker is stopped by its first batch") {
  CoreBench bench(tasks(500), one_deep());
  bench.join(1, 16);
  bench.join(2, 16);
  bench.begin();
  play(bench, {1});
  CHECK(set_aside(bench) == 1);
  CHECK(bench.core.counts().failed <= 1);
  CHECK(bench.all<decision::AttemptEnded>().size() <= 16);
}

TEST_CASE("core: a task that fails everywhere blames no worker") {
  for (const int32_t slots : {1, 8}) {
    CoreBench bench(tasks(200), one_deep());
    for (const int worker : {1, 2, 3, 4}) bench.join(worker, slots);
    bench.begin();
    play(bench, {}, [](int) { return true; });
    CHECK(set_aside(bench) == 0);
    CHECK(bench.core.counts().failed == 200);
    // A second opinion now and then, not for each.
    CHECK(bench.all<decision::AttemptEnded>().size() <= 200 + 4 * static_cast<size_t>(slots));
  }
}

TEST_CASE("core: bad items in a row blame no worker") {
  CoreBench bench(tasks(300), one_deep());
  for (const int worker : {1, 2, 3}) bench.join(worker, 2);
  bench.begin();
  play(bench, {}, [](int i) { return i >= 100 && i < 160; });
  CHECK(set_aside(bench) == 0);
  CHECK(bench.core.counts().failed == 60);
  CHECK(bench.core.counts().done == 240);
}

TEST_CASE("core: the last worker is never set aside") {
  CoreBench bench(tasks(50), one_deep());
  bench.join(1, 2);
  bench.begin();
  play(bench, {1});
  CHECK(set_aside(bench) == 0);
  CHECK(bench.core.counts().failed == 50);
}

//   the large ones fit only on the broken worker
TEST_CASE("core: a worker that was set aside still gets what nobody else could run") {
  GraphDsl dsl;
  dsl.task("small", {.count = 100});
  dsl.task("large", {.count = 2, .cpus = 4, .priority = -1});
  CoreBench bench(dsl.build(), one_deep());
  bench.join(1, 4);
  bench.join(2, 1);
  bench.begin();
  play(bench, {1});
  CHECK(set_aside(bench) == 1);
  CHECK(bench.state(100) == InstanceState::kFailed);
  CHECK(bench.state(101) == InstanceState::kFailed);
  CHECK(bench.core.counts().failed <= 3);
}

TEST_CASE("core: when the others are lost, what was set aside serves again") {
  CoreBench bench(tasks(40), one_deep());
  bench.join(1, 2);
  bench.join(2, 2);
  bench.begin();
  while (set_aside(bench) == 0) {
    for (const auto& start : bench.schedule()) {
      const int instance = static_cast<int>(start.instance.value);
      bench.start(instance);
      if (start.worker == WorkerId(1)) {
        bench.fail(instance, Cause::kExit);
      } else {
        bench.finish(instance);
      }
    }
  }
  bench.lose(2);
  CHECK(bench.run());
  CHECK(bench.core.ended());
  CHECK(bench.core.counts().ready == 0);
}

TEST_CASE("core: slow failures and lost workers raise no doubt") {
  CoreBench bench(tasks(20), one_deep());
  bench.join(1, 1);
  bench.join(2, 1);
  bench.begin();
  bench.auto_serve = true;
  while (!bench.core.ended()) {
    for (const auto& start : bench.schedule()) {
      event::AttemptFailed report;
      report.worker = start.worker;
      report.attempt = start.attempt;
      report.cause = start.worker == WorkerId(1) ? Cause::kExit : Cause::kTimeout;
      report.usage.wall = seconds(2);
      bench.apply(report);
    }
  }
  CHECK(set_aside(bench) == 0);
  CHECK(bench.core.counts().failed == 20);
  CHECK(bench.all<decision::AttemptEnded>().size() == 20);
}
