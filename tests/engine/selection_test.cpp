#include "engine/selection.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/spec_folder.h"

using namespace sluice;
using engine::Selection;
using engine::SelectionOptions;
using scheduler::InstanceId;

namespace {

//   mesh --> simulate[grid, alpha] ==> mean[grid] ; prepare ~~> simulate ; other
constexpr const char* kSpec = R"(sluice: 1
tasks:
  prepare: {run: prepare}
  mesh: {run: "mesh ${{ out.m }}", outputs: {m: {file: m}}}
  simulate:
    foreach: {grid: [64, 128], alpha: [0.1, "a,b"]}
    after: [prepare]
    run: simulate ${{ in.m }} ${{ out.f }}
    inputs: {m: mesh.m}
    outputs: {f: {file: f}}
  mean:
    foreach: {grid: [64, 128]}
    run: mean ${{ in.f }} ${{ out.x }}
    inputs: {f: simulate.f}
    outputs: {x: {file: x}}
  other: {run: other}
)";

struct Fixture {
  test::SpecFolder folder;
  std::optional<io::Pipeline> pipeline = folder.read(kSpec);

  std::vector<std::string> labels(const SelectionOptions& options) {
    CAPTURE(folder.printed);
    REQUIRE(pipeline.has_value());
    const auto selection = engine::select(*pipeline, options);
    if (!selection) return {selection.error().message};
    std::vector<std::string> all;
    for (size_t i = 0; i < pipeline->graph.instance_count(); ++i) {
      if (selection->includes(InstanceId(i))) all.push_back(pipeline->label(InstanceId(i)));
    }
    return all;
  }
  std::string problem(const SelectionOptions& options) { return labels(options).front(); }
};

using Labels = std::vector<std::string>;

}  // namespace

TEST_CASE_FIXTURE(Fixture,
                  "selection: with an instance goes what it reads and what it comes after") {
  CHECK(labels({{"mean[grid=64]"}, {}, {}}) ==
        Labels{"prepare", "mesh", "simulate[grid=64,alpha=0.1]", "simulate[grid=64,alpha=a%2Cb]",
               "mean[grid=64]"});
  CHECK(labels({{}, {"mesh"}, {}}) == Labels{"mesh"});
  CHECK(labels({{"other"}, {"mesh"}, {}}) == Labels{"mesh", "other"});
  CHECK(labels({}).size() == 9);
}

TEST_CASE_FIXTURE(Fixture, "selection: a part of an item names all instances that have it") {
  const auto count = [&](const std::string& target) {
    return engine::instances_named(*pipeline, target)->size();
  };
  CHECK(count("simulate") == 4);
  CHECK(count("simulate[grid=128]") == 2);
  CHECK(count("simulate[alpha=a%2Cb]") == 2);
  CHECK(count("simulate[alpha=0.1,grid=64]") == 1);  // in any order
}

TEST_CASE_FIXTURE(Fixture, "selection: what cannot be found is named with what there is") {
  CHECK(problem({{"simulat"}, {}, {}}) ==
        "--only: there is no task 'simulat'; did you mean 'simulate'?");
  CHECK(problem({{"simulate[grid=63]"}, {}, {}})
            .find("no instance of 'simulate' has grid=63; "
                  "there are simulate[grid=64,alpha=0.1], ") != std::string::npos);
  CHECK(problem({{}, {}, {"simulate[grd=64]"}}) ==
        "--force: 'simulate[grd=64]': 'simulate' has no foreach key 'grd'; did you mean 'grid'?");
  CHECK(problem({{"mesh[x=1]"}, {}, {}}).find("write 'mesh'") != std::string::npos);
  CHECK(problem({{"simulate[grid=64"}, {}, {}}).find("']'") != std::string::npos);
  CHECK(problem({{"simulate[64]"}, {}, {}}).find("key=value") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture,
                  "selection: a forced instance loses the key of its fact, no other does") {
  const auto selection = engine::select(*pipeline, {{}, {}, {"mean[grid=128]"}});
  REQUIRE(selection.ok());
  CHECK(selection->instances.empty());  // all run
  std::vector<scheduler::event::Restored> facts;
  for (size_t i = 0; i < pipeline->graph.instance_count(); ++i) {
    facts.push_back({InstanceId(i), {1, i + 1}, {}, {}});
  }
  const auto events = engine::opening(*selection, facts);
  REQUIRE(events.size() == facts.size());
  for (size_t i = 0; i < facts.size(); ++i) {
    const auto& fact = std::get<scheduler::event::Restored>(events[i]);
    CHECK(fact.key.known() == (pipeline->label(InstanceId(i)) != "mean[grid=128]"));
  }
}

TEST_CASE_FIXTURE(Fixture, "selection: the core hears of the selection after the facts") {
  const auto selection = engine::select(*pipeline, {{"mesh"}, {}, {}});
  REQUIRE(selection.ok());
  CHECK(selection->count(*pipeline) == 1);
  const auto events = engine::opening(*selection, {{InstanceId(0), {1, 1}, {}, {}}});
  REQUIRE(events.size() == 2);
  const auto& selected = std::get<scheduler::event::Selected>(events[1]);
  CHECK(std::count(selected.instances.begin(), selected.instances.end(), true) == 1);
}

TEST_CASE("selection: a share of failures is at least one") {
  CHECK(*engine::failures_max("7", 3) == 7);
  CHECK(*engine::failures_max("10%", 200) == 20);
  CHECK(*engine::failures_max("1%", 20) == 1);
  for (const char* wrong : {"", "0", "0%", "-1", "101%", "x", "5 %", "1.5"}) {
    CAPTURE(wrong);
    CHECK_FALSE(engine::failures_max(wrong, 100).ok());
  }
}
