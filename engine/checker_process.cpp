#include "engine/checker_process.h"

#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <utility>

#include "engine/spawn.h"

namespace sluice::engine {
namespace {

using scheduler::Instant;

constexpr int kExitCodeBase = 128;  // "crashed" beyond any signal: it ended by itself
constexpr int kNotStarted = kExitCodeBase + 127;
constexpr scheduler::Duration kDeathWindow = scheduler::seconds(1);
constexpr scheduler::Duration kPause = scheduler::seconds(1);

}  // namespace

CheckerProcess::CheckerProcess(Setup setup) : setup_(std::move(setup)) {
  std::array<int, 2> ends{-1, -1};
  const int made = ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data());
  SLUICE_ASSERT(made == 0, errno);
  rank_end_ = io::FileDescriptor(ends[0]);
  helper_end_ = io::FileDescriptor(ends[1]);
}

void CheckerProcess::start(Instant now) {
  SpawnPlan plan;
  plan.program = setup_.program;
  plan.argv = {setup_.program};
  plan.environment = &setup_.environment;
  plan.descriptors = {{helper_end_.get(), 0}};
  plan.new_session = false;
  plan.open_files = setup_.open_files;
  const auto result = spawn(plan);
  if (const pid_t* pid = std::get_if<pid_t>(&result)) {
    pid_ = *pid;
    return;
  }
  std::fprintf(stderr,
               "sluice: no outputs can be checked: %s; is sluice-h5 installed beside sluice?\n",
               std::get<SpawnError>(result).text.c_str());
  tell_crashed(kNotStarted);
  paused_ = true;
  pause_end_ = now + kPause;
}

void CheckerProcess::on_reaped(int status, Instant now) {
  pid_ = 0;
  note_death(now);
  drop_requests();
  tell_crashed(WIFSIGNALED(status) ? WTERMSIG(status) : kExitCodeBase + WEXITSTATUS(status));
}

void CheckerProcess::note_death(Instant now) {
  std::rotate(deaths_.begin(), deaths_.end() - 1, deaths_.end());
  deaths_.front() = now;
  if (deaths_.back() > Instant{} && now - deaths_.back() < kDeathWindow) {
    paused_ = true;
    pause_end_ = now + kPause;
  }
}

void CheckerProcess::kill_hung() {
  if (pid_ != 0) {
    ::kill(-pid_, SIGKILL);  // its death answers
    return;
  }
  drop_requests();
  tell_crashed(SIGKILL);
}

// What the rank asked before it learns of the death is answered by that, not by the next helper.
void CheckerProcess::drop_requests() {
  std::array<char, 1> request{};
  while (::recv(helper_end_.get(), request.data(), request.size(), MSG_DONTWAIT) > 0) {
  }
}

void CheckerProcess::tell_crashed(int signal) {
  const std::string text = R"({"id":0,"crashed":)" + std::to_string(signal) + "}";
  // Not sent: the rank is gone, or has not read hundreds of replies.
  (void)::send(helper_end_.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void CheckerProcess::on_time(Instant now) {
  if (paused_ && pause_end_ <= now) paused_ = false;
}

Instant CheckerProcess::next_time() const { return paused_ ? pause_end_ : Instant::never(); }

}  // namespace sluice::engine
