// `sluice clean`: removes what a run left behind and nobody needs: temporaries, copies of failed
// attempts' directories, saved objects that no record names, on request logs of older submissions
// and results of instances that the spec no longer has; and on this node, stores and processes of
// dead runs. Never a current result, never while a run is going on: it holds the run's lease
// meanwhile. One thread. Test: tests/engine/clean_test.cpp, tests/e2e/queries.sh
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "engine/run_directory.h"
#include "io/journal.h"
#include "io/run_ledger.h"
#include "scheduler/types.h"

namespace sluice::io {
class Lease;
}

namespace sluice::engine {

struct Options;

struct Leftover {
  enum class Kind : uint8_t { kTemporary, kFailed, kObject, kLog, kStaleResult, kNodeStore };
  Kind kind = Kind::kTemporary;
  std::filesystem::path path;
  int64_t bytes = 0;
};
struct CleanChoice {
  bool logs = false;   // of submissions before the newest
  bool stale = false;  // results of instances that are gone: moved to stale/<submission>/
};

// What is to go, below the run directory; sorted by kind and path.
[[nodiscard]] std::vector<Leftover> find_leftovers(const RunDirectory& directory,
                                                   const io::JournalState& journal,
                                                   const io::RunLedger& ledger,
                                                   const CleanChoice& choice);

// What became of leftovers that were to be removed.
struct Removal {
  std::vector<Leftover> removed;
  std::vector<std::string> errors;  // for people
  bool stopped = false;             // the lease could not be kept: the last error says why
};
// Removes (or moves) them in this order. `now`: time since the lease was taken. Whenever a second
// has passed the lease beats before the next removal, so that no run on another host takes it for
// stale; when it is lost nothing more is touched, as all may be another run's by then. `epoch`: the
// newest submission's.
[[nodiscard]] Removal remove_leftovers(const std::vector<Leftover>& leftovers,
                                       const RunDirectory& directory, uint32_t epoch,
                                       io::Lease& lease,
                                       const std::function<scheduler::Instant()>& now);
int clean_run(const Options& options);

}  // namespace sluice::engine
