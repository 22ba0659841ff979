#include "engine/explain.h"

#include <doctest/doctest.h>

#include "engine/key_parts.h"
#include "tests/support/spec_folder.h"

using namespace sluice;
using engine::Explainer;
using engine::Explanation;
using engine::Forecast;
using engine::Verdict;
using scheduler::AttemptId;
using scheduler::Hash128;
using scheduler::InstanceId;

namespace {

// make[n=1..7] -> sum
constexpr const char* kSpec = R"(sluice: 1
params: {tol: {type: string, default: "1"}}
tasks:
  make:
    foreach: {n: {range: [1, 8]}}
    run: make --n=${{ item.n }} --fast ${{ out.x }}
    outputs: {x: {file: x}}
  sum:
    sh: |
      date
      echo "$PARAM_tol"
    inputs: {xs: make.x}
    env: {LEVEL: "3", OTHER: "a"}
)";

Forecast nothing_done(const io::Pipeline& pipeline) {
  Forecast forecast;
  forecast.verdicts.resize(pipeline.graph.instance_count());
  forecast.contents.resize(pipeline.graph.object_count());
  forecast.journal.epoch = 2;
  return forecast;
}

// Records `instance` as done with the keys of `pipeline`, in submission 2.
void record_done(const io::Pipeline& pipeline, InstanceId instance, Forecast& forecast) {
  const auto id = pipeline.graph.task_of(instance);
  auto& facts = forecast.journal.instances[{pipeline.graph.task(id).name, pipeline.item(instance)}];
  facts.done.emplace();
  facts.done->attempt = AttemptId::make(2, 5);
  facts.done->parts =
      engine::KeyParts(pipeline, [](scheduler::ObjectId) { return Hash128{}; }).digits(instance);
  facts.part_names = forecast.journal.key_parts.size();
  forecast.journal.key_parts.push_back({"", engine::key_part_names(pipeline, id)});
  forecast.journal.last_run.params = pipeline.params;
}

std::string with(std::string text, const std::string& what, const std::string& by) {
  return text.replace(text.find(what), what.size(), by);
}

Explanation explain_change(const std::string& after, const std::string& task,
                           const std::string& item) {
  test::SpecFolder folder;
  const auto before = folder.read(kSpec);
  const auto now = folder.read(after);
  REQUIRE_MESSAGE(now, folder.printed);
  Forecast forecast = nothing_done(*now);
  record_done(*before, before->find(task, item), forecast);
  const InstanceId instance = now->find(task, item);
  forecast.verdicts[instance.index()].reason = Verdict::Reason::kOwnChange;
  return Explainer(*now, forecast, &*before).explain(instance);
}

}  // namespace

TEST_CASE("explain: whom an instance waits for, the first few by name and how they are") {
  test::SpecFolder folder;
  const auto p = folder.read(kSpec);
  REQUIRE_MESSAGE(p, folder.printed);
  Forecast forecast = nothing_done(*p);
  forecast.verdicts[0].kind = Verdict::Kind::kUpToDate;
  auto& failed = forecast.journal.instances[{"make", "n=2"}];
  failed.last_failure = std::make_unique<io::record::Attempt>();
  failed.last_failure->cause = "signal";
  failed.last_failure->signal = 11;
  const Explanation sum = Explainer(*p, forecast, nullptr).explain(p->find("sum", ""));
  REQUIRE(sum.waits_for.size() == 5);
  CHECK(sum.waits_for[0] ==
        "make[n=2] (will run: its last attempt failed: signal 11 (Segmentation fault))");
  CHECK(sum.waits_for[1] == "make[n=3] (will run: it has never finished)");
  CHECK(sum.waits_for_more == 1);
}

// UC-086
TEST_CASE("explain: what changed since the last success, the old text beside the new") {
  const Explanation command = explain_change(with(kSpec, "--fast", "--slow"), "make", "n=3");
  REQUIRE(command.changes.size() == 1);
  CHECK(command.changes[0].what == "its command");
  CHECK(command.changes[0].was == "make --n=3 --fast ${{ out.x }}");
  CHECK(command.changes[0].is == "make --n=3 --slow ${{ out.x }}");

  const Explanation script = explain_change(with(kSpec, "date", "date -u"), "sum", "");
  REQUIRE(script.changes.size() == 1);
  CHECK(script.changes[0].what == "its command, line 1");
  CHECK(script.changes[0].was == "date");
  CHECK(script.changes[0].is == "date -u");

  const Explanation param = explain_change(with(kSpec, "\"1\"", "\"2\""), "sum", "");
  REQUIRE(param.changes.size() == 1);
  CHECK(param.changes[0].what == "param 'tol'");
  CHECK(param.changes[0].was == "1");
  CHECK(param.changes[0].is == "2");

  const Explanation environment =
      explain_change(with(kSpec, "OTHER: \"a\"", "OTHER: \"b\""), "sum", "");
  REQUIRE(environment.changes.size() == 1);
  CHECK(environment.changes[0].what == "its environment ('env'), line 2");
  CHECK(environment.changes[0].was == "OTHER=a");
  CHECK(environment.changes[0].is == "OTHER=b");
}

TEST_CASE("explain: an old text that is not of the last success is not shown") {
  test::SpecFolder folder;
  const auto done_with = folder.read(kSpec);
  const auto before = folder.read(with(kSpec, "--fast", "--other"));
  const auto now = folder.read(with(kSpec, "--fast", "--slow"));
  REQUIRE(now);
  Forecast forecast = nothing_done(*now);
  const InstanceId first(0);
  record_done(*done_with, first, forecast);
  forecast.verdicts[0].reason = Verdict::Reason::kOwnChange;
  const Explanation one = Explainer(*now, forecast, &*before).explain(first);
  REQUIRE(one.changes.size() == 1);
  CHECK(one.changes[0].what == "its command");
  CHECK(one.changes[0].was.empty());
}

TEST_CASE("explain: failures since the last success, with cause and host") {
  test::SpecFolder folder;
  const auto p = folder.read(kSpec);
  REQUIRE(p);
  Forecast forecast = nothing_done(*p);
  forecast.journal.workers = {{3, "joined", "node3", {}}};
  io::record::Attempt failure;
  failure.task = "make";
  failure.item = "n=1";
  failure.attempt = AttemptId::make(2, 9);
  failure.cause = "exit";
  failure.exit_code = 3;
  failure.worker = 3;
  forecast.journal.attempts = {failure};
  failure.item = "n=2";
  forecast.journal.attempts.push_back(failure);
  forecast.journal.instances[{"make", "n=1"}].last_failure =
      std::make_unique<io::record::Attempt>(forecast.journal.attempts[0]);
  const Explanation one = Explainer(*p, forecast, nullptr).explain(InstanceId(0));
  REQUIRE(one.failures.size() == 1);
  CHECK(one.failures[0].cause == "exit 3");
  CHECK(one.failures[0].where == "node3");
}
