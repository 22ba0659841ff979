#include "engine/replay.h"

#include <vector>

#include "scheduler/core.h"

namespace sluice::engine {

ReplayResult replay(const io::Trace& trace, bool check) {
  using Kind = io::TraceBlock::Kind;
  ReplayResult result;
  result.complete = !trace.torn;
  scheduler::Core core(trace.graph, trace.options);
  std::vector<scheduler::Decision> decisions;
  for (const io::TraceBlock& block : trace.blocks) {
    decisions.clear();  // the digest has them
    switch (block.kind) {
      case Kind::kEvent:
        core.apply(block.now, block.event, decisions);
        ++result.events;
        if (check) core.check_invariants();
        break;
      case Kind::kSchedule:
        core.schedule(block.now, decisions);
        ++result.schedules;
        if (check) core.check_invariants();
        break;
      case Kind::kDigest:
        result.recorded_digest = block.digest;
        if (result.first_difference == 0 && core.digest() != block.digest) {
          result.first_difference = result.schedules;
        }
        break;
      case Kind::kCut:
        result.complete = false;
        break;
    }
  }
  result.digest = core.digest();
  return result;
}

Expected<ReplayResult> replay_trace(const std::filesystem::path& file, bool check) {
  const auto trace = io::read_trace(file);
  if (!trace) return trace.error();
  return replay(*trace, check);
}

}  // namespace sluice::engine
