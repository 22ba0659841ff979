#include "engine/memory_kills.h"

#include <fstream>
#include <string>

namespace sluice::engine {

int64_t memory_kills(const std::filesystem::path& vmstat) {
  std::ifstream in(vmstat);
  std::string name;
  int64_t value = 0;
  while (in >> name >> value) {
    if (name == "oom_kill") return value;
  }
  return -1;
}

}  // namespace sluice::engine
