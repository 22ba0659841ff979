#include "scheduler/core.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/core_bench.h"
#include "tests/support/graph_dsl.h"
#include "tests/support/rerun_minimum.h"

using namespace sluice::scheduler;
using sluice::tests::CoreBench;
using sluice::tests::DslTask;
using sluice::tests::GraphDsl;

namespace {

std::vector<uint32_t> instances_of(const std::vector<decision::StartAttempt>& starts) {
  std::vector<uint32_t> ids;
  for (const decision::StartAttempt& start : starts) {
    ids.push_back(start.instance.value);
  }
  return ids;
}

using Numbers = std::vector<uint32_t>;

// a --> b --> c, c's output is a result
Graph chain(const DslTask& middle = {}) {
  GraphDsl dsl;
  const TaskId a = dsl.task("a");
  const TaskId b = dsl.task("b", middle);
  const TaskId c = dsl.task("c", {.result = true});
  dsl.one_to_one(a, b);
  dsl.one_to_one(b, c);
  return dsl.build();
}

}  // namespace

// ---- order and data ----------------------------------------------------------------------------

//   a --> b --> c
TEST_CASE("core: a chain runs in order and its result is published before the run ends") {
  CoreBench bench(chain());
  bench.join(1, 4);
  bench.begin();
  CHECK(bench.state(0) == InstanceState::kReady);
  CHECK(bench.state(1) == InstanceState::kWaiting);
  CHECK_FALSE(bench.core.key(InstanceId(1)).known());
  CHECK(instances_of(bench.schedule()) == Numbers{0});
  bench.start(0);
  bench.finish(0);
  CHECK(bench.core.key(InstanceId(1)).known());
  const auto starts = bench.schedule();
  REQUIRE(starts.size() == 1);
  CHECK(starts[0].inputs == std::vector<InputPlace>{{ObjectId(0), WorkerId(1)}});
  bench.start(1);
  bench.finish(1);
  bench.schedule();
  bench.start(2);
  bench.finish(2);

  const auto saves = bench.all<decision::SaveObject>();
  REQUIRE(saves.size() == 1);
  CHECK(saves[0].object == ObjectId(2));
  CHECK(saves[0].destination == Destination::kResults);
  CHECK(bench.core.counts().results_pending == 1);
  CHECK_FALSE(bench.core.ended());
  bench.serve();
  CHECK(bench.outcome() == Outcome::kAllDone);
  CHECK(bench.core.durable(ObjectId(2)));
}

//        +--> b --+
//   a ---|        +--> d
//        +--> c --+
TEST_CASE("core: a diamond waits for both sides") {
  GraphDsl dsl;
  const TaskId a = dsl.task("a");
  const TaskId b = dsl.task("b");
  const TaskId c = dsl.task("c");
  const TaskId d = dsl.task("d");
  dsl.one_to_one(a, b);
  dsl.one_to_one(a, c);
  dsl.one_to_one(b, d);
  dsl.one_to_one(c, d);
  CoreBench bench(dsl.build());
  bench.join(1, 4);
  bench.begin();
  bench.schedule();
  bench.finish(0);
  CHECK(instances_of(bench.schedule()) == Numbers{1, 2});
  bench.finish(2);
  CHECK(bench.state(3) == InstanceState::kWaiting);
  CHECK(bench.schedule().empty());
  bench.finish(1);
  CHECK(instances_of(bench.schedule()) == Numbers{3});
}

//   a[3] ==> b : 3 inputs, in item order
TEST_CASE("core: a gather gets every input in item order") {
  GraphDsl dsl;
  const TaskId a = dsl.task("a", {.count = 3});
  const TaskId b = dsl.task("b");
  dsl.gather(a, b);
  CoreBench bench(dsl.build());
  bench.join(1, 4);
  bench.begin();
  bench.schedule();
  for (const int i : {2, 0, 1}) {
    bench.finish(i);
  }
  const auto starts = bench.schedule();
  REQUIRE(starts.size() == 1);
  REQUIRE(starts[0].inputs.size() == 3);
  for (uint32_t i = 0; i < 3; ++i) {
    CHECK(starts[0].inputs[i].object == ObjectId(i));
  }
}

TEST_CASE("core: a gather over no items runs with an empty list") {
  GraphDsl dsl;
  const TaskId none = dsl.task("none", {.count = 0});
  const TaskId sum = dsl.task("sum");
  dsl.gather(none, sum);
  CoreBench bench(dsl.build());
  bench.join(1, 1);
  bench.begin();
  CHECK(instances_of(bench.schedule()) == Numbers{0});
  CHECK(bench.core.key(InstanceId(0)) != bench.graph.static_key(InstanceId(0)));
}

//   a[1000] ==> b[1000] : a million pairs, one group
TEST_CASE("core: a join of thousands ends in time and runs each once") {
  GraphDsl dsl;
  const TaskId a = dsl.task("a", {.count = 1000, .kind = OutputKind::kValue});
  const TaskId b = dsl.task("b", {.count = 1000, .kind = OutputKind::kValue});
  dsl.join(a, b);
  const Graph graph = dsl.build();
  Core core(graph, {});
  std::vector<Decision> out;
  const Instant now;
  core.apply(now, event::WorkerJoined{WorkerId(0), NodeId(0), {500, 0}}, out);
  core.apply(now, event::Begin{}, out);
  size_t done = 0;
  for (size_t next = 0; !core.ended(); ++next) {
    if (next == out.size()) {
      core.schedule(now, out);
      REQUIRE(next < out.size());
    }
    if (const auto* start = std::get_if<decision::StartAttempt>(&out[next])) {
      const event::AttemptFinished report{
          start->worker, start->attempt, {{{start->instance.value + 1, 1}, 8, ""}}, {}};
      core.apply(now, report, out);
      ++done;
    }
  }
  CHECK(done == 2000);
  core.check_invariants();
}

TEST_CASE("core: keys differ by input content, by input order and by how lists are cut") {
  const auto key_of = [](int cut, Hash128 second) {
    GraphDsl dsl;
    const TaskId a = dsl.task("a", {.count = 3, .kind = OutputKind::kValue});
    const TaskId b = dsl.task("b");
    std::vector<ObjectId> objects{ObjectId(0), ObjectId(1), ObjectId(2)};
    const InstanceId consumer = dsl.so_far().instance(b, 0);
    const std::span<const ObjectId> list(objects);
    dsl.group(list.subspan(0, static_cast<size_t>(cut)), {&consumer, 1});
    dsl.group(list.subspan(static_cast<size_t>(cut)), {&consumer, 1});
    (void)a;
    CoreBench bench(dsl.build());
    bench.content_of = [&](InstanceId i, size_t) {
      return i == InstanceId(1) ? second : Hash128{i.value + 1, 5};
    };
    bench.join(0, 3);
    bench.begin();
    bench.schedule();
    for (const int i : {0, 1, 2}) {
      bench.finish(i);
    }
    return bench.core.key(InstanceId(3));
  };
  CHECK(key_of(1, {9, 9}) == key_of(1, {9, 9}));
  CHECK(key_of(1, {9, 9}) != key_of(2, {9, 9}));
  CHECK(key_of(1, {9, 9}) != key_of(1, {9, 8}));
  CHECK(key_of(0, {9, 9}) != key_of(3, {9, 9}));
}

//   a --> b1, b2     a's output is needed twice
TEST_CASE("core: an object is dropped after its last consumer, everywhere") {
  GraphDsl dsl;
  const TaskId a = dsl.task("a");
  const TaskId b = dsl.task("b", {.count = 2, .outputs = 0});
  dsl.broadcast(a, b);
  CoreBench bench(dsl.build());
  bench.join(0, 1);
  bench.join(1, 1);
  bench.begin();
  bench.schedule();
  bench.finish(0);
  bench.schedule();
  bench.apply(event::ReplicaAdded{WorkerId(1), ObjectId(0)});
  CHECK(bench.core.replicas(ObjectId(0)).size() == 2);
  bench.finish(1);
  CHECK(bench.all<decision::DropObject>().empty());
  bench.finish(2);
  const auto drops = bench.all<decision::DropObject>();
  REQUIRE(drops.size() == 2);
  CHECK(drops[0].worker == WorkerId(0));
  CHECK(drops[1].worker == WorkerId(1));
  CHECK(bench.core.replicas(ObjectId(0)).empty());
  CHECK(bench.outcome() == Outcome::kAllDone);
}

TEST_CASE("core: what is idle is dropped once the records that made it so are on disk") {
  CoreBench bench(chain());
  bench.join(0, 1);
  bench.begin();
  bench.schedule();
  bench.finish(0);
  CHECK_FALSE(bench.core.waits_for_sync());
  const uint64_t before_b = bench.core.decision_count();
  bench.schedule();
  bench.finish(1);
  CHECK(bench.core.waits_for_sync());
  bench.apply(event::RecordsSynced{before_b});  // does not cover the end of b
  CHECK(bench.all<decision::DropObject>().empty());
  bench.sync();
  REQUIRE(bench.all<decision::DropObject>().size() == 1);
  CHECK(bench.all<decision::DropObject>()[0].object == ObjectId(0));
  CHECK_FALSE(bench.core.waits_for_sync());
}

//   a --> b --> c     b's worker is lost when a's output is idle and still there
TEST_CASE("core: an idle object that is needed again before the sync stays") {
  CoreBench bench(chain());
  bench.join(0, 1);
  bench.join(1, 1);
  bench.begin();
  bench.schedule();
  REQUIRE(bench.worker(0) == WorkerId(0));
  bench.finish(0);
  bench.apply(event::ReplicaAdded{WorkerId(1), ObjectId(0)});
  bench.schedule();
  const WorkerId lost = bench.worker(1);
  const WorkerId kept(lost == WorkerId(0) ? 1 : 0);
  bench.finish(1);
  bench.lose(static_cast<int>(lost.value));
  CHECK(bench.state(0) == InstanceState::kDone);  // its bytes are there
  CHECK(bench.state(1) == InstanceState::kReady);
  bench.sync();
  CHECK(bench.all<decision::DropObject>().empty());
  CHECK(bench.core.replicas(ObjectId(0)) == std::vector<WorkerId>{kept});
  CHECK(bench.run());
  CHECK(bench.successes == std::vector<int>{1, 2, 1});
}

TEST_CASE("core: a copy that arrives after the last consumer is dropped at the next sync") {
  CoreBench bench(chain());
  bench.join(0, 1);
  bench.join(1, 1);
  bench.begin();
  for (const int i : {0, 1}) {
    bench.schedule();
    bench.finish(i);
  }
  const size_t before = bench.log.size();
  bench.apply(event::ReplicaAdded{WorkerId(1), ObjectId(0)});
  CHECK(bench.all<decision::DropObject>(before).empty());
  bench.sync();
  CHECK(bench.all<decision::DropObject>(before).size() == 2);
  CHECK(bench.core.replicas(ObjectId(0)).empty());
}

// ---- placement ---------------------------------------------------------------------------------

TEST_CASE("core: longest path first, then id; no slot is given twice") {
  GraphDsl dsl;
  dsl.task("short", {.count = 2, .expected = seconds(1), .outputs = 0});
  dsl.task("long", {.count = 2, .expected = seconds(9), .outputs = 0});
  CoreBench bench(dsl.build(), {.dispatch_ahead = false});
  bench.join(0, 3);
  bench.begin();
  CHECK(instances_of(bench.schedule()) == Numbers{2, 3, 0});
  CHECK(bench.schedule().empty());
  bench.finish(3);
  CHECK(instances_of(bench.schedule()) == Numbers{1});
}

TEST_CASE("core: a request that fits nowhere does not hold up smaller ones") {
  GraphDsl dsl;
  dsl.task("big", {.cpus = 8, .priority = 5, .outputs = 0});
  dsl.task("small", {.count = 2, .outputs = 0});
  CoreBench bench(dsl.build());
  bench.join(0, 4);
  bench.begin();
  CHECK(instances_of(bench.schedule()) == Numbers{1, 2});
  CHECK(bench.core.impossible() == std::vector<InstanceId>{InstanceId(0)});
  bench.finish(1);
  CHECK_FALSE(bench.core.ended());
  bench.finish(2);
  CHECK(bench.outcome() == Outcome::kStuck);
}

TEST_CASE("core: a task goes where most of its input bytes are, then to the fullest worker") {
  GraphDsl dsl;
  const TaskId a = dsl.task("a", {.cpus = 4});
  const TaskId b = dsl.task("b", {.outputs = 0});
  dsl.one_to_one(a, b);
  dsl.task("free", {.priority = -1, .outputs = 0});
  CoreBench bench(dsl.build());
  bench.join(0, 2);
  bench.join(1, 8);
  bench.begin();
  const auto first = bench.schedule();
  REQUIRE(instances_of(first) == Numbers{0, 2});
  CHECK(first[0].worker == WorkerId(1));
  CHECK(first[1].worker == WorkerId(0));  // fewest cores left over
  bench.finish(0);
  CHECK(bench.schedule().at(0).worker == WorkerId(1));  // the data is there
}

TEST_CASE("core: memory counts like cores") {
  GraphDsl dsl;
  dsl.task("fat", {.count = 3, .memory_bytes = 60, .outputs = 0});
  CoreBench bench(dsl.build());
  bench.join(0, 8, 130);
  bench.begin();
  CHECK(bench.schedule().size() == 2);
}

TEST_CASE("core: limits are never exceeded, and count from the sending on") {
  GraphDsl dsl;
  const LimitId licence = dsl.limit("licence", 2 * kAmountUnit);
  dsl.task("solve", {.count = 6, .limits = {{licence, kAmountUnit}}, .outputs = 0});
  CoreBench bench(dsl.build());
  bench.join(0, 4);
  bench.begin();
  CHECK(instances_of(bench.schedule()) == Numbers{0, 1});
  CHECK(bench.schedule().empty());
  bench.finish(0);
  CHECK(instances_of(bench.schedule()) == Numbers{2});
  bench.join(1, 1);
  bench.lose(0);
  CHECK(bench.schedule().size() == 2);  // the second waits ahead, with its licence
  CHECK(bench.run());
  CHECK(bench.outcome() == Outcome::kAllDone);
}

//  before x2 --gate--> solve x2 (licence, priority 5)      many x20
TEST_CASE("core: what a limit lets start now waits for a slot before what is less important") {
  GraphDsl dsl;
  const LimitId licence = dsl.limit("licence", kAmountUnit);
  const TaskId before = dsl.task("before", {.count = 2, .outputs = 0});
  dsl.task("many", {.count = 20, .outputs = 0});
  const TaskId solve = dsl.task(
      "solve", {.count = 2, .limits = {{licence, kAmountUnit}}, .priority = 5, .outputs = 0});
  dsl.gate(before, solve);
  CoreBench bench(dsl.build());
  bench.join(0, 2);
  bench.begin();
  CHECK(instances_of(bench.schedule()) == Numbers{0, 1, 2, 3});  // two of many are ahead
  bench.finish(0);
  bench.finish(1);  // those have the slots
  const auto starts = bench.schedule();
  REQUIRE(instances_of(starts) == Numbers{22, 4});  // the other solve has no licence
  CHECK(starts[0].ahead);
  bench.finish(2);
  bench.finish(22);  // it had the next slot
  CHECK(bench.state(4) == InstanceState::kAssigned);
  CHECK(instances_of(bench.schedule()).front() == 23);
}

TEST_CASE("core: a limit smaller than what one instance needs is impossible") {
  GraphDsl dsl;
  const LimitId licence = dsl.limit("licence", kAmountUnit);
  dsl.task("solve", {.limits = {{licence, 2 * kAmountUnit}}, .outputs = 0});
  CoreBench bench(dsl.build());
  bench.join(0, 4);
  CHECK(bench.core.impossible() == std::vector<InstanceId>{InstanceId(0)});
  bench.begin();
  CHECK(bench.outcome() == Outcome::kStuck);
}

TEST_CASE("core: as many attempts as can run are sent ahead, and get slots in order") {
  GraphDsl dsl;
  dsl.task("a", {.count = 7, .outputs = 0});
  CoreBench bench(dsl.build());
  bench.join(0, 2);
  bench.begin();
  const auto starts = bench.schedule();
  REQUIRE(instances_of(starts) == Numbers{0, 1, 2, 3});
  CHECK_FALSE(starts[1].ahead);
  CHECK(starts[2].ahead);
  bench.finish(0);
  CHECK(instances_of(bench.schedule()) == Numbers{4});
  CHECK(bench.run());
  CHECK(bench.outcome() == Outcome::kAllDone);
}

TEST_CASE("core: an attempt ahead may be reported started before the slot's last report") {
  GraphDsl dsl;
  dsl.task("a", {.count = 2, .outputs = 0});
  CoreBench bench(dsl.build());
  bench.join(0, 1);
  bench.begin();
  bench.schedule();
  bench.start(0);
  bench.start(1);  // the agent checks the first one's outputs with the cores free already
  CHECK(bench.state(1) == InstanceState::kRunning);
  bench.finish(1);
  bench.finish(0);
  CHECK(bench.outcome() == Outcome::kAllDone);
}

TEST_CASE("core: what waits ahead is taken back for a worker that has nothing to do") {
  GraphDsl dsl;
  dsl.task("a", {.count = 4, .outputs = 0});
  CoreBench bench(dsl.build());
  bench.join(0, 2);
  bench.begin();
  bench.schedule();
  bench.join(1, 1);
  bench.schedule();
  auto backs = bench.all<decision::TakeBack>();
  REQUIRE(backs.size() == 1);  // one core, one attempt
  CHECK(backs[0].attempt == bench.attempt(3));
  bench.schedule();
  CHECK(bench.all<decision::TakeBack>().size() == 1);  // the answer is awaited
  bench.serve();
  const auto starts = bench.schedule();
  REQUIRE(instances_of(starts) == Numbers{3});
  CHECK(starts[0].worker == WorkerId(1));
}

TEST_CASE("core: an attempt that started before it could be taken back stays") {
  GraphDsl dsl;
  dsl.task("a", {.count = 2, .outputs = 0});
  CoreBench bench(dsl.build());
  bench.join(0, 1);
  bench.begin();
  bench.schedule();
  bench.join(1, 1);
  bench.schedule();
  REQUIRE(bench.all<decision::TakeBack>().size() == 1);
  bench.start(1);
  CHECK(bench.worker(1) == WorkerId(0));
  bench.finish(0);
  bench.finish(1);
  CHECK(bench.outcome() == Outcome::kAllDone);
}

// ---- failures ----------------------------------------------------------------------------------

TEST_CASE("core: each cause has its own retries") {
  GraphDsl dsl;
  RetryPolicy retry;
  retry.max[static_cast<size_t>(Cause::kOom)] = 2;
  retry.max[static_cast<size_t>(Cause::kExit)] = 1;
  dsl.task("a", {.retry = retry});
  CoreBench bench(dsl.build());
  bench.join(0, 1);
  bench.begin();
  for (const Cause cause : {Cause::kOom, Cause::kExit, Cause::kOom}) {
    bench.schedule();
    bench.start(0);
    bench.fail(0, cause);
    CHECK(bench.state(0) == InstanceState::kReady);
  }
  bench.schedule();
  bench.fail(0, Cause::kOom);
  CHECK(bench.state(0) == InstanceState::kFailed);
  const auto ended = bench.all<decision::AttemptEnded>();
  REQUIRE(ended.size() == 4);
  CHECK_FALSE(ended[2].final);
  CHECK(ended[3].final);
  CHECK(bench.outcome() == Outcome::kFailed);
}

TEST_CASE("core: an exit code that is not listed is not tried again") {
  GraphDsl dsl;
  RetryPolicy retry;
  retry.max[static_cast<size_t>(Cause::kExit)] = 5;
  retry.exit_codes = {75};
  dsl.task("a", {.retry = retry});
  CoreBench bench(dsl.build());
  bench.join(0, 1);
  bench.begin();
  bench.schedule();
  bench.fail(0, Cause::kExit, 75);
  CHECK(bench.state(0) == InstanceState::kReady);
  bench.schedule();
  bench.fail(0, Cause::kExit, 1);
  CHECK(bench.state(0) == InstanceState::kFailed);
}

//   a --> b --> c        d   (independent)
TEST_CASE("core: dependants of a failure are skipped, independent work goes on") {
  GraphDsl dsl;
  const TaskId a = dsl.task("a");
  const TaskId b = dsl.task("b");
  const TaskId c = dsl.task("c");
  dsl.task("d");
  dsl.one_to_one(a, b);
  dsl.one_to_one(b, c);
  CoreBench bench(dsl.build());
  bench.join(0, 4);
  bench.begin();
  bench.schedule();
  bench.fail(0, Cause::kSignal);
  CHECK(bench.state(1) == InstanceState::kSkipped);
  CHECK(bench.state(2) == InstanceState::kSkipped);
  const auto skipped = bench.all<decision::InstanceSkipped>();
  REQUIRE(skipped.size() == 2);
  CHECK(skipped[0].because == InstanceId(0));
  CHECK(bench.state(3) == InstanceState::kAssigned);
  bench.finish(3);
  CHECK(bench.outcome() == Outcome::kFailed);
}

TEST_CASE("core: an ignored failure skips its dependants but not the run's success") {
  GraphDsl dsl;
  const TaskId a = dsl.task("a", {.on_failure = OnFailure::kIgnore});
  const TaskId b = dsl.task("b");
  dsl.one_to_one(a, b);
  CoreBench bench(dsl.build());
  bench.join(0, 4);
  bench.begin();
  bench.schedule();
  bench.fail(0, Cause::kExit);
  CHECK(bench.state(1) == InstanceState::kSkipped);
  CHECK(bench.outcome() == Outcome::kAllDone);
}

TEST_CASE("core: a failure that stops the run stops what runs and saves what is needed") {
  GraphDsl dsl;
  const TaskId a = dsl.task("a");
  const TaskId b = dsl.task("b");
  dsl.one_to_one(a, b);
  dsl.task("bad", {.on_failure = OnFailure::kStop});
  CoreBench bench(dsl.build());
  bench.join(0, 2);
  bench.begin();
  bench.schedule();
  bench.finish(0);
  bench.schedule();
  bench.start(1);
  bench.fail(2, Cause::kExit);
  REQUIRE(bench.all<decision::StopAttempt>().size() == 1);
  CHECK(bench.schedule().empty());
  bench.serve();
  CHECK(bench.core.durable(ObjectId(0)));
  CHECK(bench.outcome() == Outcome::kFailed);
}

TEST_CASE("core: a task with many failures and no success is held") {
  GraphDsl dsl;
  dsl.task("a", {.count = 50});
  CoreBench bench(dsl.build(), {.failures_without_success_max = 5});
  bench.join(0, 2);
  bench.begin();
  int failures = 0;
  while (!bench.core.ended()) {
    bench.auto_serve = true;
    bench.schedule();
    bench.serve();
    const int next = bench.lowest_in_flight();
    REQUIRE(next >= 0);
    bench.start(next);
    bench.fail(next, Cause::kExit);
    ++failures;
  }
  CHECK(failures <= 6);  // five, and what was already running
  CHECK(bench.core.counts().skipped == 50 - static_cast<size_t>(failures));
  CHECK(bench.outcome() == Outcome::kFailed);
}

// ---- workers -----------------------------------------------------------------------------------

TEST_CASE("core: a silent worker gets nothing new, then is lost") {
  GraphDsl dsl;
  dsl.task("a", {.count = 2, .outputs = 0});
  CoreBench bench(dsl.build(), {.dispatch_ahead = false});
  bench.join(0, 1);
  bench.begin();
  CHECK(bench.core.next_deadline() == Instant{} + seconds(3));
  bench.tick(Instant{} + seconds(3));
  auto changes = bench.all<decision::WorkerChanged>();
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].state == decision::WorkerState::kSilent);
  CHECK(bench.schedule().empty());
  CHECK_FALSE(bench.core.ended());
  bench.apply(event::Heartbeat{WorkerId(0)});
  CHECK(bench.all<decision::WorkerChanged>().back().state == decision::WorkerState::kAlive);
  CHECK(bench.schedule().size() == 1);
  bench.start(0);
  CHECK(bench.core.next_deadline() == Instant{} + seconds(6));
  bench.tick(Instant{} + seconds(6));
  // It is asked for often enough to see that it was there all the time.
  for (int64_t at = 9; at <= 33; at += 3) {
    CHECK(bench.all<decision::WorkerChanged>().back().state == decision::WorkerState::kSilent);
    CHECK(bench.core.next_deadline() == Instant{} + seconds(at));
    bench.tick(Instant{} + seconds(at));
  }
  CHECK(bench.all<decision::WorkerChanged>().back().state == decision::WorkerState::kLost);
  CHECK(bench.outcome() == Outcome::kStuck);
}

TEST_CASE("core: a worker whose end is seen before its first word never joins") {
  GraphDsl dsl;
  dsl.task("a");
  CoreBench bench(dsl.build());
  bench.join(0, 1);
  bench.begin();
  bench.lose(5);
  bench.join(5, 8);
  CHECK(bench.all<decision::WorkerChanged>().empty());
  const auto starts = bench.schedule();
  REQUIRE(starts.size() == 1);
  CHECK(starts[0].worker == WorkerId(0));
  bench.apply(event::Heartbeat{WorkerId(5)});
  bench.lose(5);
  CHECK(bench.all<decision::WorkerChanged>().empty());
}

// A suspended job, a machine that slept, a file system that held rank 0 up: nobody listened.
TEST_CASE("core: time in which rank 0 was not there is not a silence of its workers") {
  GraphDsl dsl;
  dsl.task("a", {.outputs = 0});
  CoreBench bench(dsl.build());
  bench.join(0, 1);
  bench.join(1, 1);
  bench.begin();
  bench.schedule();
  bench.start(0);
  bench.tick(Instant{} + seconds(2));
  bench.tick(Instant{} + seconds(602));
  CHECK(bench.all<decision::WorkerChanged>().empty());
  // From here on it listens, and their silence counts: two seconds of it had passed before.
  bench.apply(event::Heartbeat{WorkerId(0)});
  CHECK(bench.core.next_deadline() == Instant{} + seconds(603));
  bench.tick(Instant{} + seconds(603));
  REQUIRE(bench.all<decision::WorkerChanged>().size() == 1);
  CHECK(bench.all<decision::WorkerChanged>()[0].worker == WorkerId(1));
  CHECK(bench.all<decision::WorkerChanged>()[0].state == decision::WorkerState::kSilent);
  while (bench.all<decision::WorkerChanged>().size() == 1) {
    bench.apply(event::Heartbeat{WorkerId(0)});
    bench.tick(std::min(bench.core.next_deadline(), bench.now + seconds(2)));
  }
  CHECK(bench.now == Instant{} + seconds(630));
  CHECK(bench.all<decision::WorkerChanged>()[1].state == decision::WorkerState::kLost);
}

TEST_CASE("core: lost attempts are free until an instance has lost three") {
  GraphDsl dsl;
  dsl.task("killer");
  CoreBench bench(dsl.build());
  bench.join(9, 1);
  bench.begin();
  for (int w = 0; w < 3; ++w) {
    bench.join(w, 1);
    if (w == 0) {
      bench.lose(9);
    }
    bench.schedule();
    bench.start(0);
    if (w < 2) {
      bench.join(w + 100, 0);  // someone stays alive, so that the run goes on
    }
    bench.lose(w);
    CHECK(bench.state(0) == (w < 2 ? InstanceState::kReady : InstanceState::kFailed));
    if (bench.core.ended()) {
      break;
    }
  }
}

TEST_CASE("core: what a lost worker still says is ignored") {
  GraphDsl dsl;
  dsl.task("a");
  CoreBench bench(dsl.build());
  bench.join(0, 1);
  bench.join(1, 1);
  bench.begin();
  bench.schedule();
  const auto late = bench.finished(0);
  bench.start(0);
  bench.lose(0);
  bench.apply(late);
  CHECK(bench.state(0) == InstanceState::kReady);
  CHECK(bench.core.replicas(ObjectId(0)).empty());
}

TEST_CASE("core: outputs of an attempt that no longer counts are dropped") {
  GraphDsl dsl;
  const TaskId a = dsl.task("a");
  dsl.one_to_one(a, dsl.task("b"));
  CoreBench bench(dsl.build());
  bench.join(0, 1);
  bench.join(1, 1);
  bench.begin();
  bench.schedule();
  const auto late = bench.finished(0);
  bench.apply(event::AttemptReturned{WorkerId(0), bench.attempt(0), {}});
  bench.schedule();
  REQUIRE(bench.worker(0) == WorkerId(1));  // the first one gave work back unasked
  const size_t before = bench.log.size();
  bench.apply(late);
  REQUIRE(bench.all<decision::DropObject>(before).size() == 1);
  CHECK(bench.state(0) == InstanceState::kAssigned);
}

//   a --> b --> c     worker 0 holds everything
TEST_CASE("core: a lost worker costs exactly what an unfinished consumer needs") {
  CoreBench bench(chain());
  bench.join(0, 1);
  bench.begin();
  for (const int i : {0, 1}) {
    bench.schedule();
    bench.finish(i);
  }
  bench.join(1, 1);
  bench.sync();
  bench.lose(0);
  // c needs b's bytes, b needs a's, which were dropped when b was done
  CHECK(bench.state(0) == InstanceState::kReady);
  CHECK(bench.state(1) == InstanceState::kBlocked);
  CHECK(bench.state(2) == InstanceState::kBlocked);
  CHECK(bench.run());
  CHECK(bench.successes == std::vector<int>{2, 2, 1});
  CHECK(bench.outcome() == Outcome::kAllDone);
}

TEST_CASE("core: a running consumer does not have its inputs made again") {
  CoreBench bench(chain());
  bench.join(0, 1);
  bench.begin();
  bench.schedule();
  bench.finish(0);
  bench.join(1, 2);
  bench.schedule();
  bench.start(1);
  REQUIRE(bench.worker(1) == WorkerId(0));
  bench.apply(event::ReplicaLost{WorkerId(0), ObjectId(0)});
  CHECK(bench.state(0) == InstanceState::kDone);
  bench.fail(1, Cause::kLost);  // now it needs them
  CHECK(bench.state(0) == InstanceState::kReady);
}

TEST_CASE("core: making again stops when the need for it goes away") {
  CoreBench bench(chain());
  bench.join(0, 1);
  bench.begin();
  bench.schedule();
  bench.finish(0);
  bench.schedule();
  bench.apply(event::ReplicaLost{WorkerId(0), ObjectId(0)});
  CHECK(bench.state(0) == InstanceState::kReady);  // b is assigned and may lack it
  bench.start(1);                                  // b had it already
  CHECK(bench.state(0) == InstanceState::kDone);
  CHECK(bench.run());
  CHECK(bench.successes == std::vector<int>{1, 1, 1});
}

TEST_CASE("core: making again stops when a copy turns up") {
  CoreBench bench(chain());
  bench.join(0, 1);
  bench.join(1, 1);
  bench.begin();
  bench.schedule();
  bench.finish(0);
  bench.schedule();
  bench.apply(event::ReplicaLost{WorkerId(0), ObjectId(0)});
  CHECK(bench.state(0) == InstanceState::kReady);
  bench.apply(event::ReplicaAdded{WorkerId(1), ObjectId(0)});  // its fetch had ended before
  CHECK(bench.state(0) == InstanceState::kDone);
  CHECK(bench.run());
  CHECK(bench.successes == std::vector<int>{1, 1, 1});
}

TEST_CASE("core: a missing input loses the named replica and is made again") {
  CoreBench bench(chain());
  bench.join(0, 1);
  bench.join(1, 1);
  bench.begin();
  bench.schedule();
  bench.finish(0);
  bench.schedule();
  bench.returned(1, ObjectId(0));
  CHECK(bench.core.replicas(ObjectId(0)).empty());
  CHECK(bench.state(0) == InstanceState::kReady);
  CHECK(bench.state(1) == InstanceState::kBlocked);
  CHECK(bench.run());
  CHECK(bench.successes == std::vector<int>{2, 1, 1});
}

TEST_CASE("core: an input that is always missing ends in a staging failure") {
  CoreBench bench(chain());
  bench.join(0, 1);
  bench.begin();
  int returns = 0;
  while (bench.state(1) != InstanceState::kFailed) {
    bench.schedule();
    if (bench.attempt(0).valid()) {
      bench.finish(0);
    } else {
      REQUIRE(bench.attempt(1).valid());
      bench.returned(1, ObjectId(0));
      ++returns;
    }
    REQUIRE(returns < 20);
  }
  CHECK(returns == 11);
  CHECK(bench.all<decision::AttemptEnded>().back().report.cause == Cause::kStaging);
}

//   a --> b, and a cannot be made again
TEST_CASE("core: if lost bytes cannot be made again, who needs them is skipped") {
  CoreBench bench(chain());
  bench.join(0, 1);
  bench.begin();
  bench.schedule();
  bench.finish(0);
  bench.join(1, 1);
  bench.lose(0);
  REQUIRE(bench.state(0) == InstanceState::kReady);
  bench.schedule();
  bench.fail(0, Cause::kExit);
  CHECK(bench.state(0) == InstanceState::kFailed);
  CHECK(bench.state(1) == InstanceState::kSkipped);
  CHECK(bench.outcome() == Outcome::kFailed);
}

TEST_CASE("core: other bytes in a recomputation warn and unsettle nobody") {
  CoreBench bench(chain());
  bench.join(0, 1);
  bench.begin();
  for (const int i : {0, 1}) {
    bench.schedule();
    bench.finish(i);
  }
  const Hash128 first = bench.core.content(ObjectId(0));
  const Hash128 key = bench.core.key(InstanceId(1));
  bench.join(1, 1);
  bench.lose(0);
  bench.content_of = [](InstanceId i, size_t) { return Hash128{i.value + 1, 4711}; };
  CHECK(bench.run());
  CHECK(bench.core.content(ObjectId(0)) == first);
  CHECK(bench.core.key(InstanceId(1)) == key);
  CHECK(bench.all<decision::NotReproducible>().size() == 2);
  CHECK(bench.successes == std::vector<int>{2, 2, 1});
  CHECK(bench.last_done.at(InstanceId(0)).outputs[0].content == first);
}
