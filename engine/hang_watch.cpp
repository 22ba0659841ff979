#include "engine/hang_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <csignal>
#include <utility>

namespace sluice::engine {

namespace {
constexpr int kLookEveryMs = 1000;
}  // namespace

// The thread takes no signals: they are the control loop's.
HangWatch::HangWatch(uint64_t seconds, std::function<void()> ended)
    : stop_fd_(::eventfd(0, EFD_CLOEXEC)) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this, seconds, ended = std::move(ended)] { run(seconds, ended); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

HangWatch::~HangWatch() {
  const uint64_t one = 1;
  (void)!::write(stop_fd_, &one, sizeof one);
  thread_.join();
  ::close(stop_fd_);
}

void HangWatch::run(uint64_t seconds, const std::function<void()>& ended) {
  TurnCount count(seconds);
  pollfd stop{stop_fd_, POLLIN, 0};
  while (::poll(&stop, 1, kLookEveryMs) <= 0) {
    if (!count.hangs(turns_.load(std::memory_order_relaxed))) continue;
    ended();
    return;
  }
}

}  // namespace sluice::engine
