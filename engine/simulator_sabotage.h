// What goes wrong in a simulated run beside tasks that fail: each saboteur is a small plan of its
// own, and any of them may be composed in one run. They stay within what the machines promise:
// messages are delayed and reordered between pairs and channels, never within one; clocks jump
// forward, never back; a damaged message is one that cannot be read.
//
//   NetworkCut      nothing reaches or leaves an end for a while; all of it arrives afterwards
//   FullTier        whatever is written to a tier meets a full disk for a while
//   ClockJump       a process finds that much more time has passed than it was there for
//   Pause           rank 0 stands still: it reads nothing and notes no passing of time
//   slow messages   some messages take long, and with them those behind them
//   damaged ones    some messages arrive as bytes that cannot be read
//   late reports    what a lost worker reports arrives, and arrives once more later
//
// Crashes of workers and their stalls are in WorkerPlan, the crash of rank 0 in SimulationOptions,
// damage to the run directory is done between two runs (SimulatedRunDirectory). `PlantedBug` breaks
// the engine on purpose, to see that the referee would tell. Plain values. Test: tests/sim/
#pragma once

#include <cstdint>
#include <vector>

#include "io/transport_local.h"
#include "scheduler/types.h"

namespace sluice::engine {

struct TimeWindow {
  scheduler::Instant from;
  scheduler::Instant until;
  [[nodiscard]] bool holds(scheduler::Instant at) const { return from <= at && at < until; }
};

struct FullTier {
  enum class Step : uint8_t { kStaging, kSealing, kSaving, kCommitting, kJournal };
  Step step = Step::kStaging;
  scheduler::WorkerId worker;  // none: of every worker; the last two are rank 0's
  TimeWindow window;
};

struct ClockJump {
  scheduler::WorkerId end;  // 0: rank 0
  scheduler::Instant at;
  scheduler::Duration by;
};

struct Pause {
  scheduler::Instant at;
  scheduler::Duration lasts;
};

enum class PlantedBug : uint8_t {
  kNone,
  kReportDropped,    // a worker's report of success vanishes
  kFetchFlipped,     // a fetched copy has other bytes than its source, and nobody looks
  kSaveFlipped,      // so has a saved one
  kCommitForgotten,  // a result is said to be durable, and is not
  kRecordForgotten,  // an instance is done, and the journal does not say so
  kDropForgotten,    // a worker keeps an object that it was told to drop
  kRunTwice,         // an attempt that has ended is begun once more by its worker
};
constexpr size_t kPlantedBugCount = 8;

struct Sabotage {
  std::vector<io::NetworkCut> cuts;
  std::vector<FullTier> full;
  std::vector<ClockJump> jumps;
  std::vector<Pause> pauses;
  uint32_t slow_permille = 0;
  scheduler::Duration slow_max;
  uint32_t damaged_permille = 0;
  uint32_t damaged_max = 0;  // in all
  bool late_reports_again = false;
  PlantedBug planted = PlantedBug::kNone;

  [[nodiscard]] bool is_full(FullTier::Step step, scheduler::WorkerId worker,
                             scheduler::Instant at) const;
  // When it has room again; `at` itself if it is not full.
  [[nodiscard]] scheduler::Instant has_room(FullTier::Step step, scheduler::Instant at) const;
};

}  // namespace sluice::engine
