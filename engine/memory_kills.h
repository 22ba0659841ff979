// How often the kernel has killed a process on this node for want of memory, of a control group or
// of the whole node: the `oom_kill` counter of /proc/vmstat (Linux 4.13). An attempt that fails
// while it rises has failed for want of memory, whatever status a shell or a runtime made of the
// kill. -1 where the kernel does not count. Any thread. Test: tests/engine/memory_kills_test.cpp
#pragma once

#include <cstdint>
#include <filesystem>

namespace sluice::engine {

[[nodiscard]] int64_t memory_kills(const std::filesystem::path& vmstat = "/proc/vmstat");

}  // namespace sluice::engine
