// Real processes under a real guard and launcher; the rank is tests/engine/programs/fake_rank.cpp.
#include "engine/launcher.h"

#include "tests/engine/process_tree_harness.h"

namespace sluice::engine::test {
namespace {

using sluice::test::ScopedVariable;

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
