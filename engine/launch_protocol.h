// What an engine rank and its launcher say to each other, over one AF_UNIX SOCK_STREAM pair made
// before the rank starts (descriptor kLauncherFd in the rank). A frame is a u32 length and that
// many bytes: io/wire's integers and strings. No size is fixed: a command of megabytes passes. EOF
// either way means that the other is dead. Values; the codec is pure. Test:
// tests/engine/launch_protocol_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler/event.h"
#include "scheduler/expected.h"
#include "scheduler/types.h"

namespace sluice::engine {

constexpr int kLauncherFd = 3;  // in the rank: socket to the launcher
constexpr int kCheckerFd = 4;   // in the rank: socket to sluice-h5 (io/checker.h)

constexpr int64_t kStreamKeptBytes = 10LL
                                     << 20U;  // per stream of an attempt: first and last half of it
constexpr int64_t kInlineStreamBytes = 64LL << 10U;  // more than this is handed over as a file

namespace launch {

// rank -> launcher
struct Start {
  scheduler::AttemptId attempt;
  std::vector<std::string>
      argv;  // argv[0]: a path with '/', or found through PATH of `environment`
  std::vector<std::pair<std::string, std::string>>
      environment;                            // on top of the cleaned one; last wins
  std::vector<std::string> keep_environment;  // launcher variables to pass on: names, PREFIX*
  std::string working_directory;
  std::string stdin_path;        // "": /dev/null
  std::string stdout_path;       // made anew; "": captured
  std::vector<int32_t> cpus;     // OS indexes of the PUs it may use; empty: leave as is
  std::string stream_directory;  // where streams over kInlineStreamBytes are written
};
struct Signal {
  scheduler::AttemptId attempt;
  bool kill = false;  // false: SIGTERM to its process group; true: SIGKILL to every process of it
};
struct KillChecker {};  // it hangs: the launcher kills and restarts it (a crashed reply comes
                        // through the checker socket)
struct Quit {};  // the rank leaves in order: kill what is left, then exit with the rank's status

// launcher -> rank
struct Started {
  scheduler::AttemptId attempt;
  int64_t pid = 0;
};
struct Stream {
  std::string head;  // all of it when dropped_bytes == 0 and path is empty
  std::string
      path;  // else the file that holds head, a line saying how many bytes were dropped, and tail
  int64_t bytes = 0;          // that the attempt wrote
  int64_t dropped_bytes = 0;  // of them, not kept
  std::string tail;           // last lines, at most 2 KiB, always
};
struct Exited {
  scheduler::AttemptId attempt;
  std::string start_error;  // not empty: it never ran; what the system said
  int32_t exit_code = 0;
  int32_t signal = 0;
  scheduler::Usage usage;
  Stream out;
  Stream err;
  int32_t leftover_killed = 0;  // processes it left behind (daemons), killed
};

}  // namespace launch

using LaunchMessage = std::variant<launch::Start, launch::Signal, launch::KillChecker, launch::Quit,
                                   launch::Started, launch::Exited>;

[[nodiscard]] std::vector<std::byte> encode_frame(const LaunchMessage& message);

// Bytes in, whole frames out. One owner.
class FrameReader {
 public:
  void push(std::span<const std::byte> bytes);
  // The next whole message, an Error if the bytes make no sense, nothing (ok, false) if more is
  // needed.
  [[nodiscard]] Expected<bool> next(LaunchMessage& message);

 private:
  std::vector<std::byte> buffer_;
  size_t begin_ = 0;
};

}  // namespace sluice::engine
