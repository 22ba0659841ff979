// For fuzz targets: what must hold. Stops in a way that libFuzzer notices, so that it keeps the
// input. Any thread. For tests only.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace sluice::test {

inline void must(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "this must hold: %s\n", what);
    std::abort();
  }
}

}  // namespace sluice::test
