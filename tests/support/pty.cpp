// pty [--size COLUMNSxROWS] [--limit SECONDS] [--on TEXT ACTION]... -- COMMAND...
//
// Runs COMMAND under a terminal of its own and copies what it prints to stdout, byte for byte. Each
// time the text that came since the last action contains the next TEXT, its ACTION is done:
//   interrupt     what Ctrl-C sends
//   size=CxR      the terminal is resized
//   file=PATH     an empty file is made: for commands that wait for it
// Exits as COMMAND does, with 124 when the limit (60 s) is over and 125 when a TEXT never came.
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

namespace {

constexpr int kTooLate = 124;
constexpr int kNeverCame = 125;
constexpr int kUsage = 2;

struct Step {
  std::string text;
  std::string action;
};

struct Plan {
  winsize size{24, 80, 0, 0};
  int limit_s = 60;
  std::deque<Step> steps;
  std::vector<char*> command;
};

bool parse_size(const std::string& text, winsize& size) {
  return std::sscanf(text.c_str(), "%hux%hu", &size.ws_col, &size.ws_row) == 2;
}

bool parse(int argc, char** argv, Plan& plan) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--") {
      plan.command.assign(argv + i + 1, argv + argc);
      plan.command.push_back(nullptr);
      return plan.command.size() > 1;
    }
    if (word == "--size" && i + 1 < argc) {
      if (!parse_size(argv[++i], plan.size)) return false;
    } else if (word == "--limit" && i + 1 < argc) {
      plan.limit_s = std::atoi(argv[++i]);
    } else if (word == "--on" && i + 2 < argc) {
      plan.steps.push_back({argv[i + 1], argv[i + 2]});
      i += 2;
    } else {
      return false;
    }
  }
  return false;
}

void act(int terminal, const std::string& action) {
  if (action == "interrupt") {
    const char control_c = 3;
    (void)!::write(terminal, &control_c, 1);
  } else if (action.starts_with("size=")) {
    winsize size{};
    if (parse_size(action.substr(5), size)) ::ioctl(terminal, TIOCSWINSZ, &size);
  } else if (action.starts_with("file=")) {
    const int file = ::open(action.substr(5).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
    if (file >= 0) ::close(file);
  }
}

// False at the end of the output.
bool copy(int terminal, std::string& seen) {
  char bytes[4096];
  const ssize_t count = ::read(terminal, bytes, sizeof bytes);
  if (count <= 0) return false;
  std::fwrite(bytes, 1, static_cast<size_t>(count), stdout);
  std::fflush(stdout);
  seen.append(bytes, static_cast<size_t>(count));
  return true;
}

int end(pid_t child, const Plan& plan, bool too_late) {
  if (too_late) ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (too_late) return kTooLate;
  if (!plan.steps.empty()) {
    std::fprintf(stderr, "pty: '%s' never came\n", plan.steps.front().text.c_str());
    return kNeverCame;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int main(int argc, char** argv) {
  Plan plan;
  if (!parse(argc, argv, plan)) {
    std::fprintf(stderr,
                 "usage: pty [--size CxR] [--limit SECONDS] [--on TEXT ACTION]... -- COMMAND...\n");
    return kUsage;
  }
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, &plan.size);
  if (child < 0) {
    std::perror("pty: forkpty");
    return kUsage;
  }
  if (child == 0) {
    ::execvp(plan.command[0], plan.command.data());
    std::perror(plan.command[0]);
    ::_exit(127);
  }
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(plan.limit_s);
  std::string seen;
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return end(child, plan, true);
    pollfd wait{terminal, POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(left)) <= 0) continue;
    if (!copy(terminal, seen)) return end(child, plan, false);
    while (!plan.steps.empty()) {
      const size_t at = seen.find(plan.steps.front().text);
      if (at == std::string::npos) break;
      seen.erase(0, at + plan.steps.front().text.size());
      act(terminal, plan.steps.front().action);
      plan.steps.pop_front();
    }
  }
}
