#include "io/spec_describe.h"

#include <doctest/doctest.h>

#include "tests/support/spec_folder.h"

using namespace sluice;
using namespace sluice::io;

TEST_CASE("spec_describe: each edge is named as one-to-one, broadcast, gather or file") {
  test::SpecFolder folder;
  folder.write("obs", "1");
  const auto p = folder.read(R"(sluice: 1
limits: {licence: 5}
tasks:
  mesh:
    run: mesh ${{ in.obs }}
    inputs: {obs: {file: obs}}
    outputs: {m: {file: m}}
    resources: {cpus: 4, memory: 8GiB, licence: 0.5}
    timeout: 1:30:00
  sim:
    foreach: {g: [1, 2], a: [1, 2, 3]}
    run: sim ${{ in.m }}
    inputs: {m: mesh.m}
    outputs: {f: {file: f}, s: {value: float}}
  post:
    foreach: {g: [1, 2], a: [1, 2, 3]}
    run: post ${{ in.f }}
    inputs: {f: sim.f}
  mean:
    foreach: {g: [1, 2]}
    run: mean ${{ in.f }}
    inputs: {f: sim.f}
)");
  REQUIRE_MESSAGE(p, folder.printed);
  CHECK(count_text(*p) == "4 tasks, 15 instances, 13 objects");
  const auto tasks = describe(*p);
  REQUIRE(tasks.size() == 4);
  CHECK(tasks[0].inputs[0].join == "file");
  CHECK(tasks[0].inputs[0].source == (folder.path() / "obs").string());
  CHECK(tasks[0].request == "4 cpus, 8GiB memory, 0.5 licence");
  CHECK(tasks[0].timeout == "1h30m");
  CHECK(tasks[0].keys.empty());
  CHECK(tasks[0].results.empty());
  CHECK(tasks[1].instances == 6);
  CHECK(tasks[1].keys == "g x a");
  CHECK(tasks[1].inputs[0].join == "broadcast");
  CHECK(tasks[1].inputs[0].source == "mesh.m");
  CHECK(tasks[1].request == "1 cpu");
  CHECK(tasks[1].results == std::vector<std::string>{"s"});
  CHECK(tasks[2].inputs[0].join == "one-to-one");
  CHECK(tasks[3].inputs[0].join == "gather over [a]");
}
