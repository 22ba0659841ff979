#include "io/fault.h"

#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace sluice::io {

namespace {

template <class T>
bool parse_number(std::string_view text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size();
}

std::atomic<int> fault_mpi_rank{-1};
std::mutex mutex;
FaultPlan plan;     // guarded by mutex
uint64_t hits = 0;  // of the plan's point; guarded by mutex

void read_environment() {
  const char* text = std::getenv("SLUICE_FAULT");
  if (text == nullptr || *text == '\0') {
    detail::fault_state = detail::FaultState::kUnarmed;
    return;
  }
  const auto parsed = parse_fault(text);
  if (!parsed) {
    std::fprintf(stderr,
                 "sluice: error: SLUICE_FAULT is '%s'; expected [hang=]name[:n][@mpi_rank] with n "
                 "from 1; correct it or unset it\n",
                 text);
    std::_Exit(2);
  }
  plan = *parsed;
  detail::fault_state = detail::FaultState::kArmed;
}

}  // namespace

namespace detail {

std::atomic<FaultState> fault_state{FaultState::kUnread};

void fault_point_hit(const char* name) {
  std::unique_lock lock(mutex);
  if (fault_state == FaultState::kUnread) read_environment();
  if (fault_state == FaultState::kUnarmed || plan.name != name) return;
  if (plan.mpi_rank >= 0 && plan.mpi_rank != fault_mpi_rank) return;
  if (++hits != plan.hit) return;
  lock.unlock();
  while (plan.hangs) ::pause();
  std::raise(SIGKILL);
}

}  // namespace detail

void set_fault_mpi_rank(int mpi_rank) { fault_mpi_rank = mpi_rank; }

std::optional<FaultPlan> parse_fault(std::string_view text) {
  FaultPlan result;
  constexpr std::string_view kHang = "hang=";
  if (text.starts_with(kHang)) {
    result.hangs = true;
    text.remove_prefix(kHang.size());
  }
  if (const size_t at = text.rfind('@'); at != std::string_view::npos) {
    if (!parse_number(text.substr(at + 1), result.mpi_rank) || result.mpi_rank < 0) return {};
    text = text.substr(0, at);
  }
  if (const size_t colon = text.rfind(':'); colon != std::string_view::npos) {
    if (!parse_number(text.substr(colon + 1), result.hit) || result.hit == 0) return {};
    text = text.substr(0, colon);
  }
  if (text.empty()) return {};
  result.name = text;
  return result;
}

}  // namespace sluice::io
