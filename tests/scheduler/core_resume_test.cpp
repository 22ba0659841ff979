// The core over several submissions: resume, stop, results, disk failures, random worlds.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "tests/support/core_bench.h"
#include "tests/support/graph_dsl.h"
#include "tests/support/rerun_minimum.h"

using namespace sluice::scheduler;
using sluice::tests::CoreBench;
using sluice::tests::GraphDsl;
using sluice::tests::RerunFacts;

namespace {

//   source[2] --> work[2] ==> sum(result)      work i reads source i; sum gathers
Graph pipeline(uint64_t source_version = 0, uint64_t work_version = 0) {
  GraphDsl dsl;
  const TaskId source = dsl.task("source", {.count = 2, .version = source_version});
  const TaskId work = dsl.task("work", {.count = 2, .version = work_version});
  const TaskId sum = dsl.task("sum", {.result = true});
  dsl.one_to_one(source, work);
  dsl.gather(work, sum);
  return dsl.build();
}

std::vector<event::Restored> journal_of_full_run() {
  CoreBench bench(pipeline());
  bench.join(0, 2);
  bench.begin();
  REQUIRE(bench.run());
  REQUIRE(bench.outcome() == Outcome::kAllDone);
  return bench.journal();
}

}  // namespace

TEST_CASE("core: a restored run does nothing") {
  CoreBench bench(pipeline());
  bench.restore(journal_of_full_run());
  bench.begin();
  CHECK(bench.outcome() == Outcome::kAllDone);
  CHECK(bench.core.counts().restored == 5);
  const auto done = bench.all<decision::InstanceDone>();
  REQUIRE(done.size() == 5);
  for (const decision::InstanceDone& it : done) {
    CHECK_FALSE(it.attempt.valid());
  }
}

TEST_CASE("core: a changed key runs again what depends on it, with what that needs") {
  CoreBench bench(pipeline(0, 1));  // the command of `work` changed
  bench.restore(journal_of_full_run());
  bench.join(0, 2);
  bench.begin();
  CHECK(bench.run());
  // the sources' bytes were dropped, so they are made again for `work`
  CHECK(bench.successes == std::vector<int>{1, 1, 1, 1, 1});
}

TEST_CASE("core: a changed key with equal bytes does not spread") {
  std::vector<event::Restored> journal = journal_of_full_run();
  CoreBench bench(pipeline(1, 0));                       // the command of `source` changed ...
  bench.content_of = [&](InstanceId i, size_t output) {  // ... but not what it makes
    return journal.at(i.index()).outputs.at(output).content;
  };
  bench.restore(journal);
  bench.join(0, 2);
  bench.begin();
  CHECK(bench.run());
  CHECK(bench.successes == std::vector<int>{1, 1, 0, 0, 0});
  CHECK(bench.outcome() == Outcome::kAllDone);
}

TEST_CASE("core: a result that was not safe is made again, and only what it needs") {
  std::vector<event::Restored> journal = journal_of_full_run();
  journal[4].durable[0] = false;
  journal[2].durable[0] = true;  // work 0 was saved by a stop
  CoreBench bench(pipeline());
  bench.restore(journal);
  bench.join(0, 2);
  bench.begin();
  CHECK(bench.core.counts().results_pending == 1);
  CHECK(bench.run());
  CHECK(bench.successes == std::vector<int>{0, 1, 0, 1, 1});
  CHECK(bench.outcome() == Outcome::kAllDone);
  const auto removed = bench.all<decision::RemoveSaved>();
  REQUIRE(removed.size() == 1);
  CHECK(removed[0].object == ObjectId(2));
}

TEST_CASE("core: a durable input that cannot be read is made again") {
  std::vector<event::Restored> journal = journal_of_full_run();
  journal[4].durable[0] = false;
  journal[2].durable[0] = true;
  journal[3].durable[0] = true;
  CoreBench bench(pipeline());
  bench.restore(journal);
  bench.join(0, 2);
  bench.begin();
  const auto starts = bench.schedule();
  REQUIRE(starts.size() == 1);
  CHECK(starts[0].instance == InstanceId(4));
  CHECK_FALSE(starts[0].inputs[0].source.valid());
  bench.returned(4, ObjectId(3));
  CHECK(bench.run());
  CHECK(bench.successes == std::vector<int>{0, 1, 0, 1, 1});
}

TEST_CASE("core: a saved intermediate of another key is removed") {
  std::vector<event::Restored> journal = journal_of_full_run();
  journal[0].durable[0] = true;
  CoreBench bench(pipeline(1, 0));
  bench.restore(journal);
  bench.begin();
  const auto removed = bench.all<decision::RemoveSaved>();
  REQUIRE(removed.size() == 1);
  CHECK(removed[0].object == ObjectId(0));
}

// ---- stop --------------------------------------------------------------------------------------

TEST_CASE("core: a stop saves what unfinished instances read, costliest first") {
  CoreBench bench(pipeline());
  bench.wall_of = [](InstanceId i) { return seconds(i.value == 1 ? 50 : 5); };
  bench.join(0, 2);
  bench.begin();
  bench.schedule();
  bench.finish(0);
  bench.finish(1);
  bench.schedule();
  bench.start(2);
  bench.apply(event::StopRequested{});
  CHECK(bench.all<decision::StopAttempt>().size() == 1);
  CHECK(bench.all<decision::TakeBack>().size() == 1);
  CHECK(bench.schedule().empty());
  bench.apply(event::StopRequested{});
  CHECK(bench.all<decision::StopAttempt>().size() == 1);
  bench.serve();
  const auto saves = bench.all<decision::SaveObject>();
  REQUIRE(saves.size() == 2);
  CHECK(saves[0].object == ObjectId(1));
  CHECK(saves[0].destination == Destination::kObjects);
  CHECK(saves[1].object == ObjectId(0));
  CHECK(bench.outcome() == Outcome::kStopped);

  CoreBench next(pipeline());
  next.restore(bench.journal());
  next.join(0, 2);
  next.begin();
  CHECK(next.run());
  CHECK(next.successes == std::vector<int>{0, 0, 1, 1, 1});
  CHECK(next.outcome() == Outcome::kAllDone);
}

TEST_CASE("core: an attempt that started before the stop reached it is stopped") {
  CoreBench bench(pipeline());
  bench.join(0, 2);
  bench.begin();
  bench.schedule();
  bench.apply(event::StopRequested{});
  bench.start(0);
  CHECK(bench.all<decision::StopAttempt>().size() == 1);
  bench.finish(0);  // it was quicker than the signal
  bench.services.pop_front();
  bench.serve();
  CHECK(bench.state(0) == InstanceState::kDone);
  CHECK(bench.core.durable(ObjectId(0)));
  CHECK(bench.outcome() == Outcome::kStopped);
}

TEST_CASE("core: a stop after the last instance is a success") {
  GraphDsl dsl;
  dsl.task("a", {.result = true});
  CoreBench bench(dsl.build());
  bench.join(0, 1);
  bench.begin();
  bench.schedule();
  bench.finish(0);
  bench.apply(event::StopRequested{});
  bench.serve();
  CHECK(bench.outcome() == Outcome::kAllDone);
}

TEST_CASE("core: a run with failures saves what the skipped ones would read") {
  GraphDsl dsl;
  const TaskId a = dsl.task("a");
  const TaskId bad = dsl.task("bad");
  const TaskId c = dsl.task("c");
  dsl.one_to_one(a, c);
  dsl.one_to_one(bad, c);
  CoreBench bench(dsl.build());
  bench.join(0, 2);
  bench.begin();
  bench.schedule();
  bench.finish(0);
  bench.fail(1, Cause::kExit);
  CHECK_FALSE(bench.core.ended());
  bench.serve();
  CHECK(bench.core.durable(ObjectId(0)));
  CHECK(bench.outcome() == Outcome::kFailed);
}

// ---- results -----------------------------------------------------------------------------------

TEST_CASE("core: a result's replicas are dropped once it is durable and nobody reads it") {
  GraphDsl dsl;
  dsl.task("a", {.result = true});
  CoreBench bench(dsl.build());
  bench.join(0, 1);
  bench.begin();
  bench.schedule();
  bench.finish(0);
  CHECK(bench.all<decision::DropObject>().empty());
  const auto save = bench.all<decision::SaveObject>().at(0);
  bench.apply(event::ObjectSaved{save.worker, save.object, save.save});
  CHECK(bench.all<decision::DropObject>().empty());
  bench.apply(event::ObjectCommitted{save.object});
  CHECK(bench.all<decision::DropObject>().size() == 1);
  CHECK(bench.outcome() == Outcome::kAllDone);
}

TEST_CASE("core: a result that is lost before it is saved is made again") {
  GraphDsl dsl;
  dsl.task("a", {.result = true});
  CoreBench bench(dsl.build());
  bench.join(0, 1);
  bench.join(1, 1);
  bench.begin();
  bench.schedule();
  bench.finish(0);
  bench.lose(0);
  CHECK(bench.state(0) == InstanceState::kReady);
  CHECK(bench.run());
  CHECK(bench.successes[0] == 2);
  CHECK(bench.outcome() == Outcome::kAllDone);
}

TEST_CASE("core: a result whose worker is lost while rank 0 commits it is safe") {
  GraphDsl dsl;
  dsl.task("a", {.result = true});
  CoreBench bench(dsl.build());
  bench.join(0, 1);
  bench.join(1, 1);
  bench.begin();
  bench.schedule();
  bench.finish(0);
  const auto save = bench.all<decision::SaveObject>().at(0);
  bench.apply(event::ObjectSaved{save.worker, save.object, save.save});
  bench.lose(0);
  CHECK(bench.state(0) == InstanceState::kDone);
  bench.apply(event::ObjectCommitted{save.object});
  CHECK(bench.outcome() == Outcome::kAllDone);
}

TEST_CASE("core: saving is tried three times, then the run ends for want of disk") {
  GraphDsl dsl;
  dsl.task("a", {.result = true});
  dsl.task("b", {.count = 3, .outputs = 0});
  CoreBench bench(dsl.build());
  bench.join(0, 1);
  bench.begin();
  bench.disk_full = true;
  CHECK(bench.run());
  CHECK(bench.all<decision::SaveObject>().size() == 3);
  CHECK(bench.core.counts().done == 4);  // the rest was done all the same
  CHECK(bench.outcome() == Outcome::kDisk);
}

TEST_CASE("core: a failed commit is tried again") {
  GraphDsl dsl;
  dsl.task("a", {.result = true});
  CoreBench bench(dsl.build());
  bench.join(0, 1);
  bench.begin();
  bench.schedule();
  bench.finish(0);
  const auto save = bench.all<decision::SaveObject>().at(0);
  bench.apply(event::ObjectSaved{save.worker, save.object, save.save});
  bench.services.clear();
  bench.apply(event::ObjectCommitFailed{save.object, "quota"});
  CHECK(bench.all<decision::SaveObject>().size() == 2);
  bench.serve();
  CHECK(bench.outcome() == Outcome::kAllDone);
}

TEST_CASE("core: a stale answer to a save is ignored") {
  GraphDsl dsl;
  dsl.task("a", {.result = true});
  CoreBench bench(dsl.build());
  bench.join(0, 1);
  bench.begin();
  bench.schedule();
  bench.finish(0);
  const auto save = bench.all<decision::SaveObject>().at(0);
  bench.apply(event::ObjectSaveFailed{save.worker, save.object, save.save, "no space left"});
  bench.apply(event::ObjectSaved{save.worker, save.object, save.save});
  CHECK(bench.all<decision::CommitObject>().empty());
}

// ---- the same again ----------------------------------------------------------------------------

TEST_CASE("core: the same events give the same digest, other events another") {
  const auto digest = [](bool lose) {
    CoreBench bench(pipeline());
    bench.join(0, 2);
    bench.join(1, 1);
    bench.begin();
    bench.schedule();
    if (lose) {
      bench.lose(1);
    }
    bench.run();
    return bench.core.digest();
  };
  CHECK(digest(false) == digest(false));
  CHECK(digest(true) == digest(true));
  CHECK(digest(true) != digest(false));
}

// ---- random worlds -----------------------------------------------------------------------------

namespace {

uint64_t base_seed() {
  const char* text = std::getenv("SLUICE_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 20240601;
}

// Layers of tasks, joined in all ways.
Graph random_graph(std::mt19937_64& random) {
  const auto pick = [&random](uint64_t below) { return static_cast<uint32_t>(random() % below); };
  GraphDsl dsl;
  std::vector<TaskId> tasks;
  const uint32_t task_count = 2 + pick(5);
  for (uint32_t t = 0; t < task_count; ++t) {
    sluice::tests::DslTask options;
    options.count = 1 + pick(4);
    options.cpus = static_cast<int32_t>(1 + pick(2));
    options.outputs = 1 + pick(2);
    options.kind = pick(5) == 0 ? OutputKind::kValue : OutputKind::kFile;
    options.result = pick(3) == 0 || t + 1 == task_count;
    options.retry.max.fill(100);
    tasks.push_back(dsl.task("t" + std::to_string(t), options));
    for (uint32_t from = 0; from < t; ++from) {
      if (pick(2) == 0) {
        continue;
      }
      const TaskSpec& producer = dsl.so_far().task(tasks[from]);
      const size_t output = pick(producer.outputs.size());
      if (producer.instance_count == options.count && pick(2) == 0) {
        dsl.one_to_one(tasks[from], tasks[t], output);
      } else {
        dsl.join(tasks[from], tasks[t], output);
      }
    }
  }
  return dsl.build();
}

// One random step of a hostile world.
void random_step(CoreBench& bench, std::mt19937_64& random, int& next_worker) {
  const auto pick = [&random](uint64_t below) { return static_cast<uint32_t>(random() % below); };
  const uint32_t kind = pick(100);
  if (kind < 25) {
    bench.schedule();
  } else if (kind < 50 && !bench.services.empty()) {
    const Decision service = bench.services.front();
    bench.services.pop_front();
    bench.disk_full = pick(10) == 0;
    bench.serve_one(service);
    bench.disk_full = false;
  } else if (kind < 53) {
    bench.join(next_worker++, static_cast<int32_t>(2 + pick(3)));
  } else if (kind < 55 && next_worker > 0) {
    bench.lose(static_cast<int>(pick(static_cast<uint64_t>(next_worker))));
  } else if (kind < 58) {
    const ObjectId object(pick(bench.graph.object_count()));
    const std::vector<WorkerId> holders = bench.core.replicas(object);
    if (!holders.empty()) {
      bench.apply(event::ReplicaLost{holders[pick(holders.size())], object});
    }
  } else {
    const auto instance = static_cast<int>(pick(bench.graph.instance_count()));
    if (!bench.attempt(instance).valid()) {
      return;
    }
    if (bench.state(instance) == InstanceState::kAssigned) {
      bench.start(instance);
    } else if (pick(10) == 0) {
      bench.fail(instance, pick(2) == 0 ? Cause::kExit : Cause::kOom);
    } else {
      bench.finish(instance);
    }
  }
}

}  // namespace

TEST_CASE("core: random worlds keep the invariants, and the run ends when they turn honest") {
  for (uint64_t round = 0; round < 150; ++round) {
    const uint64_t seed = base_seed() + round;
    INFO("SLUICE_SEED=", seed);
    std::mt19937_64 random(seed);
    CoreBench bench(random_graph(random));
    int next_worker = 0;
    bench.join(next_worker++, 4);
    bench.begin();
    for (int step = 0; step < 150 && !bench.core.ended(); ++step) {
      random_step(bench, random, next_worker);
    }
    if (!bench.core.ended()) {
      bench.join(next_worker++, 4);
      REQUIRE(bench.run());
    }
    const Outcome outcome = bench.outcome();
    CHECK((outcome == Outcome::kAllDone || outcome == Outcome::kDisk ||
           outcome == Outcome::kFailed || outcome == Outcome::kStuck));
    if (outcome == Outcome::kAllDone) {
      for (size_t o = 0; o < bench.graph.object_count(); ++o) {
        CHECK((!bench.graph.output(ObjectId(o)).result || bench.core.durable(ObjectId(o))));
        CHECK(bench.core.replicas(ObjectId(o)).empty());
      }
    }
  }
}

TEST_CASE("core: a resume runs exactly the computed minimum") {
  for (uint64_t round = 0; round < 100; ++round) {
    const uint64_t seed = base_seed() + 1000 + round;
    INFO("SLUICE_SEED=", seed);
    std::mt19937_64 random(seed);
    CoreBench first(random_graph(random));
    first.join(0, 4);
    first.begin();
    int next_worker = 1;
    for (int step = 0; step < 60 && !first.core.ended(); ++step) {
      random_step(first, random, next_worker);
    }
    if (!first.core.ended() && random() % 2 == 0) {
      first.apply(event::StopRequested{});
      first.auto_serve = true;
      first.serve();
    }

    CoreBench second(first.graph);
    RerunFacts facts;
    facts.done.assign(second.graph.instance_count(), false);
    facts.available.assign(second.graph.object_count(), false);
    for (const event::Restored& fact : first.journal()) {
      facts.done[fact.instance.index()] = true;
      for (size_t i = 0; i < fact.outputs.size(); ++i) {
        const ObjectId object = second.graph.object(fact.instance, i);
        const bool value = second.graph.output(object).kind == OutputKind::kValue;
        facts.available[object.index()] = value || fact.durable[i];
      }
      second.apply(fact);
    }
    const std::vector<bool> must = sluice::tests::rerun_minimum(second.graph, facts);
    second.join(0, 4);
    second.begin();
    REQUIRE(second.run());
    CHECK(second.outcome() == Outcome::kAllDone);
    for (size_t i = 0; i < must.size(); ++i) {
      CHECK_MESSAGE(second.successes[i] == (must[i] ? 1 : 0), "instance ", i);
    }
  }
}

TEST_CASE("core: a lost worker costs exactly the computed minimum") {
  for (uint64_t round = 0; round < 100; ++round) {
    const uint64_t seed = base_seed() + 2000 + round;
    INFO("SLUICE_SEED=", seed);
    std::mt19937_64 random(seed);
    CoreBench bench(random_graph(random), {.dispatch_ahead = false});
    bench.auto_serve = true;
    bench.join(0, 2);
    bench.join(1, 2);
    bench.begin();
    const uint64_t steps = random() % 12;
    for (uint64_t step = 0; step < steps && !bench.core.ended(); ++step) {
      bench.schedule();
      const int next = bench.lowest_in_flight();
      if (next >= 0) {
        bench.start(next);
        bench.finish(next);
      }
    }
    if (bench.core.ended()) {
      continue;
    }
    bench.join(2, 4);
    bench.lose(1);
    bench.lose(0);
    RerunFacts facts;
    for (size_t i = 0; i < bench.graph.instance_count(); ++i) {
      facts.done.push_back(bench.last_done.count(InstanceId(i)) > 0);
    }
    for (size_t o = 0; o < bench.graph.object_count(); ++o) {
      facts.available.push_back(bench.core.durable(ObjectId(o)));
    }
    const std::vector<bool> must = sluice::tests::rerun_minimum(bench.graph, facts);
    const std::vector<int> before = bench.successes;
    if (!bench.core.ended()) {
      REQUIRE(bench.run());
    }
    CHECK(bench.outcome() == Outcome::kAllDone);
    for (size_t i = 0; i < must.size(); ++i) {
      CHECK_MESSAGE(bench.successes[i] - before[i] == (must[i] ? 1 : 0), "instance ", i);
    }
  }
}
