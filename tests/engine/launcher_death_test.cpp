// Deaths of guard, launcher, rank and checker: nothing survives, the store is removed, and what
// happened is noted. tests/engine/launcher_test.cpp has the life before.
#include "engine/aftermath.h"
#include "engine/launcher.h"
#include "tests/engine/process_tree_harness.h"

namespace sluice::engine::test {
namespace {

using sluice::test::ScopedVariable;

// Processes of all kinds below the launcher: plain, in the background, a daemon.
std::vector<pid_t> populate(Tree& tree) {
  const auto attempt = tree.start_shell(
      "(setsid bash -c 'trap \"\" TERM HUP; echo $$ > daemon; sleep 600 & wait' &);"
      "sleep 600 & echo $! > background; wait");
  std::vector<pid_t> pids = {tree.launcher(), tree.rank(), tree.started(attempt)};
  for (const char* name : {"daemon", "background"}) {
    std::string text;
    REQUIRE(wait_until([&] { return (text = content_of(tree.folder / name)).ends_with('\n'); }));
    pids.push_back(std::stoi(text));
  }
  for (const pid_t pid : children_of(tree.launcher())) pids.push_back(pid);
  for (const pid_t pid : pids) REQUIRE(is_alive(pid));
  return pids;
}

bool all_die(const std::vector<pid_t>& pids) {
  return wait_until([&] {
    for (const pid_t pid : pids) {
      if (is_alive(pid)) return false;
    }
    return true;
  });
}

}  // namespace

TEST_CASE("death: a killed rank takes everything with it, and a worker's guard ends with 0") {
  for (const int mpi_rank : {0, 3}) {
    CAPTURE(mpi_rank);
    Tree tree(mpi_rank);
    const std::vector<pid_t> pids = populate(tree);
    ::kill(tree.rank(), SIGKILL);
    CHECK(tree.guard_exit_code() == (mpi_rank == 0 ? 128 + SIGKILL : 0));
    CHECK(all_die(pids));
    CHECK_FALSE(tree.store_exists());
    CHECK(
        content_of(tree.lost_file()).find("the engine process was killed by signal 9 (Killed)\n") !=
        std::string::npos);
  }
}

TEST_CASE("death: a killed launcher is the guard's to clean up after") {
  for (const int mpi_rank : {0, 3}) {
    CAPTURE(mpi_rank);
    Tree tree(mpi_rank);
    const std::vector<pid_t> pids = populate(tree);
    ::kill(tree.launcher(), SIGKILL);
    CHECK(tree.guard_exit_code() == (mpi_rank == 0 ? 128 + SIGKILL : 0));
    CHECK(all_die(pids));
    CHECK_FALSE(tree.store_exists());
    CHECK(content_of(tree.lost_file()).find("the launcher was killed by signal 9") !=
          std::string::npos);
  }
}

// seed 69 of e2e/kill_rounds, launcher.started: the others waited in MPI_Init for ever.
TEST_CASE(
    "death: that of a worker before MPI has begun is a failure to mpirun, which ends the run") {
  for (const bool of_launcher : {false, true}) {
    CAPTURE(of_launcher);
    Tree tree(3);
    const std::vector<pid_t> pids = populate(tree);
    tree.remove_store();
    ::kill(of_launcher ? tree.launcher() : tree.rank(), SIGKILL);
    CHECK(tree.guard_exit_code() == 3);
    CHECK(all_die(pids));
  }
}

TEST_CASE("death: a killed guard is the launcher's to clean up after") {
  Tree tree;
  const std::vector<pid_t> pids = populate(tree);
  ::kill(tree.guard(), SIGKILL);
  CHECK(all_die(pids));
  CHECK_FALSE(tree.store_exists());
  CHECK(content_of(tree.lost_file()).find("the guard was killed") != std::string::npos);
}

// test -> mpirun, a fork of the test that makes the tree -> guard -> launcher -> rank
struct UnderMpirun {
  explicit UnderMpirun(const std::string& mpi_variable) {
    const ScopedVariable stay("FAKE_RANK_EXIT", "never");
    mpirun = ::fork();
    REQUIRE(mpirun >= 0);
    if (mpirun == 0) {
      const Tree tree(0, mpi_variable);
      std::ofstream(notes / "tree") << tree.guard() << ' ' << tree.launcher() << ' ' << tree.rank()
                                    << ' ' << tree.folder.path().string() << '\n';
      for (;;) ::pause();
    }
    std::string text;
    REQUIRE(wait_until([&] { return (text = content_of(notes / "tree")).ends_with('\n'); }));
    std::istringstream(text) >> guard >> launcher >> rank >> folder;
  }
  ~UnderMpirun() { std::filesystem::remove_all(folder); }
  UnderMpirun(const UnderMpirun&) = delete;
  UnderMpirun& operator=(const UnderMpirun&) = delete;

  void kill_mpirun() const {
    ::kill(mpirun, SIGKILL);
    ::waitpid(mpirun, nullptr, 0);
  }
  [[nodiscard]] std::string lost() const {
    return content_of(std::filesystem::path(folder) / "run" / "lost" / "0");
  }

  sluice::test::TemporaryFolder notes;
  pid_t mpirun = 0;
  pid_t guard = 0;
  pid_t launcher = 0;
  pid_t rank = 0;
  std::string folder;
};

TEST_CASE("death: that of mpirun ends the run") {
  const UnderMpirun tree("OMPI_COMM_WORLD_SIZE");
  tree.kill_mpirun();
  CHECK(all_die({tree.guard, tree.launcher, tree.rank}));
  CHECK(tree.lost().find("mpirun (or its like) was killed") != std::string::npos);
}

TEST_CASE("death: without MPI a parent may go (nohup), the run stays and takes signals") {
  const UnderMpirun tree("");
  tree.kill_mpirun();
  ::kill(tree.guard, SIGTERM);
  CHECK(all_die({tree.guard, tree.launcher, tree.rank}));
  CHECK(tree.lost().find("the engine process exited with code 55") != std::string::npos);
}

TEST_CASE("death: signals to the guard reach the rank, whose exit is the run's") {
  for (const int number : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) {
    CAPTURE(number);
    Tree tree;
    ::kill(tree.guard(), number);
    CHECK(tree.guard_exit_code() == 40 + number);
  }
}

TEST_CASE("death: a signal to the launcher alone is not the rank's") {
  Tree tree;
  ::kill(tree.launcher(), SIGTERM);  // Slurm signals every process of a step
  CHECK(tree.run_shell("exit 3").exit_code == 3);
  CHECK(is_alive(tree.rank()));
}

TEST_CASE("death: no note is made where there is no run directory") {
  Tree tree;
  std::filesystem::remove_all(tree.folder / "run");
  ::kill(tree.rank(), SIGKILL);
  CHECK(tree.guard_exit_code() == 128 + SIGKILL);
  CHECK_FALSE(std::filesystem::exists(tree.folder / "run"));
}

TEST_CASE("checker: a request is answered, a crash is told, the next request finds a new one") {
  Tree tree;
  tree.ask_checker("hello");
  CHECK(tree.checker_reply() == "hello");
  tree.ask_checker("crash");
  CHECK(tree.checker_reply() == "{\"id\":0,\"crashed\":6}");
  tree.ask_checker("again");
  CHECK(tree.checker_reply() == "again");
  tree.ask_checker("exit");
  CHECK(tree.checker_reply() == "{\"id\":0,\"crashed\":131}");
}

TEST_CASE("checker: one that hangs is killed on demand") {
  Tree tree;
  tree.ask_checker("hang");
  CHECK(tree.checker_reply() == "hang");  // it has it
  tree.send(launch::KillChecker{});
  CHECK(tree.checker_reply() == "{\"id\":0,\"crashed\":9}");
  tree.ask_checker("again");
  CHECK(tree.checker_reply() == "again");
}

TEST_CASE("checker: one that dies at once again and again is left alone for a while") {
  Tree tree;
  for (int i = 0; i < 3; ++i) {
    tree.ask_checker("crash");
    CHECK(tree.checker_reply() == "{\"id\":0,\"crashed\":6}");
  }
  tree.ask_checker("hello");
  CHECK(tree.checker_reply() == "hello");  // after the pause
}

TEST_CASE("aftermath: the name of a rank's segment follows from what mpirun tells") {
  CHECK(vader_segment_name("vm", 0, "1504378881", "1") == "vader_segment.vm.0.59ab0001.1");
  CHECK(vader_segment_name("vm", 0, "slurm.pmix.7.0", "1") == "");
  CHECK(vader_segment_name("vm", 0, "", "1") == "");
}

}  // namespace sluice::engine::test
