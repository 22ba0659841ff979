#include "engine/topology.h"

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "tests/support/temporary_folder.h"

namespace sluice::engine {
namespace {

using Masks = std::vector<std::vector<int32_t>>;

std::vector<int32_t> all_pus(int32_t count) {
  std::vector<int32_t> pus(static_cast<size_t>(count));
  std::iota(pus.begin(), pus.end(), 0);
  return pus;
}

Masks masks_of(const std::vector<Core>& cores) {
  Masks masks;
  for (const Core& core : cores) masks.push_back(core.pus);
  return masks;
}

// Two sockets of two cores of two hardware threads: PUs 0-7, siblings are neighbours.
NodeSources small_machine() {
  NodeSources sources;
  sources.synthetic = "pack:2 core:2 pu:2";
  sources.own_mask = all_pus(8);
  return sources;
}

Node node_of_cores(int32_t count) {
  Node node;
  for (int32_t i = 0; i < count; ++i) node.cores.push_back({{i}});
  return node;
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << text;
}

// A root with 64 GiB of memory in which this process is in the group /job/step of each hierarchy.
void make_root(const std::filesystem::path& root, const std::string& cgroup_lines) {
  write_file(root / "proc/meminfo", "MemTotal:       67108864 kB\nMemFree:  100 kB\n");
  write_file(root / "proc/sys/kernel/random/boot_id", "1234-5678\n");
  write_file(root / "proc/self/cgroup", cgroup_lines);
  std::filesystem::create_directories(root / "dev/shm");
}

}  // namespace

TEST_CASE("topology: hardware threads of a core are one core") {
  const Node node = read_node(small_machine()).value();
  CHECK(masks_of(node.cores) == Masks{{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  CHECK(node.pus_machine == 8);
  CHECK(node.narrowed == "");
}

TEST_CASE("topology: siblings are grouped by core, not by number") {
  NodeSources sources = small_machine();
  // Numbered as Linux does it: the second threads come after all the first ones.
  sources.synthetic = "core:4 pu:2(indexes=0,4,1,5,2,6,3,7)";
  CHECK(masks_of(read_node(sources).value().cores) == Masks{{0, 4}, {1, 5}, {2, 6}, {3, 7}});
}

TEST_CASE("topology: an inherited narrow mask is kept and said") {
  NodeSources sources = small_machine();
  sources.own_mask = {1, 2, 3, 6};
  const Node node = read_node(sources).value();
  CHECK(masks_of(node.cores) == Masks{{1}, {2, 3}, {6}});
  CHECK(node.pus_machine == 8);
  CHECK(node.narrowed ==
        "sluice was started on 4 of 8 hardware threads (by taskset, numactl or srun: use srun "
        "--cpu-bind=none for all)");
}

TEST_CASE("topology: a mask that mpirun made is widened to mpirun's own, never past it") {
  NodeSources sources = small_machine();
  sources.own_mask = {0, 1};
  sources.mpirun_mask = all_pus(8);
  CHECK(read_node(sources).value().cores.size() == 4);
  CHECK(read_node(sources).value().narrowed == "");
  sources.mpirun_mask = {0, 1, 2, 3};  // taskset -c 0-3 mpirun …
  const Node node = read_node(sources).value();
  CHECK(masks_of(node.cores) == Masks{{0, 1}, {2, 3}});
  CHECK(node.narrowed.starts_with("mpirun itself was started on 4 of 8 hardware threads"));
}

TEST_CASE("topology: a mask without a usable thread is an error that says what to do") {
  NodeSources sources = small_machine();
  sources.own_mask = {64};
  const Expected<Node> node = read_node(sources);
  REQUIRE_FALSE(node.ok());
  CHECK(node.error().message.find("taskset") != std::string::npos);
}

TEST_CASE("topology: memory is the machine's, or the smallest limit of the cgroups above") {
  const sluice::test::TemporaryFolder folder;
  NodeSources sources = small_machine();
  sources.root = folder.path();
  const std::filesystem::path mounts = folder / "sys/fs/cgroup";
  SUBCASE("no limit") {
    make_root(folder.path(), "0::/job/step\n");
    write_file(mounts / "job/step/memory.max", "max\n");
    CHECK(read_node(sources).value().memory_bytes == 64LL << 30U);
  }
  SUBCASE("version 2, on a group above") {
    make_root(folder.path(), "0::/job/step\n");
    write_file(mounts / "job/step/memory.max", "max\n");
    write_file(mounts / "job/memory.max", "8589934592\n");
    CHECK(read_node(sources).value().memory_bytes == 8LL << 30U);
  }
  SUBCASE("version 1") {
    make_root(folder.path(), "5:cpuset:/\n4:memory:/job/step\n");
    write_file(mounts / "memory/job/step/memory.limit_in_bytes", "4294967296\n");
    write_file(mounts / "memory/job/memory.limit_in_bytes", "9223372036854771712\n");
    CHECK(read_node(sources).value().memory_bytes == 4LL << 30U);
  }
}

TEST_CASE("topology: people learn of the whole machine beside what is usable") {
  const sluice::test::TemporaryFolder folder;
  make_root(folder.path(), "0::/job\n");
  write_file(folder / "sys/fs/cgroup/job/memory.max", "8589934592\n");
  NodeSources sources;
  sources.synthetic = "pack:2 [numa(memory=1073741824)] core:2 pu:2";
  sources.own_mask = {1, 2, 3, 6};
  sources.root = folder.path();
  const Node node = read_node(sources).value();
  CHECK(node.cores.size() == 3);
  CHECK(node.cores_machine == 4);
  CHECK(node.memory_bytes == 8LL << 30U);
  CHECK(node.memory_machine_bytes == 64LL << 30U);
  REQUIRE(node.numa.size() == 2);
  CHECK(node.numa[1].index == 1);
  CHECK(node.numa[1].memory_bytes == 1LL << 30U);
  CHECK(node.numa[1].pus == std::vector<int32_t>{4, 5, 6, 7});
}

TEST_CASE("topology: processes of one node have one key, other boots another") {
  const sluice::test::TemporaryFolder folder;
  make_root(folder.path(), "");
  NodeSources sources = small_machine();
  sources.root = folder.path();
  const std::string key = read_node(sources).value().node_key;
  CHECK(key.starts_with("1234-5678."));
  CHECK(read_node(sources).value().node_key == key);
  write_file(folder / "proc/sys/kernel/random/boot_id", "other\n");
  CHECK(read_node(sources).value().node_key != key);
}

TEST_CASE("topology: on this machine, only the threads that this process may use") {
  // In a child, so that the mask of the tests stays as it is.
  const pid_t child = ::fork();
  if (child == 0) {
    cpu_set_t one;
    ::sched_getaffinity(0, sizeof one, &one);
    int first = 0;
    while (!CPU_ISSET(first, &one)) ++first;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    ::sched_setaffinity(0, sizeof one, &one);
    ::unsetenv("OMPI_MCA_orte_bound_at_launch");
    const Expected<Node> node = read_node();
    const bool right = node.ok() && masks_of(node.value().cores) == Masks{{first}} &&
                       node.value().memory_bytes > 0 && !node.value().host.empty();
    ::_exit(right ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("topology: every core is given to one rank of the node") {
  const Node node = node_of_cores(7);
  CHECK(masks_of(share_of(node, 0, 1)).size() == 7);
  CHECK(masks_of(share_of(node, 0, 3)) == Masks{{0}, {1}, {2}});
  CHECK(masks_of(share_of(node, 1, 3)) == Masks{{3}, {4}});
  CHECK(masks_of(share_of(node, 2, 3)) == Masks{{5}, {6}});
}

TEST_CASE("topology: surplus ranks get no core") {
  const Node node = node_of_cores(2);
  CHECK(masks_of(share_of(node, 0, 4)) == Masks{{0}});
  CHECK(masks_of(share_of(node, 1, 4)) == Masks{{1}});
  CHECK(share_of(node, 2, 4).empty());
  CHECK(share_of(node, 3, 4).empty());
}

TEST_CASE("topology: shares are disjoint and complete for all counts") {
  for (int32_t cores = 1; cores <= 9; ++cores) {
    for (int ranks = 1; ranks <= 12; ++ranks) {
      std::vector<int32_t> given;
      for (int rank = 0; rank < ranks; ++rank) {
        for (const Core& core : share_of(node_of_cores(cores), rank, ranks)) {
          given.push_back(core.pus.at(0));
        }
      }
      CHECK(given == all_pus(cores));
    }
  }
}

}  // namespace sluice::engine
