// Bugs that tests/e2e/kill_rounds.sh found, each where it can be shown without killing anybody.
#include <doctest/doctest.h>
#include <poll.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "engine/run_start.h"
#include "tests/support/core_bench.h"
#include "tests/support/graph_dsl.h"
#include "tests/support/spec_folder.h"

using namespace sluice;
using engine::RunDirectory;

namespace {

constexpr const char* kSpec = R"(sluice: 1
name: one
tasks:
  make:
    run: /bin/echo 1
    outputs: {x: {file: x.txt}}
)";

void close(engine::RecordKeeper& keeper) {
  bool closed = false;
  keeper.close({"done", 0}, [&](const Status& status) {
    CHECK(status.ok());
    closed = true;
  });
  pollfd fd{keeper.fd(), POLLIN, 0};
  while (!closed && poll(&fd, 1, 10'000) == 1) keeper.run_completions();
  CHECK(closed);
}

}  // namespace

// The worker was killed at the fault point publish.saved; the run went on, and 0 was its exit code.
TEST_CASE("issue: what a worker saved and never reported is gone when the run ends") {
  test::SpecFolder folder;
  const auto pipeline = folder.read(kSpec);
  REQUIRE_MESSAGE(pipeline, folder.printed);
  const RunDirectory directory = RunDirectory::for_spec(folder.path() / "p.yaml", "");
  const auto start = engine::start_run(*pipeline, directory, "n0", {});
  REQUIRE(start.ok());
  std::ofstream(directory.results_temporary() / "4294967331") << "saved";
  std::ofstream(directory.objects() / ".tmp" / "4294967332") << "saved";
  close(*start->keeper);
  CHECK(std::filesystem::is_empty(directory.results_temporary()));
  CHECK(std::filesystem::is_empty(directory.objects() / ".tmp"));
}

// A removal waits for the journal. What is saved under the same name in the meantime is not meant.
TEST_CASE("issue: an intermediate that is saved again stays when its removal was still waiting") {
  test::SpecFolder folder;
  const auto pipeline = folder.read(kSpec);
  REQUIRE_MESSAGE(pipeline, folder.printed);
  const RunDirectory directory = RunDirectory::for_spec(folder.path() / "p.yaml", "");
  const auto start = engine::start_run(*pipeline, directory, "n0", {});
  REQUIRE(start.ok());
  io::record::Durable durable;
  durable.task = "make";
  durable.output = "x";
  durable.path = "objects/make/x.txt";
  durable.temporary = "objects/.tmp/4294967331";
  std::filesystem::create_directories(directory.objects() / "make");
  std::ofstream(directory.path / durable.path) << "of another key";
  std::ofstream(directory.path / durable.temporary) << "new";
  start->keeper->remove(durable.path);
  start->keeper->commit(durable, [](const Status& status) { CHECK(status.ok()); });
  close(*start->keeper);
  std::string text;
  std::getline(std::ifstream(directory.path / durable.path), text);
  CHECK(text == "new");
}

// A worker was killed at store.saved. The order to drop an input of what was done waited at rank 0
// for the journal; meanwhile the input had to be made again, on the same worker, and the order,
// sent at last, took the new bytes: it was made a third time.
TEST_CASE("issue: an order to drop never reaches a worker after the object was made again there") {
  using namespace scheduler;
  tests::GraphDsl dsl;
  const TaskId make = dsl.task("make");
  const TaskId use = dsl.task("use");
  dsl.one_to_one(make, use);
  dsl.one_to_one(use, dsl.task("end", {.result = true}));
  tests::CoreBench bench(dsl.build());
  bench.join(0, 1);
  bench.begin();
  for (const int instance : {0, 1}) {
    bench.schedule();
    bench.finish(instance);
  }
  const uint64_t use_is_done = bench.core.decision_count();
  // Both objects are gone from the worker, and are made again there.
  bench.apply(event::ReplicaLost{WorkerId(0), ObjectId(1)});
  bench.apply(event::ReplicaLost{WorkerId(0), ObjectId(0)});
  bench.schedule();
  bench.finish(0);
  bench.apply(event::RecordsSynced{use_is_done});
  CHECK(bench.all<decision::DropObject>().empty());
  CHECK(bench.core.replicas(ObjectId(0)) == std::vector<WorkerId>{WorkerId(0)});
  CHECK(bench.run());
  CHECK(bench.successes == std::vector<int>{2, 2, 1});
}
