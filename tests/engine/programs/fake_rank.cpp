// Acts as the engine process under a launcher, steered by a test. Not a test itself.
//
//   fake_rank CONTROL CHECKS   relays between the launcher (descriptor 3) and the inherited socket
//                              CONTROL, and between sluice-h5 (4) and CHECKS; a signal ends it
//                              with code 40 + signal; the end of CONTROL ends it with code 0 or
//                              FAKE_RANK_EXIT, or never if that is "never"
//   fake_rank                  acts as sluice-h5: answers a request with its own text, except
//                              "crash" (abort), "exit" (code 3) and "hang" (after the answer)
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <string_view>

#include "engine/launch_protocol.h"
#include "engine/launcher.h"

namespace {

constexpr int kSignalBase = 40;

void leave_by_signal(int number) { ::_exit(kSignalBase + number); }

int leave() {
  const char* code = std::getenv("FAKE_RANK_EXIT");
  while (code != nullptr && std::string_view(code) == "never") ::pause();
  return code == nullptr ? 0 : std::atoi(code);
}

// False at the end of `from`.
bool relay(int from, int to) {
  std::array<char, 65536> buffer{};
  const ssize_t got = ::recv(from, buffer.data(), buffer.size(), 0);
  for (ssize_t sent = 0; sent < got;) {
    const ssize_t some =
        ::send(to, buffer.data() + sent, static_cast<size_t>(got - sent), MSG_NOSIGNAL);
    if (some <= 0) return false;
    sent += some;
  }
  return got > 0;
}

int act_as_rank(int control, int checks) {
  sluice::engine::set_process_name("sluice-rank");
  for (const int number : {SIGTERM, SIGINT, SIGUSR1, SIGUSR2}) ::signal(number, leave_by_signal);
  const std::array<std::array<int, 2>, 4> ways = {{{sluice::engine::kLauncherFd, control},
                                                   {control, sluice::engine::kLauncherFd},
                                                   {sluice::engine::kCheckerFd, checks},
                                                   {checks, sluice::engine::kCheckerFd}}};
  for (;;) {
    std::array<pollfd, 4> waits{};
    for (size_t i = 0; i < waits.size(); ++i) waits[i] = {ways[i][0], POLLIN, 0};
    if (::poll(waits.data(), waits.size(), -1) < 0) return 1;
    for (size_t i = 0; i < waits.size(); ++i) {
      if (waits[i].revents != 0 && !relay(ways[i][0], ways[i][1])) return leave();
    }
  }
}

int act_as_checker() {
  std::array<char, 4096> request{};
  ssize_t got = 0;
  while ((got = ::recv(0, request.data(), request.size(), 0)) > 0) {
    const std::string_view text(request.data(), static_cast<size_t>(got));
    if (text == "crash") std::abort();
    if (text == "exit") return 3;
    ::send(0, request.data(), text.size(), MSG_NOSIGNAL);
    if (text == "hang") ::pause();
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return act_as_checker();
  return act_as_rank(std::atoi(argv[1]), std::atoi(argv[2]));
}
