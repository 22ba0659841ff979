// Loops over seeds for simulations: SLUICE_SEED=<n> repeats one, SLUICE_SEEDS=<n> sets how many.
// The seed is printed with every failure. For tests only.
#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <string>

namespace sluice::tests {

inline uint64_t number_from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoull(text);
}

inline constexpr uint64_t kSeeds = 20;

template <class Body>
void for_each_seed(const Body& body, uint64_t seeds = kSeeds) {
  const uint64_t only = number_from_environment("SLUICE_SEED", 0);
  const uint64_t first = only == 0 ? 1 : only;
  const uint64_t count = only == 0 ? number_from_environment("SLUICE_SEEDS", seeds) : 1;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    INFO("repeat with SLUICE_SEED=" << seed);
    body(seed);
  }
}

}  // namespace sluice::tests
