#include "scheduler/resources.h"

#include <doctest/doctest.h>

using namespace sluice::scheduler;

TEST_CASE("resources: a request is covered only if every amount is") {
  const Resources worker{4, 100};
  CHECK(worker.covers({4, 100}));
  CHECK(worker.covers({0, 0}));
  CHECK_FALSE(worker.covers({5, 0}));
  CHECK_FALSE(worker.covers({1, 101}));
}

TEST_CASE("resources: taking and giving back restores the amounts") {
  Resources worker{4, 100};
  worker -= {3, 70};
  CHECK(worker == Resources{1, 30});
  worker += {3, 70};
  CHECK(worker == Resources{4, 100});
}

TEST_CASE("resources: equal requests get equal ids, in order of first use") {
  RequestTable table;
  const Request big{{8, 0}, {}};
  const Request small{{1, 0}, {}};
  const Request licensed{{1, 0}, {{LimitId(0), kAmountUnit}}};
  CHECK(table.intern(big) == RequestId(0));
  CHECK(table.intern(small) == RequestId(1));
  CHECK(table.intern(licensed) == RequestId(2));
  CHECK(table.intern(small) == RequestId(1));
  CHECK(table.intern(big) == RequestId(0));
  CHECK(table.size() == 3);
  CHECK(table[RequestId(2)] == licensed);
}

TEST_CASE("resources: a thousand different requests keep their ids") {
  RequestTable table;
  for (int i = 0; i < 1000; ++i) {
    CHECK(table.intern({{(i * 37) % 1000, i}, {}}) == RequestId(i));
  }
  for (int i = 0; i < 1000; ++i) {
    CHECK(table.intern({{(i * 37) % 1000, i}, {}}) == RequestId(i));
  }
}
