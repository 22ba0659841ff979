// Real processes under a real guard and launcher; the rank is tests/engine/programs/fake_rank.cpp.
#include "engine/launcher.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <sstream>

#include "tests/engine/process_tree_harness.h"

namespace sluice::engine::test {
namespace {

using sluice::test::ScopedVariable;

int64_t resident_bytes(pid_t pid) {
  int64_t pages = 0;
  std::ifstream statm("/proc/" + std::to_string(pid) + "/statm");
  statm >> pages >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

}  // namespace

TEST_CASE("launcher: output, exit code and usage of a process come back") {
  Tree tree;
  const launch::Exited exited = tree.run_shell("echo out; echo err >&2; exit 7");
  CHECK(exited.start_error == "");
  CHECK(exited.exit_code == 7);
  CHECK(exited.signal == 0);
  CHECK(exited.out.head == "out\n");
  CHECK(exited.out.tail == "out\n");
  CHECK(exited.out.bytes == 4);
  CHECK(exited.out.path == "");
  CHECK(exited.err.head == "err\n");
  CHECK(exited.usage.wall.ns > 0);
  CHECK(exited.usage.cpu.ns > 0);
  CHECK(exited.usage.memory_peak_bytes > 1 << 20);
  CHECK(exited.leftover_killed == 0);
}

TEST_CASE("launcher: a process killed by a signal is reported with that signal") {
  Tree tree;
  const launch::Exited exited = tree.run_shell("kill -SEGV $$");
  CHECK(exited.signal == SIGSEGV);
  CHECK(exited.exit_code == 0);
}

TEST_CASE("launcher: peak memory and CPU time are the process's own") {
  Tree tree;
  const launch::Exited exited = tree.run_shell(
      "dd if=/dev/zero of=/dev/null bs=60M count=1 2>&1; for ((i = 0; i < 30000; ++i)); do :; "
      "done");
  CHECK(exited.exit_code == 0);
  CHECK(exited.usage.memory_peak_bytes > 60 << 20);
  CHECK(exited.usage.cpu.ns > 20'000'000);
}

TEST_CASE("launcher: what cannot start says what was found and what to do") {
  Tree tree;
  const auto error_of = [&](const std::string& program) {
    launch::Start start;
    start.argv = {program};
    start.environment = {{"PATH", tree.folder.path().string() + ":/no/such/folder"}};
    const launch::Exited exited = tree.exited(tree.start(std::move(start)));
    CHECK(exited.exit_code == 0);
    return exited.start_error;
  };
  const std::string here = tree.folder.path().string();
  const auto write_script = [&](const std::string& name, const std::string& text, mode_t mode) {
    std::ofstream(tree.folder / name) << text;
    ::chmod((tree.folder / name).c_str(), mode);
  };
  CHECK(error_of("nosuch") == "no program 'nosuch' in PATH (" + here +
                                  ":/no/such/folder): load its module or write its path");
  CHECK(error_of("/no/such/file") == "no file '/no/such/file'");
  CHECK(error_of(here) == "'" + here + "' is a folder, expected a program");
  CHECK(error_of("") == "the command's first word is empty, expected a program");
  write_script("plain", "#!/bin/sh\n", 0644);
  CHECK(error_of("plain") == "'" + here + "/plain' is not executable (mode 0644): chmod +x it");
  CHECK(error_of("./plain") == error_of("plain"));
  write_script("old", "#!/no/such/python -u\n", 0755);
  CHECK(error_of("old") == "'" + here + "/old' names the interpreter '/no/such/python', which " +
                               "does not exist here: correct its first line");
  write_script("text", "echo hello\n", 0755);
  CHECK(error_of("text").find("begin it with a line such as #!/bin/sh") != std::string::npos);
  CHECK(error_of(std::string("/bin/true")) == "");

  launch::Start start;
  start.argv = {"/bin/true"};
  start.working_directory = "/no/such/folder";
  CHECK(tree.exited(tree.start(start)).start_error ==
        "cannot enter the folder '/no/such/folder': No such file or directory");
  start.working_directory.clear();
  start.stdin_path = "/no/such/input";
  CHECK(tree.exited(tree.start(start)).start_error ==
        "cannot read its stdin '/no/such/input': No such file or directory");
  start.stdin_path.clear();
  start.cpus = {65000};
  CHECK(tree.exited(tree.start(start)).start_error.starts_with("cannot use processors 65000: "));
  start.cpus.clear();
  start.argv.emplace_back(200000, 'x');
  CHECK(tree.exited(tree.start(start)).start_error.find("longest word has 200000 bytes") !=
        std::string::npos);
}

TEST_CASE("launcher: a program is found in the attempt's own PATH and runs in its folder") {
  Tree tree;
  std::filesystem::create_directory(tree.folder / "bin");
  std::ofstream(tree.folder / "bin/hello") << "#!/bin/sh\npwd\necho \"$PWD\"\n";
  ::chmod((tree.folder / "bin/hello").c_str(), 0755);
  launch::Start start;
  start.argv = {"hello"};
  start.environment = {{"PATH", "bin:/bin:/usr/bin"}};
  const launch::Exited exited = tree.exited(tree.start(std::move(start)));
  const std::string here = tree.folder.path().string() + "\n";
  CHECK(exited.start_error == "");
  CHECK(exited.out.head == here + here);
}

TEST_CASE("launcher: stdin is empty, or the file that was named") {
  Tree tree;
  CHECK(tree.run_shell("cat; echo end").out.head == "end\n");
  std::ofstream(tree.folder / "input") << "text";
  launch::Start start;
  start.argv = {"/bin/cat"};
  start.stdin_path = (tree.folder / "input").string();
  CHECK(tree.exited(tree.start(std::move(start))).out.head == "text");
}

TEST_CASE("launcher: user code sees no variable of an MPI or batch launcher") {
  const ScopedVariable rank("OMPI_COMM_WORLD_RANK", "0");
  const ScopedVariable pmi("PMI_SIZE", "2");
  const ScopedVariable job("SLURM_JOB_ID", "4711");
  const ScopedVariable root("OMPI_ALLOW_RUN_AS_ROOT", "1");
  const ScopedVariable other("MY_OWN", "kept");
  Tree tree;
  launch::Start start;
  start.argv = {"/usr/bin/env"};
  start.environment = {{"ADDED", "1"}, {"ADDED", "2"}, {"SLURM_BACK", "kept"}};
  const auto attempt = tree.start(std::move(start));
  const std::string text = "\n" + tree.exited(attempt).out.head;
  const auto has = [&](const std::string& line) {
    return text.find("\n" + line) != std::string::npos;
  };
  CHECK_FALSE(has("OMPI_COMM"));
  CHECK_FALSE(has("PMI_"));
  CHECK_FALSE(has("SLURM_JOB_ID"));
  CHECK(has("SLURM_BACK=kept\n"));
  CHECK(has("SLUICE_BATCH_ID=4711\n"));
  CHECK(has("OMPI_ALLOW_RUN_AS_ROOT=1\n"));
  CHECK(has("MY_OWN=kept\n"));
  CHECK(has("ADDED=2\n"));
  const std::string mark = std::to_string(tree.guard()) + "-" +
                           std::to_string(read_stat(tree.guard()).start_time) + "." +
                           std::to_string(attempt.value);
  CHECK(has("SLUICE_ATTEMPT=" + mark + "\n"));
}

TEST_CASE("launcher: an attempt gets back the launchers' variables that it asks for") {
  const ScopedVariable job("SLURM_JOB_ID", "4711");
  const ScopedVariable tasks("SLURM_NTASKS", "2");
  const ScopedVariable pmi("PMI_SIZE", "2");
  const ScopedVariable world("OMPI_COMM_WORLD_SIZE_X", "2");
  Tree tree;
  launch::Start start;
  start.argv = {"/usr/bin/env"};
  start.environment = {{"SLURM_NTASKS", "1"}};
  start.keep_environment = {"SLURM_*", "PMI_SIZE", "OMPI_COMM"};
  const std::string text = "\n" + tree.exited(tree.start(std::move(start))).out.head;
  const auto has = [&](const std::string& line) {
    return text.find("\n" + line) != std::string::npos;
  };
  CHECK(has("SLURM_JOB_ID=4711\n"));
  CHECK(has("SLURM_NTASKS=1\n"));  // the attempt's own counts
  CHECK(has("PMI_SIZE=2\n"));
  CHECK_FALSE(has("OMPI_COMM"));  // a name is not a beginning of names
}

TEST_CASE("launcher: stdout becomes the file that was named, made anew") {
  Tree tree;
  std::ofstream(tree.folder / "output") << "an older and longer text";
  launch::Start start;
  start.argv = {"/bin/sh", "-c", "echo text; echo err >&2"};
  start.stdout_path = (tree.folder / "output").string();
  const launch::Exited exited = tree.exited(tree.start(std::move(start)));
  CHECK(exited.out.bytes == 0);
  CHECK(exited.err.head == "err\n");
  std::ifstream written(tree.folder / "output");
  CHECK(std::string(std::istreambuf_iterator<char>(written), {}) == "text\n");
  launch::Start bad;
  bad.argv = {"/bin/true"};
  bad.stdout_path = "/no/such/folder/x";
  CHECK(tree.exited(tree.start(std::move(bad))).start_error ==
        "cannot make its stdout '/no/such/folder/x': No such file or directory");
}

TEST_CASE("launcher: names of launchers' variables are known by their prefix") {
  for (const char* name :
       {"OMPI_MCA_btl", "PMIX_RANK", "PMI_FD", "PMI2_X", "SLURM_NTASKS", "HYDRA_X",
        "HYDI_CONTROL_FD", "MPIEXEC_X", "PRTE_X", "SLURMD_NODENAME"}) {
    CHECK(is_launcher_variable(name));
  }
  for (const char* name : {"PATH", "OMP_NUM_THREADS", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "MPICC",
                           "UCX_TLS", "SLUICE_X", "HDF5_PLUGIN_PATH"}) {
    CHECK_FALSE(is_launcher_variable(name));
  }
}

TEST_CASE("launcher: the processors are those that were asked for") {
  Tree tree;
  cpu_set_t allowed;
  REQUIRE(::sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  for (int cpu = 0, tried = 0; tried < 2 && cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    ++tried;
    launch::Start start;
    start.argv = {"/bin/grep", "Cpus_allowed_list", "/proc/self/status"};
    start.cpus = {cpu};
    CHECK(tree.exited(tree.start(std::move(start))).out.head ==
          "Cpus_allowed_list:\t" + std::to_string(cpu) + "\n");
  }
}

TEST_CASE("launcher: a child starts clean: descriptors, limits, signals, session") {
  rlimit files{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &files) == 0);
  const int leaked = ::open("/dev/null", O_RDONLY);  // as a shell's `9>lock` would be
  ::signal(SIGHUP, SIG_IGN);                         // as nohup does
  Tree tree;
  ::signal(SIGHUP, SIG_DFL);
  ::close(leaked);
  const launch::Exited exited = tree.run_shell(
      "echo /proc/self/fd/*; ulimit -Sn; grep -E 'SigBlk|SigIgn' /proc/self/status;"
      "ps -o sid= -p $$ | tr -d ' '; echo $$");
  std::istringstream lines(exited.out.head);
  std::string descriptors;
  std::getline(lines, descriptors);
  CHECK(descriptors == "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3");
  std::string limit;
  std::string word;
  std::string blocked;
  std::string ignored;
  std::string session;
  std::string pid;
  lines >> limit >> word >> blocked >> word >> ignored >> session >> pid;
  CHECK(limit == std::to_string(files.rlim_cur));
  CHECK(blocked == "0000000000000000");
  CHECK(ignored == "0000000000000000");
  CHECK(session == pid);
}

TEST_CASE("launcher: long output is kept in a file, and its last lines besides") {
  Tree tree;
  const launch::Exited exited =
      tree.run_shell("for ((i = 0; i < 20000; ++i)); do echo line $i; done");
  CHECK(exited.out.head == "");
  REQUIRE(exited.out.path != "");
  const std::string text = content_of(exited.out.path);
  CHECK(static_cast<int64_t>(text.size()) == exited.out.bytes);
  CHECK(exited.out.dropped_bytes == 0);
  CHECK(text.starts_with("line 0\nline 1\n"));
  CHECK(text.ends_with("line 19999\n"));
  CHECK(exited.out.tail.size() <= 2048);
  CHECK(exited.out.tail.size() > 2000);
  CHECK(exited.out.tail.starts_with("line "));
  CHECK(exited.out.tail.ends_with("line 19999\n"));
}

TEST_CASE("launcher: of 200 MB the first and last 5 MiB are kept, and memory does not grow") {
  Tree tree;
  CHECK(tree.run_shell("true").exit_code == 0);
  const int64_t resident_before = resident_bytes(tree.launcher());
  const launch::Exited exited =
      tree.run_shell("echo first; dd if=/dev/zero bs=1M count=200 status=none; echo last");
  constexpr int64_t kBytes = (200LL << 20U) + 11;
  CHECK(exited.exit_code == 0);
  CHECK(exited.out.bytes == kBytes);
  CHECK(exited.out.dropped_bytes == kBytes - kStreamKeptBytes);
  CHECK(exited.out.tail == std::string(2048 - 5, '\0') + "last\n");
  const std::string text = content_of(exited.out.path);
  const std::string gap = "\n[sluice: " + std::to_string(exited.out.dropped_bytes) +
                          " bytes are not kept here, between the first and the last 5 MiB]\n";
  CHECK(text.size() == static_cast<size_t>(kStreamKeptBytes) + gap.size());
  CHECK(text.starts_with("first\n"));
  CHECK(text.substr(static_cast<size_t>(kStreamKeptBytes / 2), gap.size()) == gap);
  CHECK(text.ends_with(std::string(1000, '\0') + "last\n"));
  CHECK(resident_bytes(tree.launcher()) < resident_before + kStreamKeptBytes / 2);
}

TEST_CASE("launcher: output that has no place is cut, not lost and not fatal") {
  Tree tree;
  std::filesystem::create_directory(tree.folder / "4294967297.out");  // of attempt 1 of epoch 1
  const launch::Exited exited =
      tree.run_shell("head -c 100000 /dev/zero | tr '\\0' x; echo; echo end");
  CHECK(exited.out.path == "");
  CHECK(exited.out.bytes == 100005);
  CHECK(exited.out.head == std::string(static_cast<size_t>(kInlineStreamBytes), 'x'));
  CHECK(exited.out.dropped_bytes == 100005 - kInlineStreamBytes);
  CHECK(exited.out.tail == "end\n");
}

TEST_CASE("launcher: SIGTERM reaches the whole process group, then the exit is reported") {
  Tree tree;
  const auto attempt =
      tree.start_shell("trap 'echo asked; exit 5' TERM; echo $$ > ready; sleep 600 & wait");
  REQUIRE(wait_until([&] { return content_of(tree.folder / "ready") != ""; }));
  tree.send(launch::Signal{attempt, false});
  const launch::Exited exited = tree.exited(attempt);
  CHECK(exited.exit_code == 5);
  CHECK(exited.out.head == "asked\n");
}

TEST_CASE("launcher: who ignores SIGTERM dies of SIGKILL, with all of its processes") {
  Tree tree;
  const auto attempt = tree.start_shell(
      "trap '' TERM; setsid sleep 600 & sleep 600 & echo $! > ready; while :; do wait; done");
  REQUIRE(wait_until([&] { return content_of(tree.folder / "ready") != ""; }));
  const pid_t shell = tree.started(attempt);
  REQUIRE(wait_until([&] { return children_of(shell).size() == 2; }));
  const std::vector<pid_t> children = children_of(shell);
  tree.send(launch::Signal{attempt, false});
  tree.send(launch::Signal{attempt, true});
  CHECK(tree.exited(attempt).signal == SIGKILL);
  for (const pid_t child : children) CHECK_FALSE(is_alive(child));
}

TEST_CASE("launcher: a daemon does not outlive its attempt") {
  Tree tree;
  SUBCASE("in the background, holding the output") {
    const launch::Exited exited = tree.run_shell("sleep 600 & echo $!");
    CHECK(exited.exit_code == 0);
    CHECK(exited.leftover_killed == 1);
    CHECK_FALSE(is_alive(std::stoi(exited.out.head)));
  }
  SUBCASE("after setsid and a double fork") {
    const launch::Exited exited = tree.run_shell(
        "(setsid bash -c 'echo $$ > pid; sleep 600 & wait' > /dev/null 2>&1 &);"
        "while [ ! -s pid ]; do :; done");
    CHECK(exited.leftover_killed >= 1);
    CHECK_FALSE(is_alive(std::stoi(content_of(tree.folder / "pid"))));
    CHECK(wait_until([&] { return children_of(tree.launcher()).size() == 1; }));  // the rank
  }
  SUBCASE("with an empty environment too") {
    const launch::Exited exited = tree.run_shell(
        "(env -i setsid /bin/bash -c 'echo $$ > pid; exec sleep 600' > /dev/null 2>&1 &);"
        "while [ ! -s pid ]; do :; done");
    CHECK(exited.exit_code == 0);
    const pid_t daemon = std::stoi(content_of(tree.folder / "pid"));
    CHECK(wait_until([&] { return !is_alive(daemon); }));
  }
}

TEST_CASE("launcher: a daemon of one attempt lives on while another one ends") {
  Tree tree;
  const auto owner = tree.start_shell(
      "(setsid bash -c 'echo $$ > pid; exec sleep 600' &); while [ ! -e go ]; do sleep 0.01; done");
  REQUIRE(wait_until([&] { return content_of(tree.folder / "pid") != ""; }));
  const pid_t daemon = std::stoi(content_of(tree.folder / "pid"));
  REQUIRE(wait_until([&] { return read_stat(daemon).parent == tree.launcher(); }));
  CHECK(tree.run_shell("true").leftover_killed == 0);
  CHECK(is_alive(daemon));
  std::ofstream(tree.folder / "go") << "go";
  CHECK(tree.exited(owner).leftover_killed == 1);
  CHECK_FALSE(is_alive(daemon));
}

TEST_CASE("launcher: many attempts at a time and one after the other") {
  Tree tree;
  std::vector<scheduler::AttemptId> attempts;
  for (int i = 0; i < 100; ++i) attempts.push_back(tree.start_shell("exit " + std::to_string(i)));
  for (int i = 0; i < 100; ++i) {
    CHECK(tree.exited(attempts[static_cast<size_t>(i)]).exit_code == i);
  }
  CHECK(children_of(tree.launcher()).size() == 1);  // the rank; no checker was needed
}

TEST_CASE("launcher: attempts of every kind leave no descriptor open, in guard and launcher") {
  Tree tree;
  const auto one_of_each = [&tree] {
    CHECK(tree.run_shell("echo short").exit_code == 0);
    CHECK(tree.run_shell("head -c 100000 /dev/zero; head -c 100000 /dev/zero >&2").exit_code == 0);
    CHECK(tree.run_shell("sleep 600 & exit 3").leftover_killed == 1);
    launch::Start redirected;
    redirected.argv = {"/bin/cat"};
    redirected.stdin_path = "/dev/null";
    redirected.stdout_path = (tree.folder / "redirected").string();
    CHECK(tree.exited(tree.start(redirected)).exit_code == 0);
    redirected.stdout_path = "/no/such/folder/x";
    CHECK(tree.exited(tree.start(redirected)).start_error != "");
    launch::Start missing;
    missing.argv = {"no-such-program-anywhere"};
    CHECK(tree.exited(tree.start(missing)).start_error != "");
    const auto hung = tree.start_shell("exec sleep 600");
    CHECK(tree.started(hung) > 0);
    tree.send(launch::Signal{hung, true});
    CHECK(tree.exited(hung).signal == SIGKILL);
    tree.ask_checker("exit");
    CHECK(tree.checker_reply().find("crashed") != std::string::npos);
  };
  const auto descriptors = [](pid_t pid) {
    const std::filesystem::directory_iterator held("/proc/" + std::to_string(pid) + "/fd");
    return std::distance(begin(held), end(held));
  };
  one_of_each();
  CHECK(tree.run_shell("true").exit_code == 0);
  const auto guard_before = descriptors(tree.guard());
  const auto launcher_before = descriptors(tree.launcher());
  for (int round = 0; round < 20; ++round) one_of_each();
  CHECK(tree.run_shell("true").exit_code == 0);
  CHECK(wait_until([&] { return descriptors(tree.launcher()) <= launcher_before; }));
  CHECK(descriptors(tree.guard()) == guard_before);
}

TEST_CASE("launcher: when the machine has no room, a start is tried again") {
  Tree tree;
  CHECK(tree.run_shell("true").exit_code == 0);
  // Room for one more attempt at a time: a few descriptors beside those that it holds now.
  rlimit before{};
  REQUIRE(::prlimit(tree.launcher(), RLIMIT_NOFILE, nullptr, &before) == 0);
  const auto held =
      std::filesystem::directory_iterator("/proc/" + std::to_string(tree.launcher()) + "/fd");
  const auto count = static_cast<rlim_t>(std::distance(begin(held), end(held)));
  const rlimit narrow{count + 4, before.rlim_max};
  REQUIRE(::prlimit(tree.launcher(), RLIMIT_NOFILE, &narrow, nullptr) == 0);
  const auto first = tree.start_shell("while [ ! -e go ]; do sleep 0.01; done");
  CHECK(tree.started(first) > 0);
  const auto second = tree.start_shell("exit 9");
  const auto third = tree.start_shell("exit 10");
  tree.send(launch::Signal{third, true});
  CHECK(tree.exited(third).start_error == "stopped before the machine had room to start it");
  std::ofstream(tree.folder / "go") << "go";
  CHECK(tree.exited(first).exit_code == 0);
  const launch::Exited late = tree.exited(second);
  CHECK(late.start_error == "");
  CHECK(late.exit_code == 9);
}

TEST_CASE("launcher: the rank leaves in order, its code is the guard's, the store is removed") {
  const ScopedVariable code("FAKE_RANK_EXIT", "4");
  Tree tree;
  CHECK(tree.store_exists());
  CHECK(tree.run_shell("true").exit_code == 0);
  CHECK(tree.leave(true) == 4);
  CHECK_FALSE(tree.store_exists());
  CHECK_FALSE(std::filesystem::exists(tree.lost_file()));
}

}  // namespace sluice::engine::test
