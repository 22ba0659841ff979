// A script that begins with the name of a variable of ours was looked at one byte before its
// beginning, for a '$' or a '{' that cannot be there. Found by the spec fuzzer after 268 000
// inputs.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/spec_folder.h"

using namespace sluice;

TEST_CASE("issue: a script may begin with the name of a variable") {
  test::SpecFolder folder;
  const auto begins_with = [&folder](const std::string& script) {
    return folder.read("sluice: 1\ntasks:\n  a:\n    sh: '" + script +
                       "'\n    outputs: {x: {file: x}}\n");
  };
  CHECK(begins_with("OUT_mine=3; echo $OUT_mine"));
  CHECK(folder.printed == "");
  CHECK(begins_with("OUT_nothing"));
  CHECK(folder.printed == "");
  CHECK_FALSE(begins_with("$OUT_nothing"));
  CHECK_FALSE(begins_with("${OUT_nothing}"));
  CHECK(begins_with("${OUT_nothing-} ${OUT_other:-}"));
}
