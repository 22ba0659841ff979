// `sluice hw`: what a run may use of this machine, and why it is not all of it.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "engine/cli.h"
#include "engine/topology.h"
#include "engine/verbs.h"

namespace sluice::engine {

namespace {

constexpr int kEnvironmentUnusable = 3;
constexpr int kJsonVersion = 1;
constexpr double kGibibyte = 1024.0 * 1024.0 * 1024.0;

std::vector<int32_t> usable_pus(const Node& node) {
  std::vector<int32_t> pus;
  for (const Core& core : node.cores) pus.insert(pus.end(), core.pus.begin(), core.pus.end());
  std::sort(pus.begin(), pus.end());
  return pus;
}

std::vector<int32_t> usable_of(const NumaNode& numa, const std::vector<int32_t>& usable) {
  std::vector<int32_t> out;
  std::set_intersection(numa.pus.begin(), numa.pus.end(), usable.begin(), usable.end(),
                        std::back_inserter(out));
  return out;
}

std::string gibibytes(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / kGibibyte);
  return text;
}

const char* memory_limit(const Node& node) {
  return node.memory_bytes < node.memory_machine_bytes ? "cgroup" : "machine";
}

// "0-3,8" of ascending numbers.
std::string ranges(const std::vector<int32_t>& numbers) {
  std::string out;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) ++end;
    out += (out.empty() ? "" : ",") + std::to_string(numbers[i]);
    if (end > i) out += "-" + std::to_string(numbers[end]);
    i = end + 1;
  }
  return out.empty() ? "none" : out;
}

void print(const Node& node) {
  const std::vector<int32_t> usable = usable_pus(node);
  std::cout << "host:     " << node.host << "\n"
            << "cores:    " << node.cores.size() << " of " << node.cores_machine << " ("
            << usable.size() << " of " << node.pus_machine << " hardware threads)\n";
  if (!node.narrowed.empty()) std::cout << "          " << node.narrowed << "\n";
  std::cout << "memory:   " << gibibytes(node.memory_bytes);
  if (node.memory_bytes < node.memory_machine_bytes) {
    std::cout << " of " << gibibytes(node.memory_machine_bytes)
              << " (the limit of the batch job's or container's cgroup)";
  }
  std::cout << "\n";
  for (const NumaNode& numa : node.numa) {
    std::cout << "NUMA " << numa.index << ":   " << gibibytes(numa.memory_bytes)
              << ", hardware threads " << ranges(usable_of(numa, usable)) << " of "
              << ranges(numa.pus) << "\n";
  }
}

nlohmann::ordered_json to_json(const Node& node) {
  const std::vector<int32_t> usable = usable_pus(node);
  nlohmann::ordered_json json;
  json["version"] = kJsonVersion;
  json["host"] = node.host;
  json["cores"] = node.cores.size();
  json["cores_machine"] = node.cores_machine;
  json["threads"] = usable;
  json["threads_machine"] = node.pus_machine;
  json["narrowed"] = node.narrowed;
  json["memory_bytes"] = node.memory_bytes;
  json["memory_machine_bytes"] = node.memory_machine_bytes;
  json["memory_limit"] = memory_limit(node);
  json["numa"] = nlohmann::ordered_json::array();
  for (const NumaNode& numa : node.numa) {
    json["numa"].push_back({{"node", numa.index},
                            {"memory_bytes", numa.memory_bytes},
                            {"threads", usable_of(numa, usable)}});
  }
  return json;
}

}  // namespace

int show_hardware(const Options& options) {
  const Expected<Node> node = read_node();
  if (!node) {
    std::cerr << "sluice: error: " << node.error().message << "\n";
    return kEnvironmentUnusable;
  }
  if (options.json) {
    std::cout << to_json(*node).dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
              << "\n";
  } else {
    print(*node);
  }
  return 0;
}

}  // namespace sluice::engine
