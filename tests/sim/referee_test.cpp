#include "engine/simulator_referee.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/support/graph_dsl.h"

namespace sluice::tests {
namespace {

using engine::Referee;
using scheduler::AttemptId;
using scheduler::Graph;
using scheduler::Hash128;
using scheduler::InstanceId;
using scheduler::ObjectId;
using scheduler::OutputReport;
using scheduler::WorkerId;

AttemptId attempt(uint32_t number) { return AttemptId::make(1, number); }

//   a (limit 1 of 1) --> b
Graph pair_graph() {
  GraphDsl dsl;
  const scheduler::LimitId limit = dsl.limit("licence", 1);
  const scheduler::TaskId a = dsl.task("a", {.count = 2, .limits = {{limit, 1}}});
  const scheduler::TaskId b = dsl.task("b", {.count = 2, .result = true});
  dsl.one_to_one(a, b);
  return dsl.build();
}

struct Match {
  Match() : graph(pair_graph()), referee(graph) {
    referee.worker_joined(WorkerId(1), {2, 100});
    referee.worker_joined(WorkerId(2), {2, 100});
  }
  void start(uint32_t instance, uint32_t number, uint32_t worker = 1) {
    scheduler::decision::StartAttempt start;
    start.worker = WorkerId(worker);
    start.attempt = attempt(number);
    start.instance = InstanceId(instance);
    referee.attempt_started(start);
  }
  void finish(uint32_t instance, uint32_t number, uint64_t content = 7) {
    referee.attempt_finished(WorkerId(1), attempt(number));
    referee.instance_done(InstanceId(instance), attempt(number),
                          {OutputReport{Hash128{1, content}, 10, ""}});
  }
  // The one problem that was found since the last call; "" if there was none.
  std::string found() {
    std::string text;
    for (const std::string& problem : referee.problems()) text += problem;
    referee.problems().clear();
    return text;
  }
  Graph graph;
  Referee referee;
};

TEST_CASE("referee: a good run is no problem") {
  Match match;
  match.start(0, 1);
  match.referee.launched(WorkerId(1), attempt(1), {2, 100}, {0, 1});
  match.referee.process_gone(WorkerId(1), attempt(1));
  match.finish(0, 1);
  match.start(2, 2);
  match.finish(2, 2);
  match.referee.ended();
  CHECK(match.found() == "");
  CHECK(match.referee.completions == std::vector<uint32_t>{1, 0, 1, 0});
  CHECK(match.referee.launches == std::vector<uint32_t>{1, 0, 0, 0});
  CHECK(match.referee.cores_max == 2);
}

TEST_CASE("referee: cores and memory are given once and exist") {
  Match match;
  match.start(0, 1);
  match.referee.launched(WorkerId(1), attempt(1), {1, 60}, {0});
  match.referee.launched(WorkerId(1), attempt(2), {1, 0}, {0});
  CHECK(match.found() == "core 0 of worker 1 is given twice, to attempt 1.2");
  match.referee.launched(WorkerId(1), attempt(3), {1, 0}, {2});
  CHECK(match.found() == "core 2 of worker 1 does not exist, given to attempt 1.3");
  match.referee.launched(WorkerId(1), attempt(4), {1, 60}, {1});
  CHECK(match.found() == "attempt 1.4 exceeds the memory of worker 1");
  match.referee.launched(WorkerId(2), attempt(5), {2, 0}, {1});
  CHECK(match.found() == "attempt 1.5 gets 1 cores instead of 2");
}

TEST_CASE("referee: an instance has one attempt at a time, on a worker that is there") {
  Match match;
  match.start(0, 1);
  match.start(0, 2);
  CHECK(match.found().find("instance 0 is started as attempt 1.2 while attempt 1.1 is open") == 0);
  Match other;
  other.start(0, 2, 3);
  CHECK(other.found() == "attempt 1.2 is given to worker 3, which is not there");
  other.referee.attempt_over(attempt(2));
  other.start(0, 1);
  CHECK(other.found() == "attempt 1.1 is not a new number");
  other.referee.worker_lost(WorkerId(1));
  other.start(0, 5);
  CHECK(other.found() == "attempt 1.5 is given to worker 1, which is not there");
}

TEST_CASE("referee: a limit holds over all workers") {
  Match match;
  match.start(0, 1, 1);
  match.start(1, 2, 2);
  CHECK(match.found() == "limit 'licence' is exceeded by instance 1");
}

TEST_CASE("referee: inputs are sealed before a start") {
  Match match;
  match.start(2, 1);
  CHECK(match.found() == "instance 2 starts before its input object 0 is sealed");
}

TEST_CASE("referee: a done instance runs again only if its bytes are gone") {
  Match match;
  match.start(0, 1);
  match.finish(0, 1);
  match.start(0, 2);
  CHECK(match.found() == "instance 0 is started again although it is done and nothing was lost");
  match.finish(0, 2);
  match.referee.worker_lost(WorkerId(1));
  match.start(0, 3, 2);
  CHECK(match.found() == "");
  match.finish(0, 3, 8);
  CHECK(match.found() == "instance 0 has another content than the first time");
  match.referee.instance_done(InstanceId(0), attempt(3), {});
  CHECK(match.found() == "instance 0 is done twice although nothing was lost");
}

TEST_CASE("referee: nothing is open at the end") {
  Match match;
  match.start(0, 1);
  match.referee.launched(WorkerId(1), attempt(1), {1, 0}, {0});
  match.referee.save_asked(WorkerId(1), attempt(9));
  match.referee.ended();
  CHECK(match.found() ==
        "attempt 1.1 of instance 0 on worker 1 is open at the end"
        "save attempt 1.9 on worker 1 was not answered"
        "attempt 1.1 still runs on worker 1 at the end");
}

}  // namespace
}  // namespace sluice::tests
