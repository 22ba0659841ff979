// `sluice clean`: removes what a run left behind and nobody needs: temporaries, copies of failed
// attempts' directories, saved objects that no record names, on request logs of older submissions
// and results of instances that the spec no longer has; and on this node, stores and processes of
// dead runs. Never a current result, never while a run is going on: it holds the run's lease
// meanwhile. One thread. Test: tests/engine/clean_test.cpp, tests/e2e/queries.sh
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/run_directory.h"
#include "io/journal.h"
#include "io/run_ledger.h"

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
int clean_run(const Options& options);

}  // namespace sluice::engine
