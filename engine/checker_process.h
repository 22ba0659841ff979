// sluice-h5 under the launcher: started when the first request waits for it (it takes longer than
// all else that a run starts with), watched, killed when it hangs, and started again by the next.
// Its death is told to the rank as a datagram on the socket between the two (io/checker.h):
// {"id":0,"crashed":SIGNAL}, or 128 + its exit code when it ended by itself. A helper that dies at
// once three times in a second is left alone for a second. Owner: Launcher. One thread. Test:
// tests/engine/launcher_test.cpp
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <string>

#include "engine/environment.h"
#include "io/file_descriptor.h"
#include "scheduler/types.h"

namespace sluice::engine {

class CheckerProcess {
 public:
  struct Setup {
    std::string program;
    Environment environment;
    rlimit open_files{};
  };
  explicit CheckerProcess(Setup setup);

  // The rank's end, to be given to the rank and then closed here: its end of file ends the helper.
  [[nodiscard]] int rank_end() const { return rank_end_.get(); }
  void close_rank_end() { rank_end_.reset(); }
  void start(scheduler::Instant now);
  [[nodiscard]] bool owns(pid_t pid) const { return pid_ > 0 && pid == pid_; }
  void on_reaped(int status, scheduler::Instant now);
  void kill_hung();
  // Readable while no helper runs: the rank has a request, so it is time to start one.
  [[nodiscard]] int request_fd() const { return helper_end_.get(); }
  [[nodiscard]] bool wants_request() const { return pid_ == 0 && !paused_; }
  // Ends the pause after repeated deaths.
  void on_time(scheduler::Instant now);
  [[nodiscard]] scheduler::Instant next_time() const;

 private:
  void drop_requests();
  void tell_crashed(int signal);
  void note_death(scheduler::Instant now);

  static constexpr size_t kDeathsKept = 3;
  Setup setup_;
  io::FileDescriptor rank_end_;
  io::FileDescriptor helper_end_;
  pid_t pid_ = 0;
  bool paused_ = false;
  scheduler::Instant pause_end_;
  std::array<scheduler::Instant, kDeathsKept> deaths_{};  // latest first; 0: none yet
};

}  // namespace sluice::engine
