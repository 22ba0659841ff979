// `after:` in the core: order without data.
#include <doctest/doctest.h>

#include "scheduler/core.h"
#include "tests/support/core_bench.h"
#include "tests/support/graph_dsl.h"

using namespace sluice::scheduler;
using sluice::tests::CoreBench;
using sluice::tests::DslTask;
using sluice::tests::GraphDsl;

namespace {

//   first[2] ~~> second        second's output is a result
Graph ordered(uint64_t first_version = 0, uint64_t second_version = 0) {
  GraphDsl dsl;
  const TaskId first = dsl.task("first", {.count = 2, .outputs = 1, .version = first_version});
  const TaskId second = dsl.task("second", {.result = true, .version = second_version});
  dsl.gate(first, second);
  return dsl.build();
}

}  // namespace

TEST_CASE("core: what comes after starts when all before it have been done") {
  CoreBench bench(ordered());
  bench.join(1, 4);
  bench.begin();
  CHECK(bench.state(2) == InstanceState::kBlocked);
  CHECK(bench.schedule().size() == 2);
  bench.finish(0);
  CHECK(bench.schedule().empty());
  bench.finish(1);
  const auto starts = bench.schedule();
  REQUIRE(starts.size() == 1);
  CHECK(starts[0].instance == InstanceId(2));
  CHECK(starts[0].inputs.empty());
  bench.finish(2);
  bench.serve();
  CHECK(bench.outcome() == Outcome::kAllDone);
}

TEST_CASE("core: the key of what comes after does not hold what was made before") {
  CoreBench one(ordered());
  one.begin();
  CoreBench other(ordered(7));
  other.begin();
  CHECK(one.core.key(InstanceId(2)).known());
  CHECK(one.core.key(InstanceId(2)) == other.core.key(InstanceId(2)));
}

TEST_CASE("core: what comes after a failure is skipped because of it") {
  CoreBench bench(ordered());
  bench.join(1, 4);
  bench.begin();
  bench.schedule();
  bench.fail(1, Cause::kExit);
  CHECK(bench.state(2) == InstanceState::kSkipped);
  const auto skips = bench.all<decision::InstanceSkipped>();
  REQUIRE(skips.size() == 1);
  CHECK(skips[0].because == InstanceId(1));
  bench.finish(0);
  CHECK(bench.outcome() == Outcome::kFailed);
}

TEST_CASE("core: a restored predecessor counts as done") {
  CoreBench before(ordered());
  before.join(1, 4);
  before.begin();
  before.schedule();
  before.finish(0);
  before.finish(1);
  CoreBench after(ordered());
  after.restore(before.journal());
  after.join(1, 4);
  after.begin();
  CHECK(after.schedule().size() == 1);
  CHECK(after.run());
  CHECK(after.successes == std::vector<int>{0, 0, 1});
}

TEST_CASE("core: what is done stays done although something before it runs again") {
  CoreBench before(ordered());
  before.join(1, 4);
  before.begin();
  CHECK(before.run());
  CoreBench after(ordered(8));  // `first` has another command now
  after.restore(before.journal());
  after.join(1, 4);
  after.begin();
  CHECK(after.state(2) == InstanceState::kDone);
  CHECK(after.run());
  CHECK(after.successes == std::vector<int>{1, 1, 0});
  CHECK(after.outcome() == Outcome::kAllDone);
}

TEST_CASE("core: what runs again waits for what runs again before it") {
  CoreBench before(ordered());
  before.join(1, 4);
  before.begin();
  CHECK(before.run());
  CoreBench after(ordered(8, 8));
  after.restore(before.journal());
  after.join(1, 4);
  after.begin();
  CHECK(after.state(2) == InstanceState::kBlocked);
  CHECK(after.schedule().size() == 2);
}

//   a --> b ; a ~~> c : a's bytes are lost after it was done, which does not concern c
TEST_CASE("core: lost bytes do not close a gate again") {
  GraphDsl dsl;
  const TaskId a = dsl.task("a");
  const TaskId b = dsl.task("b", {.cpus = 4});
  const TaskId c = dsl.task("c", {.cpus = 4, .priority = -1});
  dsl.one_to_one(a, b);
  dsl.gate(a, c);
  CoreBench bench(dsl.build());
  bench.join(1, 4);
  bench.begin();
  bench.schedule();
  bench.finish(0);
  bench.join(2, 4);
  bench.lose(1);
  CHECK(bench.state(0) == InstanceState::kReady);  // b needs its bytes
  CHECK(bench.state(2) == InstanceState::kReady);
  CHECK(bench.run());
  CHECK(bench.successes == std::vector<int>{2, 1, 1});
}

//   a ~~> b --> c, where a has no outputs at all
TEST_CASE("core: a task without outputs can come before others") {
  GraphDsl dsl;
  const TaskId a = dsl.task("a", {.outputs = 0});
  const TaskId b = dsl.task("b");
  const TaskId c = dsl.task("c");
  dsl.gate(a, b);
  dsl.one_to_one(b, c);
  CoreBench bench(dsl.build());
  bench.join(1, 4);
  bench.begin();
  CHECK(bench.run());
  CHECK(bench.successes == std::vector<int>{1, 1, 1});
  CHECK(bench.outcome() == Outcome::kAllDone);
}

// A waiting instance may still turn out to be done: it is skipped only when its key is known.
TEST_CASE("core: a failure before a restored instance does not skip it while its key is unknown") {
  const auto graph = [] {
    GraphDsl dsl;
    const TaskId bad = dsl.task("bad", {.outputs = 0});
    const TaskId a = dsl.task("a", {.version = 3});
    const TaskId b = dsl.task("b", {.result = true});
    dsl.one_to_one(a, b);
    dsl.gate(bad, b);
    return dsl.build();
  };
  CoreBench before(graph());
  before.content_of = [](InstanceId, size_t) { return Hash128{5, 5}; };
  before.join(1, 4);
  before.begin();
  CHECK(before.run());
  std::vector<event::Restored> facts = before.journal();
  facts.erase(facts.begin());    // `bad` was not done
  facts[0].key = Hash128{1, 2};  // `a` has changed since
  CoreBench after(graph());
  after.content_of = [](InstanceId, size_t) { return Hash128{5, 5}; };
  after.restore(facts);
  after.join(1, 4);
  after.begin();
  after.schedule();
  after.fail(0, Cause::kExit);
  CHECK(after.state(2) == InstanceState::kWaiting);
  after.finish(1);  // the same bytes as before
  CHECK(after.state(2) == InstanceState::kDone);
}
