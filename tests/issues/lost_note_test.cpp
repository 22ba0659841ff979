// A guard may outlive mpirun by the time that killing takes. When the same command was given again
// at once, the note of the old rank 1's end made the new rank 0 give up its own, living worker 1.
#include <doctest/doctest.h>
#include <poll.h>
#include <stdlib.h>

#include <fstream>
#include <vector>

#include "engine/aftermath.h"
#include "engine/run_start.h"
#include "tests/support/spec_folder.h"

using namespace sluice;

namespace {

constexpr const char* kSpec = R"(sluice: 1
name: one
tasks:
  make:
    run: /bin/echo 1
    outputs: {x: {file: x.txt}}
)";

struct Job {
  explicit Job(const char* name) { setenv("PMIX_NAMESPACE", name, 1); }
  ~Job() { unsetenv("PMIX_NAMESPACE"); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
};

}  // namespace

TEST_CASE("issue: a note of a lost rank counts only in the job whose rank it was") {
  CHECK(engine::lost_note_name(3, "") == "3");
  CHECK(engine::lost_note_name(3, "4711") == "3@4711");
  CHECK(engine::rank_of_lost_note("3@4711", "4711") == 3);
  CHECK(engine::rank_of_lost_note("12", "") == 12);
  for (const char* name :
       {"3@471", "3@47112", "3", "@4711", "x@4711", ".3@4711.77", "03@4711", ""}) {
    CAPTURE(name);
    CHECK_FALSE(engine::rank_of_lost_note(name, "4711").has_value());
  }
  CHECK_FALSE(engine::rank_of_lost_note("3@4711", "").has_value());
  const Job job("slurm.pmix/12:0");
  CHECK(engine::mpi_job() == "slurm.pmix_12_0");  // it is a part of a file's name
}

TEST_CASE("issue: rank 0 reads the notes of its own job only") {
  const Job job("4711");
  test::SpecFolder folder;
  const auto pipeline = folder.read(kSpec);
  REQUIRE_MESSAGE(pipeline, folder.printed);
  const auto directory = engine::RunDirectory::for_spec(folder.path() / "p.yaml", "");
  std::vector<uint32_t> lost;
  engine::RecordKeeper::Callbacks callbacks;
  callbacks.mail = [&](const engine::Mail& mail) { lost = mail.lost_ranks; };
  const auto start = engine::start_run(*pipeline, directory, "n0", callbacks);
  REQUIRE(start.ok());
  std::ofstream(directory.lost() / "1@4710") << "n1 the guard was killed\n";
  std::ofstream(directory.lost() / "2@4711") << "n1 the guard was killed\n";
  start->keeper->tick(scheduler::Instant{} + scheduler::seconds(1));
  pollfd fd{start->keeper->fd(), POLLIN, 0};
  while (lost.empty() && poll(&fd, 1, 10'000) == 1) start->keeper->run_completions();
  CHECK(lost == std::vector<uint32_t>{2});
}
