#include "io/fault.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>

namespace sluice::io {
namespace {

constexpr useconds_t kHungMicroseconds = 300'000;  // who hangs so long dies of SIGALRM

// Runs three hits of "test.point" in a child with that plan; gives the wait status.
int child_status(const std::string& plan, int mpi_rank) {
  const pid_t child = fork();
  if (child == 0) {
    setenv("SLUICE_FAULT", plan.c_str(), 1);
    // The parent may have passed a point already: the child reads the variable anew.
    detail::fault_state = detail::FaultState::kUnread;
    set_fault_mpi_rank(mpi_rank);
    (void)ualarm(plan.starts_with("hang=") ? kHungMicroseconds : 0, 0);
    for (int i = 1; i <= 3; ++i) {
      SLUICE_FAULT_POINT("test.other");
      SLUICE_FAULT_POINT("test.point");
    }
    _exit(11);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

bool killed(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL; }
bool survived(int status) { return WIFEXITED(status) && WEXITSTATUS(status) == 11; }

}  // namespace

TEST_CASE("fault: a plan is a name, a hit count and a rank") {
  const auto full = parse_fault("journal.done.appended:7@3");
  REQUIRE(full.has_value());
  CHECK(full->name == "journal.done.appended");
  CHECK(full->hit == 7);
  CHECK(full->mpi_rank == 3);
  const auto plain = parse_fault("a.b");
  REQUIRE(plain.has_value());
  CHECK(plain->hit == 1);
  CHECK(plain->mpi_rank == -1);
  CHECK_FALSE(plain->hangs);
  const auto hang = parse_fault("hang=a.b:2");
  REQUIRE(hang.has_value());
  CHECK(hang->hangs);
  CHECK(hang->name == "a.b");
  CHECK(hang->hit == 2);
}

TEST_CASE("fault: text that is not a plan is refused") {
  for (const char* text :
       {"", ":2", "a:", "a:0", "a:x", "a@", "a@-1", "a:1@x", "hang=", "hang=:2"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_fault(text).has_value());
  }
}

TEST_CASE("fault: an armed point kills the process at its n-th hit") {
  CHECK(killed(child_status("test.point", 0)));
  CHECK(killed(child_status("test.point:3", 0)));
  CHECK(survived(child_status("test.point:4", 0)));
}

TEST_CASE("fault: a thread that is to hang at a point does not go on, and is not killed") {
  const int status = child_status("hang=test.point:2", 0);
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGALRM);
}

TEST_CASE("fault: another point, another rank or no plan does nothing") {
  CHECK(survived(child_status("test.absent", 0)));
  CHECK(survived(child_status("test.point@1", 0)));
  CHECK(killed(child_status("test.point@1", 1)));
  CHECK(survived(child_status("", 0)));
}

TEST_CASE("fault: a plan that cannot be read is the user's error") {
  const int status = child_status("test.point:many", 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 2);
}

}  // namespace sluice::io
