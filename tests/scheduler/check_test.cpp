#include "scheduler/check.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <string>

#include "scheduler/types.h"

using namespace sluice;

namespace {

struct Ending {
  int status = -1;  // exit code, or -1
  std::string stderr_text;
};

// Runs `body` in a child process: an assertion ends its process.
Ending in_child(const std::function<void()>& body) {
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    body();
    _exit(0);
  }
  close(ends[1]);
  Ending ending;
  std::array<char, 512> buffer{};
  for (ssize_t got = 0; (got = read(ends[0], buffer.data(), buffer.size())) > 0;) {
    ending.stderr_text.append(buffer.data(), static_cast<size_t>(got));
  }
  close(ends[0]);
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  if (WIFEXITED(status)) ending.status = WEXITSTATUS(status);
  return ending;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("check: an assertion that holds says nothing and evaluates its condition once") {
  int evaluated = 0;
  const Ending ending = in_child([] { SLUICE_ASSERT(1 + 1 == 2, "never printed"); });
  SLUICE_ASSERT(++evaluated == 1);
  CHECK(evaluated == 1);
  CHECK(ending.status == 0);
  CHECK(ending.stderr_text.empty());
}

TEST_CASE("check: an assertion that fails ends the process with status 70 and says where and why") {
  const Ending ending = in_child([] {
    set_assert_mpi_rank(3);
    const int cores = 4;
    SLUICE_ASSERT(cores < 4, cores, true, "cores", scheduler::TaskId(7));
  });
  CHECK(ending.status == 70);
  CHECK(contains(ending.stderr_text, "check_test.cpp:"));
  CHECK(contains(ending.stderr_text, "'cores < 4' does not hold; values: 4 true cores 7"));
  CHECK(contains(ending.stderr_text, "(mpi_rank 3)"));
}
