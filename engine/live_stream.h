// Output of attempts that still run, for `logs --follow` on the same node. The launcher keeps a
// stream in a memory file (engine/stream_capture.h) whose name says whose it is; another process of
// the same user reads it through /proc/<launcher>/fd, without asking the launcher for anything.
// Readable in order are the first kStreamKeptBytes; what comes later overwrites the older half and
// is seen when the attempt has ended. Free functions, any thread. Test:
// tests/engine/live_stream_test.cpp, tests/e2e/queries.sh
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "scheduler/types.h"

namespace sluice::engine {

// "sluice.<digits for the run directory>.": how the names of that run's streams begin.
[[nodiscard]] std::string live_stream_prefix(const std::string& run_directory);
// <prefix><attempt>.out or .err
[[nodiscard]] std::string live_stream_name(const std::string& prefix, scheduler::AttemptId attempt,
                                           bool err);

struct LiveStream {
  scheduler::AttemptId attempt;
  bool err = false;
  std::filesystem::path file;  // below /proc; gone when the attempt has ended
};
// Streams of that run on this node, by attempt, stdout first.
[[nodiscard]] std::vector<LiveStream> find_live_streams(const std::string& run_directory);

// Bytes from `offset` on, as far as they are there in order; "" when there are none or no more.
[[nodiscard]] std::string read_live_stream(const LiveStream& stream, int64_t offset);

}  // namespace sluice::engine
