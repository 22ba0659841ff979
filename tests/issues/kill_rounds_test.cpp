// Bugs that tests/e2e/kill_rounds.sh found, each where it can be shown without killing anybody.
#include <doctest/doctest.h>
#include <poll.h>

#include <fstream>

#include "engine/run_start.h"
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
