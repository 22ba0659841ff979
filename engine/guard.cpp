#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "engine/aftermath.h"
#include "engine/descendants.h"
#include "engine/launcher.h"
#include "engine/launcher_process.h"
#include "io/fault.h"
#include "io/file_descriptor.h"

namespace sluice::engine {
namespace {

constexpr scheduler::Duration kKillBound = scheduler::seconds(10);
constexpr int kUnusable = 3;  // exit codes: see conventions
constexpr int kSignalBase = 128;
constexpr int kPollWithoutPidfdMs = 1000;
constexpr std::array kForwarded = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2};

// nohup ignores it, and then it stays ignored.
bool hangup_counts() {
  struct sigaction action {};
  return ::sigaction(SIGHUP, nullptr, &action) == 0 && action.sa_handler != SIG_IGN;
}

sigset_t guarded_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  if (hangup_counts()) ::sigaddset(&set, SIGHUP);
  for (const int number : kForwarded) ::sigaddset(&set, number);
  ::sigaddset(&set, SIGCHLD);
  return set;
}

int open_pidfd(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

bool started_by_mpi() {
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMIX_RANK") != nullptr ||
         std::getenv("PMI_RANK") != nullptr;
}

class Guard {
 public:
  explicit Guard(const ProcessTree& tree);
  int run();

 private:
  void start_launcher();
  void watch_ancestors();
  [[nodiscard]] bool parent_is_gone() const;
  void wait_for_something();
  void take_signals();
  void forward(int number);
  void reap();
  [[nodiscard]] int end_after_parent();
  [[nodiscard]] int end_after_launcher();
  [[nodiscard]] int exit_code(const RankReport& report) const;

  const ProcessTree& tree_;
  Aftermath aftermath_;
  std::string mark_;
  pid_t parent_ = 0;
  pid_t launcher_ = 0;
  int launcher_status_ = 0;
  bool launcher_gone_ = false;
  bool parent_gone_ = false;
  bool polls_parent_ = false;  // no pidfd in this kernel
  io::FileDescriptor signals_;
  io::FileDescriptor socket_;                // to the launcher
  std::vector<io::FileDescriptor> watched_;  // pidfds of mpirun (or its like) and wrappers between
};

Guard::Guard(const ProcessTree& tree)
    : tree_(tree),
      aftermath_{&tree, static_cast<int64_t>(::time(nullptr))},
      mark_(own_mark()),
      parent_(::getppid()) {}

int Guard::run() {
  set_process_name("sluice-guard");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::signal(SIGCHLD, SIG_DFL);  // who starts us may ignore it: then no child would ever be reported
  const sigset_t set = guarded_signals();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  io::set_fault_mpi_rank(tree_.mpi_rank);  // before the fork: the launcher's, too
  start_launcher();
  SLUICE_FAULT_POINT("guard.started");
  if (launcher_ < 0) {
    std::fprintf(stderr, "sluice: cannot make a process; check 'ulimit -u'\n");
    return kUnusable;
  }
  signals_ = io::FileDescriptor(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (started_by_mpi()) watch_ancestors();
  while (!launcher_gone_ && !parent_gone_) wait_for_something();
  return launcher_gone_ ? end_after_launcher() : end_after_parent();
}

void Guard::start_launcher() {
  std::array<int, 2> ends{-1, -1};
  const int made = ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data());
  SLUICE_ASSERT(made == 0, errno);
  socket_ = io::FileDescriptor(ends[0]);
  io::FileDescriptor launcher_end(ends[1]);
  launcher_ = ::fork();
  if (launcher_ != 0) return;
  socket_.reset();
  ::setsid();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  set_process_name("sluice-launch");
  run_launcher(tree_, aftermath_, mark_, std::move(launcher_end));
  ::_exit(0);
}

// mpirun and the wrappers between it and us: when one goes, the others are not to be relied on.
void Guard::watch_ancestors() {
  for (const pid_t pid : ancestors_up_to_mpirun(::getpid())) {
    io::FileDescriptor pidfd(open_pidfd(pid));
    if (pidfd.open()) watched_.push_back(std::move(pidfd));
  }
  polls_parent_ = watched_.empty();
}

bool Guard::parent_is_gone() const { return ::getppid() != parent_; }

void Guard::wait_for_something() {
  std::vector<pollfd> waits{{signals_.get(), POLLIN, 0}};
  for (const io::FileDescriptor& pidfd : watched_) waits.push_back({pidfd.get(), POLLIN, 0});
  const int count = ::poll(waits.data(), waits.size(), polls_parent_ ? kPollWithoutPidfdMs : -1);
  if (polls_parent_) parent_gone_ = parent_is_gone();
  if (count <= 0) return;
  for (size_t i = 1; i < waits.size(); ++i) parent_gone_ |= waits[i].revents != 0;
  if (waits[0].revents != 0) take_signals();
}

void Guard::take_signals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
    const auto number = static_cast<int>(info.ssi_signo);
    if (number == SIGCHLD) {
      reap();
    } else {
      forward(number);
    }
  }
}

// The terminal went away: the rank is to end in order, as of SIGTERM.
void Guard::forward(int number) {
  if (number == SIGHUP) number = SIGTERM;
  const auto byte = static_cast<char>(number);
  (void)::send(socket_.get(), &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Guard::reap() {
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid != launcher_) continue;
    launcher_gone_ = true;
    launcher_status_ = status;
  }
}

int Guard::end_after_parent() {
  SLUICE_FAULT_POINT("guard.orphaned");
  (void)kill_all_descendants(kKillBound);
  aftermath_.clean();
  aftermath_.note_lost("mpirun (or its like) was killed");
  return kSignalBase + SIGKILL;
}

int Guard::end_after_launcher() {
  RankReport report;
  const ssize_t got = ::recv(socket_.get(), &report, sizeof report, MSG_DONTWAIT);
  SLUICE_FAULT_POINT("guard.told");
  const bool told = got == sizeof report;
  if (told && launcher_status_ == 0) return exit_code(report);
  // It died, perhaps while it cleaned up after the rank: all of that once more.
  (void)kill_all_descendants(kKillBound);
  if (!told) {
    report.begun = aftermath_.rank_had_begun();
    report.wait_status = launcher_status_;
    report.in_order = false;
  }
  aftermath_.clean();
  if (!report.in_order) {
    aftermath_.note_lost((told ? "the engine process " : "the launcher ") +
                         describe_wait_status(report.wait_status));
  }
  return exit_code(report);
}

int Guard::exit_code(const RankReport& report) const {
  const bool is_worker = tree_.mpi_rank != 0;
  if (is_worker && !report.in_order && report.begun) return 0;  // its death ends nobody else
  if (is_worker && !report.in_order) {
    std::fprintf(stderr,
                 "sluice: error: rank %d %s before MPI was started on all ranks, which ends the "
                 "run; the same command continues it\n",
                 tree_.mpi_rank, describe_wait_status(report.wait_status).c_str());
    return kUnusable;
  }
  if (!report.in_order) {
    std::fprintf(
        stderr,
        "sluice: error: the engine (rank 0, or its launcher) %s; what was recorded is kept: "
        "the same command continues the run\n",
        describe_wait_status(report.wait_status).c_str());
  }
  if (WIFSIGNALED(report.wait_status)) return kSignalBase + WTERMSIG(report.wait_status);
  return WEXITSTATUS(report.wait_status);
}

}  // namespace

int run_guarded(const ProcessTree& tree) {
  sigset_t before;
  ::sigprocmask(SIG_SETMASK, nullptr, &before);
  Guard guard(tree);
  const int code = guard.run();
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return code;
}

}  // namespace sluice::engine
