#include "engine/poll_backoff.h"

#include <doctest/doctest.h>

using sluice::engine::PollBackoff;
using namespace sluice::scheduler;

TEST_CASE("poll back-off: hot for 50 us after activity, then doubling from 20 us to 1 ms") {
  PollBackoff backoff;
  Instant now{seconds(10).ns};
  CHECK(backoff.next(now, true, false) == Duration{0});
  now = now + microseconds(49);
  CHECK(backoff.next(now, false, false) == Duration{0});
  now = now + microseconds(2);
  for (const int64_t expected : {40, 80, 160, 320, 640, 1000, 1000}) {
    CHECK(backoff.next(now, false, false) == microseconds(expected));
  }
}

TEST_CASE("poll back-off: 4 ms after an idle second, 20 us in bulk transfers") {
  PollBackoff backoff;
  Instant now{seconds(10).ns};
  (void)backoff.next(now, true, false);
  now = now + milliseconds(1);
  CHECK(backoff.next(now, false, true) == microseconds(20));
  now = now + seconds(1);
  Duration last;
  for (int i = 0; i < 20; ++i) last = backoff.next(now, false, false);
  CHECK(last == milliseconds(4));
  CHECK(backoff.next(now, true, false) == Duration{0});
}
