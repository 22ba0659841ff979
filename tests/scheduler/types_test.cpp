#include "scheduler/types.h"

#include <doctest/doctest.h>

#include <set>

using namespace sluice::scheduler;

TEST_CASE("types: an id that was not set is not valid") {
  CHECK_FALSE(TaskId().valid());
  CHECK(TaskId(0).valid());
  CHECK(TaskId(7).index() == 7);
  CHECK(TaskId(1) < TaskId(2));
}

TEST_CASE("types: an attempt id keeps epoch and number apart") {
  const AttemptId attempt = AttemptId::make(3, 9);
  CHECK(attempt.valid());
  CHECK(attempt.epoch() == 3);
  CHECK(attempt.number() == 9);
  CHECK_FALSE(AttemptId().valid());
  CHECK(AttemptId::make(1, 0xFFFFFFFF) < AttemptId::make(2, 1));
}

TEST_CASE("types: time adds up in nanoseconds") {
  CHECK(seconds(2) + milliseconds(5) == nanoseconds(2'005'000'000));
  CHECK(microseconds(3) * 4 == nanoseconds(12'000));
  CHECK((Instant{} + seconds(9)) - (Instant{} + seconds(4)) == seconds(5));
  CHECK(Instant::never() > Instant{} + seconds(1'000'000'000));
}

TEST_CASE("types: combining hashes depends on both and on their order") {
  const Hash128 a{1, 2};
  const Hash128 b{3, 4};
  CHECK(combine(a, b) != combine(b, a));
  CHECK(combine(a, b) != combine(a, {3, 5}));
  CHECK(combine(a, b) != combine(a, {4, 4}));
  CHECK(combine(a, b) != combine({1, 3}, b));
  CHECK(combine(a, b).known());
  CHECK_FALSE(Hash128().known());
}

TEST_CASE("types: combining spreads: a hundred thousand small inputs, no collision in 64 bits") {
  std::set<uint64_t> high;
  std::set<uint64_t> low;
  for (uint64_t i = 0; i < 100'000; ++i) {
    const Hash128 hash = combine({1, 1}, {i, 0});
    high.insert(hash.high);
    low.insert(hash.low);
  }
  CHECK(high.size() == 100'000);
  CHECK(low.size() == 100'000);
}
