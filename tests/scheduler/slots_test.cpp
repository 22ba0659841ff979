#include "scheduler/slots.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <string>

namespace sluice::scheduler {
namespace {

using Cores = std::vector<int32_t>;

AttemptId attempt(uint32_t number) { return AttemptId::make(1, number); }

TEST_CASE("slots: cores are taken from the lowest number up") {
  Slots slots({4, 100});
  CHECK(slots.take(attempt(1), {2, 10}) == Cores{0, 1});
  CHECK(slots.take(attempt(2), {1, 10}) == Cores{2});
  CHECK(slots.free() == Resources{1, 80});
  slots.check_invariants();
}

// cores   0 1 2 3 4 5 6 7
// taken       x       x      free runs: 2, 3, 1
TEST_CASE("slots: the shortest free run that is long enough is used") {
  Slots slots({8, 0});
  CHECK(slots.take(attempt(1), {2, 0}) == Cores{0, 1});
  CHECK(slots.take(attempt(2), {1, 0}) == Cores{2});
  CHECK(slots.take(attempt(3), {3, 0}) == Cores{3, 4, 5});
  CHECK(slots.take(attempt(4), {1, 0}) == Cores{6});
  slots.give_back(attempt(1));
  slots.give_back(attempt(3));
  CHECK(slots.take(attempt(5), {1, 0}) == Cores{7});
  slots.give_back(attempt(5));
  CHECK(slots.take(attempt(6), {2, 0}) == Cores{0, 1});
  CHECK(slots.take(attempt(7), {3, 0}) == Cores{3, 4, 5});
  slots.check_invariants();
}

TEST_CASE("slots: without a long enough run the lowest free cores are used") {
  Slots slots({5, 0});
  for (uint32_t i = 1; i <= 5; ++i) slots.take(attempt(i), {1, 0});
  slots.give_back(attempt(1));
  slots.give_back(attempt(3));
  slots.give_back(attempt(5));
  CHECK(slots.take(attempt(6), {2, 0}) == Cores{0, 2});
  slots.check_invariants();
}

TEST_CASE("slots: what does not fit in cores or memory is refused and changes nothing") {
  Slots slots({4, 100});
  REQUIRE(slots.take(attempt(1), {3, 60}));
  CHECK_FALSE(slots.take(attempt(2), {2, 10}));
  CHECK_FALSE(slots.take(attempt(3), {1, 41}));
  CHECK(slots.free() == Resources{1, 40});
  CHECK(slots.fits({1, 40}));
  CHECK_FALSE(slots.fits({1, 41}));
  slots.check_invariants();
}

TEST_CASE("slots: an attempt may ask for memory alone") {
  Slots slots({1, 100});
  CHECK(slots.take(attempt(1), {0, 70}) == Cores{});
  CHECK_FALSE(slots.take(attempt(2), {1, 40}));
  slots.give_back(attempt(1));
  CHECK(slots.take(attempt(2), {1, 40}) == Cores{0});
  slots.check_invariants();
}

TEST_CASE("slots: a core is never given twice, over a random history") {
  const char* given = std::getenv("SLUICE_SEED");
  const unsigned seed = given == nullptr ? 1 : static_cast<unsigned>(std::stoul(given));
  CAPTURE(seed);
  std::mt19937 random(seed);
  Slots slots({16, 1000});
  std::map<uint32_t, Cores> taken;
  std::set<int32_t> cores_in_use;
  for (uint32_t step = 1; step <= 2000; ++step) {
    if (random() % 2 == 0 && !taken.empty()) {
      auto chosen = taken.begin();
      std::advance(chosen, random() % taken.size());
      for (const int32_t core : chosen->second) cores_in_use.erase(core);
      slots.give_back(attempt(chosen->first));
      taken.erase(chosen);
    } else {
      const auto wanted = static_cast<int32_t>(random() % 5);
      const auto cores = slots.take(attempt(step), {wanted, 1});
      REQUIRE(cores.has_value() == (wanted <= 16 - static_cast<int32_t>(cores_in_use.size())));
      if (!cores) continue;
      REQUIRE(cores->size() == static_cast<size_t>(wanted));
      for (const int32_t core : *cores) REQUIRE(cores_in_use.insert(core).second);
      taken[step] = *cores;
    }
    slots.check_invariants();
  }
}

}  // namespace
}  // namespace sluice::scheduler
