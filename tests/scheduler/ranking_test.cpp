#include "scheduler/ranking.h"

#include <doctest/doctest.h>

#include "tests/support/graph_dsl.h"

using namespace sluice::scheduler;
using sluice::tests::GraphDsl;

//   a(2s) --> b(3s) --> c(1s, not said)
TEST_CASE("ranking: a chain adds up from its end") {
  GraphDsl dsl;
  const TaskId a = dsl.task("a", {.expected = seconds(2)});
  const TaskId b = dsl.task("b", {.expected = seconds(3)});
  const TaskId c = dsl.task("c");
  dsl.one_to_one(a, b);
  dsl.one_to_one(b, c);
  const std::vector<Duration> ranks = upward_ranks(dsl.build());
  CHECK(ranks == std::vector<Duration>{seconds(6), seconds(4), seconds(1)});
}

//        +--> b(5s) --+
//   a(1s)|            +--> d(2s)
//        +--> c(9s) --+
TEST_CASE("ranking: the longest path counts") {
  GraphDsl dsl;
  const TaskId a = dsl.task("a", {.expected = seconds(1)});
  const TaskId b = dsl.task("b", {.expected = seconds(5)});
  const TaskId c = dsl.task("c", {.expected = seconds(9)});
  const TaskId d = dsl.task("d", {.expected = seconds(2)});
  dsl.one_to_one(a, b);
  dsl.one_to_one(a, c);
  dsl.one_to_one(b, d);
  dsl.one_to_one(c, d);
  const Graph graph = dsl.build();
  CHECK(upward_ranks(graph) ==
        std::vector<Duration>{seconds(12), seconds(7), seconds(11), seconds(2)});
  CHECK(start_order(graph) ==
        std::vector<InstanceId>{InstanceId(0), InstanceId(2), InstanceId(1), InstanceId(3)});
}

TEST_CASE("ranking: priority comes before length, the id breaks ties") {
  GraphDsl dsl;
  dsl.task("long", {.expected = seconds(100)});
  dsl.task("urgent", {.count = 2, .priority = 1, .expected = seconds(1)});
  dsl.task("later", {.priority = -1, .expected = seconds(500)});
  CHECK(start_order(dsl.build()) ==
        std::vector<InstanceId>{InstanceId(1), InstanceId(2), InstanceId(0), InstanceId(3)});
}

//   a[3000] ==> b[3000]   9 million pairs, one group
TEST_CASE("ranking: a wide join costs its members, not its pairs") {
  GraphDsl dsl;
  const TaskId a = dsl.task("a", {.count = 3000});
  const TaskId b = dsl.task("b", {.count = 3000});
  for (int i = 0; i < 50; ++i) {
    dsl.join(a, b);  // 450 million pairs would not finish in a test
  }
  const std::vector<Duration> ranks = upward_ranks(dsl.build());
  CHECK(ranks.front() == seconds(2));
  CHECK(ranks.back() == seconds(1));
}

//   producer --> group without consumers;  empty group --> consumer
TEST_CASE("ranking: groups without members hold nobody up") {
  GraphDsl dsl;
  const TaskId a = dsl.task("a");
  const TaskId none = dsl.task("none", {.count = 0});
  const TaskId sum = dsl.task("sum");
  dsl.join(a, none);
  dsl.join(none, sum);
  CHECK(upward_ranks(dsl.build()) == std::vector<Duration>{seconds(1), seconds(1)});
}
