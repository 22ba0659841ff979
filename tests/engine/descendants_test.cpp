#include "engine/descendants.h"

#include "tests/engine/process_tree_harness.h"

namespace sluice::engine::test {
namespace {

// A child that is a subreaper and runs `body`; what body returns is its exit code.
int in_subreaper(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    ::_exit(body());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

pid_t run_bash(const std::string& script) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl("/bin/bash", "bash", "-c", script.c_str(), nullptr);
    ::_exit(127);
  }
  return child;
}

}  // namespace

TEST_CASE("descendants: stat tells parent, session and state, also of odd names") {
  const sluice::test::TemporaryFolder folder;
  const ProcessStat own = read_stat(::getpid());
  CHECK(own.parent == ::getppid());
  CHECK(own.session == ::getsid(0));
  CHECK(own.state == 'R');
  CHECK(own.start_time > 0);
  CHECK(read_stat(0x3FFFFFFF).state == '?');
  const pid_t child = ::fork();
  if (child == 0) {
    set_process_name("a) R 1 (b");
    std::ofstream(folder / "named") << "yes";
    for (;;) ::pause();
  }
  REQUIRE(wait_until([&] { return content_of(folder / "named") == "yes"; }));
  CHECK(read_stat(child).parent == ::getpid());
  CHECK(children_of(::getpid()) == std::vector<pid_t>{child});
  OwnChildren own_children;
  std::vector<pid_t> pids;
  own_children.read(pids);
  CHECK(pids == std::vector<pid_t>{child});
  ::kill(child, SIGKILL);
  CHECK(wait_until([&] { return read_stat(child).state == 'Z'; }));
  own_children.read(pids);
  CHECK(pids == std::vector<pid_t>{child});
  ::waitpid(child, nullptr, 0);
  own_children.read(pids);
  CHECK(pids.empty());
}

TEST_CASE("descendants: killing finds daemons and the children of the dead") {
  const sluice::test::TemporaryFolder folder;
  const int code = in_subreaper([&] {
    const std::string here = "cd " + folder.path().string() + "; ";
    run_bash(here + "(setsid bash -c 'trap \"\" TERM; sleep 600 & echo $! $$ > deep; wait' &)");
    run_bash(here + "bash -c 'sleep 600 & echo $! $$ > plain; wait'; true");
    for (const char* name : {"deep", "plain"}) {
      if (!wait_until([&] { return content_of(folder / name).ends_with('\n'); })) return 1;
    }
    if (!kill_all_descendants(scheduler::seconds(10))) return 2;
    for (const char* name : {"deep", "plain"}) {
      std::istringstream pids(content_of(folder / name));
      for (pid_t pid = 0; pids >> pid;) {
        if (is_alive(pid)) return 3;
      }
    }
    return children_of(::getpid()).empty() ? 0 : 4;
  });
  CHECK(code == 0);
}

TEST_CASE("descendants: only attempts whose guard is gone are orphans") {
  const sluice::test::TemporaryFolder folder;
  const std::string here = folder.path().string();
  // A guard that is gone: this process's pid with another start time.
  const sluice::test::ScopedVariable gone("SLUICE_ATTEMPT", std::to_string(::getpid()) + "-1.7");
  const pid_t orphan = run_bash("exec sleep 600");
  const sluice::test::ScopedVariable here_still("SLUICE_ATTEMPT", own_mark() + ".8");
  const pid_t owned = run_bash("exec sleep 600");
  // An exec gives a process its name before its variables can be read.
  const auto marked = [](pid_t pid, const std::string& mark) {
    return wait_until(
        [&] { return name_of(pid) == "sleep" && variable_of(pid, "SLUICE_ATTEMPT") == mark; });
  };
  REQUIRE(marked(owned, own_mark() + ".8"));
  REQUIRE(marked(orphan, std::to_string(::getpid()) + "-1.7"));
  CHECK(kill_orphaned_attempts() == 1);
  CHECK(wait_until([&] { return !is_alive(orphan); }));
  CHECK(is_alive(owned));
  ::kill(owned, SIGKILL);
  ::waitpid(owned, nullptr, 0);
  ::waitpid(orphan, nullptr, 0);
}

}  // namespace sluice::engine::test
