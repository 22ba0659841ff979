#include "engine/hang_watch.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

using namespace sluice;
using engine::HangWatch;
using engine::TurnCount;

TEST_CASE("hang watch: a loop hangs when so many looks in a row saw no turn of it") {
  TurnCount count(3);
  uint64_t turns = 1;
  CHECK_FALSE(count.hangs(turns));
  CHECK_FALSE(count.hangs(turns));
  CHECK_FALSE(count.hangs(turns));
  CHECK_FALSE(count.hangs(++turns));
  CHECK_FALSE(count.hangs(turns));
  CHECK_FALSE(count.hangs(turns));
  CHECK(count.hangs(turns));
}

TEST_CASE("hang watch: a loop that has not begun may take its time") {
  TurnCount count(2);
  for (int i = 0; i < 100; ++i) CHECK_FALSE(count.hangs(0));
  CHECK_FALSE(count.hangs(1));
  CHECK_FALSE(count.hangs(1));
  CHECK(count.hangs(1));
}

TEST_CASE(
    "hang watch: it tells of a loop that hangs, and a watch that is not needed ends at once") {
  const int told = eventfd(0, EFD_CLOEXEC);
  const auto tell = [told] {
    const uint64_t one = 1;
    CHECK(write(told, &one, sizeof one) == sizeof one);
  };
  { const HangWatch unneeded(1000, tell); }
  HangWatch watch(1, tell);
  watch.turn();
  pollfd fd{told, POLLIN, 0};
  CHECK(poll(&fd, 1, 60'000) == 1);
  uint64_t times = 0;
  CHECK(read(told, &times, sizeof times) == sizeof times);
  CHECK(times == 1);
  close(told);
}
