// Named fault points: places at which a test kills this process, so that narrow windows are hit on
// purpose and not by luck.
//
//   SLUICE_FAULT=name[:n][@mpi_rank]      kill at the n-th hit (default 1) of that point, on that
//                                         rank only (default: on any)
//   SLUICE_FAULT=hang=name[:n][@mpi_rank] the thread that comes there waits for ever
//
// Unarmed, which is always outside tests, a point costs one branch. The variable is read once, at
// the first point. Armed and hit, the process gets SIGKILL: nothing is flushed, no destructor runs.
// Any thread. Test: tests/io/fault_test.cpp
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::io {

struct FaultPlan {
  std::string name;
  uint64_t hit = 1;   // from 1
  int mpi_rank = -1;  // -1: any
  bool hangs = false;
};
// nullopt for "" and for text that is not of the form above.
[[nodiscard]] std::optional<FaultPlan> parse_fault(std::string_view text);

// Which rank this process is: until it is set, a plan that names a rank does not fire.
void set_fault_mpi_rank(int mpi_rank);

namespace detail {
enum class FaultState : uint8_t { kUnread, kUnarmed, kArmed };
extern std::atomic<FaultState> fault_state;
void fault_point_hit(const char* name);
}  // namespace detail

}  // namespace sluice::io

#define SLUICE_FAULT_POINT(name)                                             \
  do {                                                                       \
    if (::sluice::io::detail::fault_state.load(std::memory_order_relaxed) != \
        ::sluice::io::detail::FaultState::kUnarmed) [[unlikely]] {           \
      ::sluice::io::detail::fault_point_hit(name);                           \
    }                                                                        \
  } while (false)
