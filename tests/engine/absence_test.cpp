#include "engine/absence.h"

#include <doctest/doctest.h>

using namespace sluice;
using engine::Absence;
using scheduler::Instant;
using scheduler::milliseconds;
using scheduler::seconds;

namespace {
Instant at(scheduler::Duration since_start) { return Instant{} + since_start; }
}  // namespace

TEST_CASE("absence: turns that follow each other give no grace, however late the first one is") {
  Absence absence;
  CHECK_FALSE(absence.turn(at(seconds(100))));
  for (int i = 1; i < 100; ++i)
    CHECK_FALSE(absence.turn(at(seconds(100) + milliseconds(1000) * i)));
  CHECK(absence.grace_end() == Instant{});
}

TEST_CASE("absence: the first turn after a stop gives grace, and the next ones do not end it") {
  Absence absence;
  (void)absence.turn(at(seconds(1)));
  CHECK(absence.turn(at(seconds(60))));
  CHECK(absence.grace_end() == at(seconds(60) + Absence::kGrace));
  CHECK_FALSE(absence.turn(at(seconds(61))));
  CHECK(absence.grace_end() == at(seconds(60) + Absence::kGrace));
}

TEST_CASE("absence: turns that are all long give grace once, so silence is judged at last") {
  Absence absence;
  (void)absence.turn(at(seconds(1)));
  CHECK(absence.turn(at(seconds(11))));
  for (int i = 2; i < 20; ++i) CHECK_FALSE(absence.turn(at(seconds(1) + seconds(10) * i)));
  CHECK(absence.grace_end() == at(seconds(11) + Absence::kGrace));
  (void)absence.turn(at(seconds(191) + milliseconds(5)));
  CHECK(absence.turn(at(seconds(300))));
}
