// What this worker may use of its node: cores and memory, through hwloc and the cgroups. cores =
// allowed PUs (cgroup cpuset ∩ affinity) grouped by physical core; an inherited narrow mask is kept
// unless mpirun made it (OMPI_MCA_orte_bound_at_launch): then the mask of the parent of the guard ∩
// cpuset counts (facts §10). memory = min(cgroup v1/v2 limit, host), never hwloc's figure alone.
// Called once at start, before MPI_Init; one thread. Test: tests/engine/topology_test.cpp
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "scheduler/expected.h"

namespace sluice::engine {

struct Core {
  std::vector<int32_t> pus;  // OS indexes of its allowed hardware threads, ascending
};
struct NumaNode {
  int32_t index = 0;  // of the OS
  int64_t memory_bytes = 0;
  std::vector<int32_t> pus;  // of the machine; usable or not, ascending
};
struct Node {
  std::string host;
  std::string node_key;  // equal for processes that share node memory: boot id, device and inode of
                         // /dev/shm
  std::vector<Core> cores;
  int64_t memory_bytes = 0;
  // For people: the whole machine, and what its parts are.
  int64_t memory_machine_bytes = 0;
  int32_t pus_machine = 0;
  int32_t cores_machine = 0;
  std::vector<NumaNode> numa;
  std::string narrowed;  // "" or why fewer cores are usable than the machine has, with the remedy
};

// What read_node looks at: the system's, or a test's own.
struct NodeSources {
  std::string synthetic;             // a machine in hwloc's words ("pack:2 core:4 pu:2"); "": this
  std::vector<int32_t> own_mask;     // PUs this process may run on, ascending
  std::vector<int32_t> mpirun_mask;  // PUs of mpirun, if it bound this process; else empty
  std::filesystem::path root = "/";  // of proc, sys and dev
};
[[nodiscard]] NodeSources system_sources();
[[nodiscard]] Expected<Node> read_node(const NodeSources& sources);
[[nodiscard]] Expected<Node> read_node();   // of the system's sources
[[nodiscard]] std::string hwloc_version();  // of the library in use: "2.9.0"

// This rank's share of the node's cores when `local_count` ranks of this run are on it: contiguous
// blocks, every core given once, the first ranks get one more when it is uneven, surplus ranks
// none.
[[nodiscard]] std::vector<Core> share_of(const Node& node, int local_rank, int local_count);

}  // namespace sluice::engine
