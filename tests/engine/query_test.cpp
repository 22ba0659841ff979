#include "engine/query.h"

#include <doctest/doctest.h>

using namespace sluice::engine;

TEST_CASE("query: a target names a task or one of its instances") {
  CHECK(matches_target("", "a", "k=1"));
  CHECK(matches_target("a", "a", "k=1"));
  CHECK(matches_target("a[k=1]", "a", "k=1"));
  CHECK_FALSE(matches_target("a[k=1]", "a", "k=10"));
  CHECK_FALSE(matches_target("a[]", "a", ""));
  CHECK_FALSE(matches_target("ab", "a", ""));
}

// UC-032
TEST_CASE("query: what a program wrote cannot steer the terminal") {
  CHECK(quoted_lines("a\x1b[2J\tb\r\nlast", "> ") == "> a?[2J\tb?\n> last\n");
  CHECK(quoted_lines("", "> ").empty());
}
