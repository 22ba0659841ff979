#include "engine/turn_watch.h"

#include <poll.h>

#include <doctest/doctest.h>

namespace sluice {

using engine::TurnWatch;
using scheduler::Instant;

namespace {

// A call that gives up the processor: nothing ever comes from no descriptor.
void block() { (void)::poll(nullptr, 0, 1); }

}  // namespace

TEST_CASE("turn watch: a long turn counts if the thread waited in it, and only then") {
  TurnWatch watch;
  watch.begin(Instant{0});
  block();
  watch.end(Instant{3'000'000});
  CHECK(watch.turns() == 1);
  CHECK(watch.blocked() == 1);
  CHECK(watch.longest() == scheduler::milliseconds(3));

  watch.begin(Instant{4'000'000});  // it computes for 9 ms
  watch.end(Instant{13'000'000});
  watch.begin(Instant{14'000'000});  // it waits, but not for long
  block();
  watch.end(Instant{14'900'000});
  CHECK(watch.turns() == 3);
  CHECK(watch.blocked() == 1);
  CHECK(watch.text() ==
        "3 turns of the control thread, 1 of them blocked for more than 1 ms, at most 3 ms");
}

}  // namespace sluice
