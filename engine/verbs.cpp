#include "engine/verbs.h"

#include <cerrno>
#include <fstream>
#include <iostream>

#include "engine/cli.h"
#include "engine/query.h"
#include "engine/replay.h"
#include "io/lease.h"

namespace sluice::engine {

namespace {

constexpr int kDone = 0;
constexpr int kUsage = 2;
constexpr int kEnvironmentUnusable = 3;
constexpr int kFailedReplay = 1;

}  // namespace

// -- stop, replay
// -----------------------------------------------------------------------------------------------------

int stop_run(const Options& options) {
  const RunDirectory directory = options.directory();
  const auto lease = io::view_lease(directory.path);
  if (!lease && lease.error().code == ENOENT) return complain_no_run(directory);
  if (!lease) return complain(lease.error().message, kEnvironmentUnusable);
  if (lease->owner.epoch == 0 || lease->owner.released ||
      lease->alive == io::LeaseView::Alive::kNo) {
    return complain("no run is going on in " + directory.path.string() + ": nothing to stop",
                    kUsage);
  }
  std::ofstream request(directory.stop_request());
  if (!(request << "stop\n" << std::flush)) {
    return complain("the request could not be left at " + directory.stop_request().string() +
                        ": may you write to the run directory?",
                    kEnvironmentUnusable);
  }
  std::cerr << "sluice: asked the run on " << lease->owner.host << " to stop in order";
  if (lease->alive == io::LeaseView::Alive::kSilent) {
    std::cerr << "; its last sign of life is " << lease->beat_age_ms / 1000
              << " s old: if it was killed, there is nothing to stop";
  }
  std::cerr << "\n";
  return kDone;
}

int replay_run(const Options& options) {
  const RunDirectory directory = options.directory();
  if (const auto lease = io::view_lease(directory.path); !lease && lease.error().code == ENOENT)
    return complain_no_run(directory);
  const auto result = replay_trace(directory.trace(), true);
  if (!result) return complain(result.error().message, kEnvironmentUnusable);
  std::cout << "digest " << std::hex << result->digest << std::dec << ", " << result->events
            << " events, " << result->schedules << " schedule calls"
            << (result->complete ? "" : " (the trace ends early)") << "\n";
  if (result->first_difference == 0) {
    std::cout << "the replay decided as the run did\n";
    return kDone;
  }
  return complain("the replay decided otherwise at schedule call " +
                      std::to_string(result->first_difference) +
                      ": the trace was recorded by another version of sluice, or this is our bug",
                  kFailedReplay);
}

}  // namespace sluice::engine
