#include "scheduler/check.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace sluice {

namespace {
std::atomic<int> assert_mpi_rank{-1};
}

void set_assert_mpi_rank(int mpi_rank) { assert_mpi_rank = mpi_rank; }

void assert_failed(const char* expression, const char* file, int line, const std::string& values) {
  constexpr int kOurBug = 70;
  std::fprintf(stderr,
               "sluice: bug in sluice itself: %s:%d: '%s' does not hold%s%s (mpi_rank %d); please "
               "report it\n",
               file, line, expression, values.empty() ? "" : "; values:", values.c_str(),
               assert_mpi_rank.load());
  std::fflush(stderr);
  std::_Exit(kOurBug);
}

}  // namespace sluice
