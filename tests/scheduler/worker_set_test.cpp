#include "scheduler/worker_set.h"

#include <doctest/doctest.h>

#include <random>
#include <set>
#include <utility>
#include <vector>

using namespace sluice::scheduler;

namespace {

std::vector<WorkerId> members(const WorkerSet& workers) {
  return {workers.all().begin(), workers.all().end()};
}

}  // namespace

TEST_CASE("worker set: any sequence of insertions and removals is as with std::set") {
  std::mt19937_64 random(1);
  for (uint32_t most : {2U, 3U, 40U}) {
    WorkerSet workers;
    std::set<WorkerId> expected;
    for (int step = 0; step < 2000; ++step) {
      const WorkerId worker(static_cast<uint32_t>(random() % most));
      if (random() % 2 == 0) {
        CHECK(workers.insert(worker) == expected.insert(worker).second);
      } else {
        CHECK(workers.erase(worker) == (expected.erase(worker) > 0));
      }
      REQUIRE(members(workers) == std::vector<WorkerId>(expected.begin(), expected.end()));
      CHECK(workers.contains(worker) == (expected.count(worker) > 0));
      CHECK(workers.empty() == expected.empty());
      if (random() % 100 == 0) {
        workers.clear();
        expected.clear();
      }
    }
  }
}

TEST_CASE("worker set: moving leaves an empty set that can be filled again") {
  for (const uint32_t count : {1U, 2U, 3U, 9U}) {
    WorkerSet from;
    for (uint32_t i = 0; i < count; ++i) {
      from.insert(WorkerId(i));
    }
    const std::vector<WorkerId> before = members(from);
    WorkerSet to;
    for (uint32_t i = 0; i < 5; ++i) {
      to.insert(WorkerId(100 + i));
    }
    to = std::move(from);
    CHECK(members(to) == before);
    CHECK(from.empty());
    from.insert(WorkerId(7U));
    CHECK(members(from) == std::vector<WorkerId>{WorkerId(7U)});
    const WorkerSet last(std::move(to));
    CHECK(members(last) == before);
  }
}
