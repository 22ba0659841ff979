// Part of a pipeline: selected and left out, forced, and enough failures.
#include <doctest/doctest.h>

#include "scheduler/core.h"
#include "tests/support/core_bench.h"
#include "tests/support/graph_dsl.h"

using namespace sluice::scheduler;
using sluice::tests::CoreBench;
using sluice::tests::GraphDsl;

namespace {

using Flags = std::vector<bool>;

//   a[2] --> b[2] ==> c      b and c have results
Graph pairs(uint64_t version = 0) {
  GraphDsl dsl;
  const TaskId a = dsl.task("a", {.count = 2, .version = version});
  const TaskId b = dsl.task("b", {.count = 2, .result = true});
  const TaskId c = dsl.task("c", {.result = true});
  dsl.one_to_one(a, b);
  dsl.gather(b, c);
  return dsl.build();
}
const Flags kSecondPair = {false, true, false, true, false};

}  // namespace

TEST_CASE("core: only what is selected runs, and the run is done within it") {
  CoreBench bench(pairs());
  bench.apply(event::Selected{kSecondPair});
  bench.join(1, 4);
  bench.begin();
  CHECK(bench.state(0) == InstanceState::kLeftOut);
  CHECK(bench.state(1) == InstanceState::kReady);
  CHECK(bench.run());
  CHECK(bench.successes == std::vector<int>{0, 1, 0, 1, 0});
  CHECK(bench.outcome() == Outcome::kAllDone);
  CHECK(bench.core.counts().left_out == 3);
  CHECK(bench.core.counts().done == 2);
  CHECK(bench.core.durable(ObjectId(3)));
}

TEST_CASE("core: a run that includes more starts from what a selection has done") {
  CoreBench first(pairs());
  first.apply(event::Selected{kSecondPair});
  first.join(1, 4);
  first.begin();
  CHECK(first.run());
  CoreBench second(pairs());
  second.restore(first.journal());
  second.join(1, 4);
  second.begin();
  CHECK(second.run());
  CHECK(second.successes == std::vector<int>{1, 0, 1, 0, 1});
  CHECK(second.outcome() == Outcome::kAllDone);
}

//   a --> b : b is left out, so what it reads is saved
TEST_CASE("core: what left-out instances read is saved at the end") {
  GraphDsl dsl;
  const TaskId a = dsl.task("a");
  const TaskId b = dsl.task("b");
  dsl.one_to_one(a, b);
  CoreBench bench(dsl.build());
  bench.apply(event::Selected{Flags{true, false}});
  bench.join(1, 4);
  bench.begin();
  CHECK(bench.run());
  CHECK(bench.outcome() == Outcome::kAllDone);
  CHECK(bench.core.durable(ObjectId(0)));
  const auto saves = bench.all<decision::SaveObject>();
  REQUIRE(saves.size() == 1);
  CHECK(saves[0].destination == Destination::kObjects);
}

TEST_CASE("core: a left-out instance that the journal knows in full counts as done") {
  CoreBench before(pairs());
  before.join(1, 4);
  before.begin();
  CHECK(before.run());
  const auto facts = before.journal();
  SUBCASE("all is there") {
    CoreBench bench(pairs());
    bench.restore(facts);
    bench.apply(event::Selected{kSecondPair});
    bench.begin();
    CHECK(bench.outcome() == Outcome::kAllDone);
    CHECK(bench.core.counts().done == 5);
    CHECK(bench.core.counts().left_out == 0);
  }
  SUBCASE("a result of it is gone, which concerns nobody now") {
    auto damaged = facts;
    damaged[2].durable[0] = false;
    CoreBench bench(pairs());
    bench.restore(damaged);
    bench.apply(event::Selected{kSecondPair});
    bench.begin();
    CHECK(bench.outcome() == Outcome::kAllDone);
    CHECK(bench.state(2) == InstanceState::kLeftOut);
    CHECK(bench.all<decision::RemoveSaved>().empty());
  }
  SUBCASE("it has changed since") {
    CoreBench bench(pairs(5));
    bench.restore(facts);
    bench.apply(event::Selected{kSecondPair});
    bench.join(1, 4);
    bench.begin();
    CHECK(bench.run());
    CHECK(bench.successes == std::vector<int>{0, 1, 0, 1, 0});
    CHECK(bench.state(0) == InstanceState::kLeftOut);
  }
}

TEST_CASE("core: a failure does not skip what is left out") {
  CoreBench bench(pairs());
  bench.apply(event::Selected{kSecondPair});
  bench.join(1, 4);
  bench.begin();
  bench.schedule();
  bench.fail(1, Cause::kExit);
  CHECK(bench.state(3) == InstanceState::kSkipped);
  CHECK(bench.state(4) == InstanceState::kLeftOut);
  CHECK(bench.all<decision::InstanceSkipped>().size() == 1);
  CHECK(bench.outcome() == Outcome::kFailed);
}

// What --force does: the journal's fact without its key.
TEST_CASE("core: a forced instance runs again, its consumers only if its bytes differ") {
  CoreBench before(pairs());
  before.content_of = [](InstanceId, size_t) { return Hash128{5, 5}; };
  before.join(1, 4);
  before.begin();
  CHECK(before.run());
  auto facts = before.journal();
  facts[0].key = Hash128{};
  for (const uint64_t other : {5U, 6U}) {
    CoreBench bench(pairs());
    bench.content_of = [other](InstanceId instance, size_t) {
      return instance == InstanceId(0) ? Hash128{other, 5} : Hash128{5, 5};
    };
    bench.restore(facts);
    bench.join(1, 4);
    bench.begin();
    CHECK(bench.run());
    CHECK(bench.successes == std::vector<int>{1, 0, other == 5 ? 0 : 1, 0, 0});
    CHECK(bench.outcome() == Outcome::kAllDone);
  }
}

// ---- enough failures ----

TEST_CASE("core: after so many failures nothing new starts, and what runs is finished") {
  GraphDsl dsl;
  dsl.task("a", {.count = 6, .result = true});
  CoreOptions options;
  options.failures_max = 2;
  options.dispatch_ahead = false;
  CoreBench bench(dsl.build(), options);
  bench.join(1, 3);
  bench.begin();
  bench.schedule();
  for (const int i : {0, 1, 2}) bench.start(i);
  bench.fail(0, Cause::kExit);
  CHECK(bench.schedule().size() == 1);
  bench.fail(1, Cause::kExit);
  CHECK(bench.schedule().empty());
  const auto began = bench.all<decision::StopBegan>();
  REQUIRE(began.size() == 1);
  CHECK(began[0].reason == decision::StopReason::kFailuresMax);
  CHECK(began[0].because == InstanceId(1));
  CHECK(bench.all<decision::StopAttempt>().empty());
  CHECK(bench.all<decision::TakeBack>().size() == 1);  // 3 was sent, but does not run yet
  bench.serve();
  bench.finish(2);
  bench.serve();
  CHECK(bench.outcome() == Outcome::kFailed);
  CHECK(bench.core.durable(ObjectId(2)));
  CHECK(bench.state(4) == InstanceState::kReady);
}

TEST_CASE("core: a stop after enough failures stops what still runs") {
  GraphDsl dsl;
  dsl.task("a", {.count = 4});
  CoreOptions options;
  options.failures_max = 1;
  CoreBench bench(dsl.build(), options);
  bench.join(1, 2);
  bench.begin();
  bench.schedule();
  bench.start(0);
  bench.start(1);
  bench.fail(0, Cause::kExit);
  bench.apply(event::StopRequested{});
  CHECK(bench.all<decision::StopAttempt>().size() == 1);
  bench.serve();
  CHECK(bench.outcome() == Outcome::kStopped);
}

TEST_CASE("core: failures that a task ignores are never enough") {
  GraphDsl dsl;
  dsl.task("a", {.count = 4, .on_failure = OnFailure::kIgnore});
  CoreOptions options;
  options.failures_max = 1;
  CoreBench bench(dsl.build(), options);
  bench.join(1, 1);
  bench.begin();
  for (const int i : {0, 1, 2, 3}) {
    bench.schedule();
    bench.serve();
    bench.fail(i, Cause::kExit);
  }
  CHECK(bench.outcome() == Outcome::kAllDone);
  CHECK(bench.all<decision::StopBegan>().empty());
}
