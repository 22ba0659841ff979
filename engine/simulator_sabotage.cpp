#include "engine/simulator_sabotage.h"

#include <algorithm>

namespace sluice::engine {

using scheduler::Instant;
using scheduler::WorkerId;

bool Sabotage::is_full(FullTier::Step step, WorkerId worker, Instant at) const {
  return std::any_of(full.begin(), full.end(), [&](const FullTier& tier) {
    const bool there = !tier.worker.valid() || tier.worker == worker;
    return tier.step == step && there && tier.window.holds(at);
  });
}

Instant Sabotage::has_room(FullTier::Step step, Instant at) const {
  for (const FullTier& tier : full) {
    if (tier.step == step && tier.window.holds(at)) return tier.window.until;
  }
  return at;
}

}  // namespace sluice::engine
