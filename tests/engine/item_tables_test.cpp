#include "engine/item_tables.h"

#include <doctest/doctest.h>

#include <map>

#include "tests/support/spec_folder.h"

using namespace sluice;
using scheduler::InstanceId;
using scheduler::ObjectId;

TEST_CASE("item tables: each done item of a task with results has a line, values as their text") {
  test::SpecFolder folder;
  const auto p = folder.read(R"(sluice: 1
tasks:
  a:
    foreach: {name: ["x y", "t\tab", last], n: [1]}
    run: a
    outputs: {f: {file: f.txt, keep: true}, score: {value: float}, used: {file: u}}
  b: {run: b, inputs: {u: a.used}, outputs: {o: {file: o}}}
  c: {foreach: {k: [1]}, run: c}
)");
  REQUIRE_MESSAGE(p, folder.printed);
  std::map<ObjectId, std::string> values;
  for (uint32_t i = 0; i < 3; ++i)
    values[p->graph.object(InstanceId(i), 1)] = "0." + std::to_string(i);
  const auto tables = engine::item_tables(
      *p, [](InstanceId instance) { return instance != InstanceId(2); },
      [&](ObjectId object) -> const std::string& { return values.at(object); });
  REQUIRE(tables.size() == 1);
  CHECK(tables[0].path == "results/a/items.tsv");
  CHECK(tables[0].text ==
        "name\tn\tf\tscore\n"
        "x y\t1\tname=x%20y,n=1.f.txt\t0.0\n"
        "t%09ab\t1\tname=t%09ab,n=1.f.txt\t0.1\n");
  CHECK(engine::item_tables(
            *p, [](InstanceId) { return false; },
            [&](ObjectId object) -> const std::string& { return values.at(object); })
            .empty());
}
