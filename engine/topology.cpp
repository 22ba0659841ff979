#include "engine/topology.h"

#include <hwloc.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <type_traits>

#include "engine/descendants.h"
#include "io/store.h"

namespace sluice::engine {
namespace {

namespace fs = std::filesystem;

using Topology =
    std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, decltype(&hwloc_topology_destroy)>;

Expected<Topology> load_topology(const std::string& synthetic) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return Error{"hwloc cannot begin", errno};
  Topology topology(raw, &hwloc_topology_destroy);
  if (!synthetic.empty() && hwloc_topology_set_synthetic(raw, synthetic.c_str()) != 0) {
    return Error{"hwloc does not understand the machine '" + synthetic + "'", errno};
  }
  if (hwloc_topology_load(raw) != 0) {
    return Error{std::string("hwloc cannot read this machine: ") + std::strerror(errno) +
                     "; is /sys mounted? (HWLOC_XMLFILE may name a description instead)",
                 errno};
  }
  return topology;
}

bool contains(const std::vector<int32_t>& sorted, int32_t value) {
  return std::binary_search(sorted.begin(), sorted.end(), value);
}

// The PUs below `object` that may be used, ascending.
std::vector<int32_t> usable_pus(hwloc_topology_t topology, hwloc_obj_t object,
                                const std::vector<int32_t>& mask) {
  std::vector<int32_t> pus;
  hwloc_obj_t pu = nullptr;
  while ((pu = hwloc_get_next_obj_inside_cpuset_by_type(topology, object->cpuset, HWLOC_OBJ_PU,
                                                        pu)) != nullptr) {
    const auto index = static_cast<int32_t>(pu->os_index);
    if (contains(mask, index)) pus.push_back(index);
  }
  std::sort(pus.begin(), pus.end());
  return pus;
}

// In hwloc's logical order, so that neighbours share caches and memory.
std::vector<Core> usable_cores(hwloc_topology_t topology, const std::vector<int32_t>& mask) {
  // Some virtual machines describe no cores.
  const hwloc_obj_type_t type =
      hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
  std::vector<Core> cores;
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr) {
    Core core{usable_pus(topology, object, mask)};
    if (!core.pus.empty()) cores.push_back(std::move(core));
  }
  return cores;
}

int32_t weight(hwloc_const_cpuset_t set) {
  return std::max(0, static_cast<int32_t>(hwloc_bitmap_weight(set)));
}

std::string why_narrowed(int32_t machine, int32_t in_cpuset, int32_t usable, bool mpirun_mask) {
  std::string text;
  if (in_cpuset < machine) {
    text = "the cpuset of the batch job or container holds " + std::to_string(in_cpuset) + " of " +
           std::to_string(machine) + " hardware threads (ask the batch system for more)";
  }
  if (usable < in_cpuset) {
    if (!text.empty()) text += "; ";
    text += mpirun_mask ? "mpirun itself was started on " : "sluice was started on ";
    text += std::to_string(usable) + " of " + std::to_string(in_cpuset) +
            " hardware threads (by taskset, numactl or srun: use srun --cpu-bind=none for all)";
  }
  return text;
}

std::vector<NumaNode> numa_nodes(hwloc_topology_t topology) {
  std::vector<NumaNode> out;
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, object)) != nullptr) {
    NumaNode node;
    node.index = static_cast<int32_t>(object->os_index);
    node.memory_bytes = static_cast<int64_t>(object->attr->numanode.local_memory);
    for (int pu = hwloc_bitmap_first(object->complete_cpuset); pu >= 0;
         pu = hwloc_bitmap_next(object->complete_cpuset, pu)) {
      node.pus.push_back(pu);
    }
    out.push_back(std::move(node));
  }
  return out;
}

int64_t total_memory_bytes(const fs::path& root) {
  std::ifstream file(root / "proc/meminfo");
  for (std::string name; file >> name;) {
    int64_t kibibytes = 0;
    if (name == "MemTotal:" && file >> kibibytes) return kibibytes * 1024;
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::numeric_limits<int64_t>::max();
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string node_key(const fs::path& root) {
  std::string boot_id;
  std::ifstream(root / "proc/sys/kernel/random/boot_id") >> boot_id;
  struct stat memory {};
  if (::stat((root / "dev/shm").c_str(), &memory) != 0) return boot_id + "." + host_name();
  return boot_id + "." + std::to_string(memory.st_dev) + "." + std::to_string(memory.st_ino);
}

// PUs that the process may run on, ascending; none if there is no such process.
std::vector<int32_t> affinity_of(pid_t pid) {
  constexpr size_t kPusMax = 1U << 16U;  // more than any kernel is built for
  const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
      CPU_ALLOC(kPusMax), [](cpu_set_t* allocated) { CPU_FREE(allocated); });
  const size_t size = CPU_ALLOC_SIZE(kPusMax);
  std::vector<int32_t> pus;
  if (::sched_getaffinity(pid, size, set.get()) != 0) return pus;
  for (size_t i = 0; i < kPusMax; ++i) {
    if (CPU_ISSET_S(i, size, set.get())) pus.push_back(static_cast<int32_t>(i));
  }
  return pus;
}

}  // namespace

NodeSources system_sources() {
  NodeSources sources;
  sources.own_mask = affinity_of(0);
  const char* bound = std::getenv("OMPI_MCA_orte_bound_at_launch");
  if (bound != nullptr && std::strcmp(bound, "1") == 0) {
    const std::vector<pid_t> ancestors = ancestors_up_to_mpirun(::getpid());
    if (!ancestors.empty()) sources.mpirun_mask = affinity_of(ancestors.back());
  }
  return sources;
}

std::string hwloc_version() {
  const unsigned version = hwloc_get_api_version();
  return std::to_string(version >> 16U) + "." + std::to_string((version >> 8U) & 0xFFU) + "." +
         std::to_string(version & 0xFFU);
}

Expected<Node> read_node() { return read_node(system_sources()); }

Expected<Node> read_node(const NodeSources& sources) {
  Expected<Topology> loaded = load_topology(sources.synthetic);
  if (!loaded) return loaded.error();
  hwloc_topology_t topology = loaded.value().get();
  const bool widened = !sources.mpirun_mask.empty();
  Node node;
  node.host = host_name();
  node.node_key = node_key(sources.root);
  node.cores = usable_cores(topology, widened ? sources.mpirun_mask : sources.own_mask);
  if (node.cores.empty()) {
    return Error{"no hardware thread is usable here: the CPU mask of this process and the cpuset " +
                 std::string("of the batch job have none in common; start it without taskset or ") +
                 "--cpu-bind"};
  }
  node.memory_machine_bytes = total_memory_bytes(sources.root);
  node.memory_bytes =
      std::min(node.memory_machine_bytes, io::cgroup_memory_limit_bytes(sources.root));
  node.cores_machine = std::max(hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE),
                                static_cast<int>(node.cores.size()));
  node.numa = numa_nodes(topology);
  node.pus_machine = weight(hwloc_topology_get_complete_cpuset(topology));
  int32_t usable = 0;
  for (const Core& core : node.cores) usable += static_cast<int32_t>(core.pus.size());
  node.narrowed = why_narrowed(
      node.pus_machine, weight(hwloc_topology_get_topology_cpuset(topology)), usable, widened);
  return node;
}

std::vector<Core> share_of(const Node& node, int local_rank, int local_count) {
  SLUICE_ASSERT(local_rank >= 0 && local_rank < local_count, local_rank, local_count);
  const auto rank = static_cast<size_t>(local_rank);
  const auto count = static_cast<size_t>(local_count);
  const size_t each = node.cores.size() / count;
  const size_t more = node.cores.size() % count;
  const size_t begin = rank * each + std::min(rank, more);
  const size_t end = begin + each + (rank < more ? 1 : 0);
  const auto place = [&](size_t i) { return node.cores.begin() + static_cast<std::ptrdiff_t>(i); };
  return {place(begin), place(end)};
}

}  // namespace sluice::engine
