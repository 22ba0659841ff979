#include <doctest/doctest.h>

#include <set>
#include <string>

#include "tests/support/spec_folder.h"

using namespace sluice;

// UC-043
TEST_CASE("result paths: no two outputs share one, whatever the items are called") {
  test::SpecFolder folder;
  const std::string long_text(300, 'x');
  const auto p = folder.read(
      "sluice: 1\ntasks:\n  odd:\n    foreach: {a: ['x', 'X', 'a b', 'a%20b', "
      "'../x', './x', 'a,b=c', 'a/b', '.', " +
      long_text + ", " + long_text + R"(y]}
    run: work ${{ out.one }} ${{ out.two }}
    outputs: {one: {file: o}, two: {file: b.o}}
  pair:
    foreach: [{a: 'x,b=y', b: z}, {a: x, b: 'y,b=z'}]
    run: work ${{ out.one }}
    outputs: {one: {file: o}}
  plain:
    run: work ${{ out.one }} ${{ out.two }}
    outputs: {one: {file: 'a=x.o'}, two: {file: o}}
)");
  REQUIRE_MESSAGE(p, folder.printed);
  std::set<std::string> paths;
  for (size_t o = 0; o < p->graph.object_count(); ++o) {
    const std::string path = p->result_path(scheduler::ObjectId(o));
    const std::filesystem::path normal = std::filesystem::path(path).lexically_normal();
    CHECK(normal == path);
    CHECK(paths.insert(path).second);
    CHECK(p->result_path(scheduler::ObjectId(o)).starts_with("results/"));
    CHECK(normal.filename().string().size() <= 255);
  }
  CHECK(paths.size() == 11 * 2 + 2 + 2);
}
