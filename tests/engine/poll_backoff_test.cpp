#include "engine/poll_backoff.h"

#include <doctest/doctest.h>

using sluice::engine::PollBackoff;
using namespace sluice::scheduler;

TEST_CASE(
    "poll back-off: hot for 50 us after activity, then doubling to 200 us while something runs") {
  PollBackoff backoff;
  Instant now{seconds(10).ns};
  CHECK(backoff.next(now, true, true, false) == Duration{0});
  now = now + microseconds(49);
  CHECK(backoff.next(now, false, true, false) == Duration{0});
  now = now + microseconds(2);
  for (const int64_t expected : {40, 80, 160, 200, 200}) {
    CHECK(backoff.next(now, false, true, false) == microseconds(expected));
  }
}

TEST_CASE(
    "poll back-off: 1 ms when nothing runs, 4 ms after an idle second, 20 us in bulk transfers") {
  PollBackoff backoff;
  Instant now{seconds(10).ns};
  (void)backoff.next(now, true, false, false);
  now = now + milliseconds(1);
  Duration last;
  for (int i = 0; i < 20; ++i) last = backoff.next(now, false, false, false);
  CHECK(last == milliseconds(1));
  CHECK(backoff.next(now, false, false, true) == microseconds(20));
  now = now + seconds(1);
  for (int i = 0; i < 20; ++i) last = backoff.next(now, false, true, false);
  CHECK(last == milliseconds(4));
}
