#include "engine/run_directory.h"

#include <doctest/doctest.h>

namespace sluice::engine {

namespace fs = std::filesystem;

TEST_CASE("run directory: beside the spec, named after it") {
  CHECK(RunDirectory::for_spec("/pipes/pipes/sweep.yaml", "").path == "/pipes/pipes/sweep.run");
  CHECK(RunDirectory::for_spec("/pipes/a.b.yaml", "").path == "/pipes/a.b.run");
  CHECK(RunDirectory::for_spec("sweep.yaml", "").path == fs::current_path() / "sweep.run");
  CHECK(RunDirectory::for_spec("../x/./sweep.yaml", "").path ==
        fs::current_path().parent_path() / "x" / "sweep.run");
}

TEST_CASE("run directory: the option wins, and starts at the current folder") {
  CHECK(RunDirectory::for_spec("/pipes/sweep.yaml", "/scratch/r1").path == "/scratch/r1");
  CHECK(RunDirectory::for_spec("/pipes/sweep.yaml", "/scratch/r1/").path == "/scratch/r1");
  CHECK(RunDirectory::for_spec("/pipes/sweep.yaml", "r1").path == fs::current_path() / "r1");
}

TEST_CASE("run directory: the names inside") {
  const RunDirectory run{"/r"};
  CHECK(run.journal(3) == "/r/journal.3.jsonl");
  CHECK(run.results_temporary() == "/r/results/.tmp");
  CHECK(run.lost() == "/r/lost");
}

}  // namespace sluice::engine
