#include "io/command_size.h"

#include <doctest/doctest.h>

#include "tests/support/spec_folder.h"

using namespace sluice;
using namespace sluice::io;

namespace {

// "[0, 1, …]" of so many items.
std::string numbers(size_t count) {
  std::string text = "[";
  for (size_t i = 0; i < count; ++i) text += (i == 0 ? "" : ", ") + std::to_string(100'000 + i);
  return text + "]";
}

}  // namespace

TEST_CASE("command size: what is known is counted to the byte, each word with zero and pointer") {
  test::SpecFolder folder;
  const auto p = folder.read(R"(sluice: 1
params: {tol: {type: string, default: abc}, l: {type: list, default: [1, 22]}}
tasks:
  a:
    foreach: {n: [7, 123456]}
    run: tool --tol=${{ params.tol }} ${{ params.l }} ${{ item.n }}
    env: {LEVEL: "${{ item.n }}"}
)");
  REQUIRE_MESSAGE(p, folder.printed);
  const CommandSize first = command_size(*p, scheduler::InstanceId(0));
  // tool, --tol=abc, 1, 22, 7, LEVEL=7
  CHECK(first.total_bytes == 4 + 9 + 1 + 2 + 1 + 7 + 6 * (1 + sizeof(char*)));
  CHECK(first.largest_bytes == 9);
  CHECK(first.largest == "word 2 of the command");
  const CommandSize second = command_size(*p, scheduler::InstanceId(1));
  CHECK(second.total_bytes == first.total_bytes + 10);
  CHECK(second.largest == "the variable LEVEL");
}

// UC-018
TEST_CASE("command size: a gather's paths are counted, a list in a variable is one text") {
  test::SpecFolder folder;
  const auto p = folder.read("sluice: 1\nparams: {all: {type: list, default: " + numbers(2500) +
                             R"(}}
tasks:
  part:
    foreach: {n: "${{ params.all }}"}
    run: part ${{ out.x }}
    outputs: {x: {file: x}}
  by_words:
    run: merge ${{ in.parts.paths }}
    inputs: {parts: part.x}
  by_list:
    run: merge --list ${{ in.parts }}
    inputs: {parts: part.x}
  script:
    sh: echo "$PARAM_all" | wc
)");
  REQUIRE_MESSAGE(p, folder.printed);
  const CommandSize words = command_size(*p, p->find("by_words", ""));
  REQUIRE(words.paths.size() == 1);
  CHECK(words.paths[0].input == "parts");
  CHECK(words.paths[0].count == 2500);
  CHECK(words.paths[0].bytes > kInputWordsBytesMax);
  CHECK(command_size(*p, p->find("by_list", "")).paths.empty());
  const CommandSize script = command_size(*p, p->find("script", ""));
  CHECK(script.largest == "the variable PARAM_all");
  CHECK(script.largest_bytes == 10 + 2500 * 7);  // "PARAM_all=", six digits and a newline each
}
