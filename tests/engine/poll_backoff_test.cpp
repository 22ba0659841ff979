#include "engine/poll_backoff.h"

#include <doctest/doctest.h>

using sluice::engine::PollBackoff;
using namespace sluice::scheduler;

TEST_CASE("poll back-off: from 50 us to 200 us while more is likely, then doubling to 1 ms") {
  PollBackoff backoff;
  Instant now{seconds(10).ns};
  CHECK(backoff.next(now, true, false, false) == microseconds(50));
  for (const int64_t expected : {100, 200, 200, 200}) {
    CHECK(backoff.next(now, false, false, false) == microseconds(expected));
  }
  now = now + milliseconds(19);
  CHECK(backoff.next(now, false, false, false) == microseconds(200));
  now = now + milliseconds(1);
  for (const int64_t expected : {400, 800, 1000, 1000}) {
    CHECK(backoff.next(now, false, false, false) == microseconds(expected));
  }
  CHECK(backoff.next(now, true, false, false) == microseconds(50));
}

TEST_CASE("poll back-off: 4 ms after an idle second, 20 us in bulk transfers") {
  PollBackoff backoff;
  Instant now{seconds(10).ns};
  (void)backoff.next(now, true, false, false);
  now = now + milliseconds(1);
  CHECK(backoff.next(now, false, true, false) == microseconds(20));
  CHECK(backoff.next(now, true, true, false) == microseconds(20));
  now = now + seconds(1);
  Duration last;
  for (int i = 0; i < 20; ++i) last = backoff.next(now, false, false, false);
  CHECK(last == milliseconds(4));
  CHECK(backoff.next(now, true, false, false) == microseconds(50));
}

TEST_CASE(
    "poll back-off: 2 ms where all slots are supplied, at once fast again when they are not") {
  PollBackoff backoff;
  const Instant now{seconds(10).ns};
  CHECK(backoff.next(now, true, false, true) == milliseconds(2));
  CHECK(backoff.next(now, false, false, true) == milliseconds(2));
  CHECK(backoff.next(now + seconds(1), false, false, true) == milliseconds(4));
  CHECK(backoff.next(now, false, true, true) == microseconds(20));
  CHECK(backoff.next(now, false, false, false) == microseconds(100));
}
