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
  CHECK(edge_text(tasks[0].inputs[0]) == "file");
  CHECK(edge_text(tasks[1].inputs[0]) == "broadcast, 1 to 6");
  CHECK(edge_text(tasks[2].inputs[0]) == "one-to-one, 6 to 6");
  CHECK(edge_text(tasks[3].inputs[0]) == "gather over [a], 6 into 2 (3 each)");
}

// UC-015
TEST_CASE("spec_describe: what was read of a task is told in one unit each, and its shell") {
  test::SpecFolder folder;
  const auto p = folder.read(R"(sluice: 1
limits: {licence: 5}
tasks:
  solve:
    run: solve
    resources: {cpus: 4, memory: 8GB, licence: 0.5}
    timeout: 1:30:00
    retry: {exit: {max: 2, codes: [75, 3]}, timeout: {max: 1}}
    on_failure: stop
    priority: -3
  script:
    sh: "true"
    grace: 500ms
)");
  REQUIRE_MESSAGE(p, folder.printed);
  const auto tasks = describe(*p);
  CHECK(tasks[0].way == "no shell");
  CHECK(tasks[0].rules ==
        std::vector<std::string>{"timeout 1h30m", "4 cpus", "memory 7.45 GiB", "0.5 of 5 licence",
                                 "retry of exit: 2 more, only status 75, 3",
                                 "retry of timeout: 1 more", "priority -3", "on failure: stop"});
  CHECK(tasks[1].way == "bash -euo pipefail");
  CHECK(tasks[1].rules == std::vector<std::string>{"grace 500ms", "1 cpu"});
}

TEST_CASE("spec_describe: bytes are told in the largest unit that they fill") {
  CHECK(memory_text(0) == "0 B");
  CHECK(memory_text(1023) == "1023 B");
  CHECK(memory_text(1024) == "1 KiB");
  CHECK(memory_text(8'000'000'000) == "7.45 GiB");
  CHECK(memory_text(int64_t{512} << 20U) == "512 MiB");
  CHECK(memory_text(int64_t{5000} << 40U) == "5000 TiB");
}
