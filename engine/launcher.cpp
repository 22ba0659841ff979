#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <vector>

#include "engine/attempt_process.h"
#include "engine/checker_process.h"
#include "engine/descendants.h"
#include "engine/environment.h"
#include "engine/launcher_client.h"
#include "engine/launcher_process.h"
#include "engine/spawn.h"
#include "io/fault.h"

namespace sluice::engine {
namespace {

using scheduler::Instant;

constexpr scheduler::Duration kKillBound = scheduler::seconds(10);
constexpr int kLowDescriptors = 10;  // ours are all above the children's: dup2 never overwrites one

Instant monotonic_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return Instant{static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec};
}

// Default dispositions, so that children need no resetting; what we handle is blocked and read
// from a descriptor, what mpirun or Slurm send to us is the guard's to forward.
io::FileDescriptor take_signals() {
  for (int number = 1; number < SIGRTMAX; ++number) {
    if (number != SIGKILL && number != SIGSTOP) ::signal(number, SIG_DFL);
  }
  sigset_t blocked;
  ::sigemptyset(&blocked);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE, SIGCHLD,
                           SIGTSTP, SIGTTIN, SIGTTOU, SIGXFSZ}) {
    ::sigaddset(&blocked, number);
  }
  ::sigprocmask(SIG_SETMASK, &blocked, nullptr);
  sigset_t read;
  ::sigemptyset(&read);
  ::sigaddset(&read, SIGCHLD);
  return io::FileDescriptor(::signalfd(-1, &read, SFD_CLOEXEC | SFD_NONBLOCK));
}

// A copy above the low descriptors, which then are all in use for ever: every later one is above.
io::FileDescriptor lifted(io::FileDescriptor low) {
  io::FileDescriptor high(::fcntl(low.get(), F_DUPFD_CLOEXEC, kLowDescriptors));
  low.reset();
  int filler = -1;
  do {
    filler = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  } while (filler >= 0 && filler < kLowDescriptors);
  if (filler >= 0) ::close(filler);
  return high;
}

// What was inherited is the rank's (MPICH's launcher passes a socket), not the attempts'.
void close_inherited_on_exec() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const int fd = std::atoi(entry.path().filename().c_str());
    if (fd > STDERR_FILENO) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
}

rlimit raise_open_files() {
  rlimit original{};
  ::getrlimit(RLIMIT_NOFILE, &original);
  rlimit raised = original;
  raised.rlim_cur = raised.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &raised);
  return original;
}

class Launcher {
 public:
  Launcher(const ProcessTree& tree, const Aftermath& aftermath, const std::string& mark,
           io::FileDescriptor guard_socket);
  void run();

 private:
  enum class Source : uint32_t { kSignals, kGuard, kRank, kChecker, kStream };
  void start_rank();
  void dispatch(const epoll_event& event);
  void take_guard_messages();
  void take_rank_messages();
  void apply(const LaunchMessage& message);
  void reap();
  void on_time();
  void watch_what_is_wanted();
  bool watch(int fd, Source source, uint32_t events);
  void unwatch(int fd);
  [[nodiscard]] int timeout_ms() const;
  void finish();

  const ProcessTree& tree_;
  const Aftermath& aftermath_;
  rlimit open_files_;
  io::FileDescriptor
      guard_;  // first: it makes sure that all the others are above the low descriptors
  io::FileDescriptor signals_;
  io::FileDescriptor epoll_;
  std::unique_ptr<LaunchChannel> rank_;
  std::unique_ptr<CheckerProcess> checker_;
  std::unique_ptr<Attempts> attempts_;
  pid_t rank_pid_ = 0;
  bool rank_gone_ = false;
  bool guard_gone_ = false;
  bool rank_writes_ = false;    // EPOLLOUT is asked for
  bool checker_waits_ = false;  // its request descriptor is watched
  RankReport report_;
  Instant now_;
};

Launcher::Launcher(const ProcessTree& tree, const Aftermath& aftermath, const std::string& mark,
                   io::FileDescriptor guard_socket)
    : tree_(tree),
      aftermath_(aftermath),
      open_files_(raise_open_files()),
      guard_(lifted(std::move(guard_socket))),
      signals_(take_signals()),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      now_(monotonic_now()) {
  checker_ = std::make_unique<CheckerProcess>(
      CheckerProcess::Setup{tree.checker_program, Environment::cleaned(), open_files_});
  Attempts::Setup setup;
  setup.environment = Environment::cleaned();
  setup.removed = Environment::removed();
  setup.mark = mark;
  setup.run_directory = tree.lost_folder.parent_path();
  setup.open_files = open_files_;
  setup.report = [this](const LaunchMessage& message) { rank_->send(message); };
  setup.watch = [this](int fd) { return watch(fd, Source::kStream, EPOLLIN); };
  setup.is_own = [this](pid_t pid) { return pid == rank_pid_ || checker_->owns(pid); };
  attempts_ = std::make_unique<Attempts>(std::move(setup));
}

bool Launcher::watch(int fd, Source source, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 =
      (static_cast<uint64_t>(source) << 32U) | static_cast<uint64_t>(static_cast<uint32_t>(fd));
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0 ||
         (errno == EEXIST && ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event) == 0);
}

void Launcher::unwatch(int fd) { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

void Launcher::start_rank() {
  std::array<int, 2> ends{-1, -1};
  const int made = ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data());
  SLUICE_ASSERT(made == 0, errno);
  rank_ = std::make_unique<LaunchChannel>(ends[0]);
  const io::FileDescriptor rank_end(ends[1]);
  Environment environment = Environment::inherited();
  SpawnPlan plan;
  // MPICH's launcher and Slurm's PMI2 pass a socket by number: out of the way of ours.
  const std::string pmi = environment.get("PMI_FD");
  const int pmi_fd = pmi.empty() ? -1 : std::atoi(pmi.c_str());
  io::FileDescriptor moved_pmi;
  if (pmi_fd == kLauncherFd || pmi_fd == kCheckerFd) {
    moved_pmi = io::FileDescriptor(::fcntl(pmi_fd, F_DUPFD, kLowDescriptors));
    environment.set("PMI_FD", std::to_string(moved_pmi.get()));
  }
  plan.program = tree_.rank_argv.at(0);
  plan.argv = tree_.rank_argv;
  plan.environment = &environment;
  plan.descriptors = {{rank_end.get(), kLauncherFd}, {checker_->rank_end(), kCheckerFd}};
  plan.new_session = false;
  plan.open_files = open_files_;
  const auto result = spawn(plan);
  checker_->close_rank_end();
  if (const pid_t* pid = std::get_if<pid_t>(&result)) {
    rank_pid_ = *pid;
    return;
  }
  std::fprintf(stderr, "sluice: %s\n", std::get<SpawnError>(result).text.c_str());
  constexpr int kUnusable = 3;
  report_.wait_status = W_EXITCODE(kUnusable, 0);
  report_.in_order = true;  // nothing was begun, nothing is lost
  rank_gone_ = true;
}

void Launcher::run() {
  start_rank();
  SLUICE_FAULT_POINT("launcher.started");
  close_inherited_on_exec();
  if (!rank_gone_) {
    watch(signals_.get(), Source::kSignals, EPOLLIN);
    watch(guard_.get(), Source::kGuard, EPOLLIN);
    watch(rank_->fd(), Source::kRank, EPOLLIN);
  }
  while (!rank_gone_ && !guard_gone_) {
    watch_what_is_wanted();
    std::array<epoll_event, 64> events;  // not initialised: epoll_wait fills what is used
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout_ms());
    now_ = monotonic_now();
    for (int i = 0; i < count; ++i) dispatch(events[static_cast<size_t>(i)]);
    on_time();
  }
  finish();
}

int Launcher::timeout_ms() const {
  const Instant next = std::min(attempts_->next_time(), checker_->next_time());
  if (next == Instant::never()) return -1;
  constexpr int64_t kMillisecond = 1'000'000;
  const int64_t ns = std::max<int64_t>(0, (next - monotonic_now()).ns);
  return static_cast<int>((ns + kMillisecond - 1) / kMillisecond);
}

void Launcher::watch_what_is_wanted() {
  if (rank_->wants_write() != rank_writes_) {
    rank_writes_ = !rank_writes_;
    watch(rank_->fd(), Source::kRank, rank_writes_ ? EPOLLIN | EPOLLOUT : EPOLLIN);
  }
  if (checker_->wants_request() != checker_waits_) {
    checker_waits_ = !checker_waits_;
    if (checker_waits_) {
      watch(checker_->request_fd(), Source::kChecker, EPOLLIN);
    } else {
      unwatch(checker_->request_fd());
    }
  }
}

void Launcher::dispatch(const epoll_event& event) {
  const auto source = static_cast<Source>(event.data.u64 >> 32U);
  switch (source) {
    case Source::kSignals:
      return reap();
    case Source::kGuard:
      return take_guard_messages();
    case Source::kRank:
      return take_rank_messages();
    case Source::kChecker:
      if (checker_->wants_request()) checker_->start(now_);
      return;
    case Source::kStream:
      return attempts_->on_readable(static_cast<int>(event.data.u64 & 0xFFFFFFFFU), now_);
  }
}

void Launcher::take_guard_messages() {
  std::array<char, 1> signal{};
  for (;;) {
    const ssize_t got = ::recv(guard_.get(), signal.data(), signal.size(), MSG_DONTWAIT);
    if (got == 1) {
      ::kill(rank_pid_, signal[0]);
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else {
      guard_gone_ = got == 0 || errno != EAGAIN;
      return;
    }
  }
}

void Launcher::take_rank_messages() {
  std::vector<LaunchMessage> messages;
  const bool alive = rank_->read(messages);
  for (const LaunchMessage& message : messages) apply(message);
  if (alive) return;
  // It is leaving, and its status comes as a signal; or it broke.
  unwatch(rank_->fd());
  rank_writes_ = false;
  if (!report_.in_order) ::kill(rank_pid_, SIGTERM);
}

void Launcher::apply(const LaunchMessage& message) {
  if (const auto* start = std::get_if<launch::Start>(&message)) {
    attempts_->start(*start, now_);
    SLUICE_FAULT_POINT("launcher.attempt");
  } else if (const auto* signal = std::get_if<launch::Signal>(&message)) {
    attempts_->signal(*signal, now_);
  } else if (std::holds_alternative<launch::KillChecker>(message)) {
    checker_->kill_hung();
  } else if (std::holds_alternative<launch::Quit>(message)) {
    report_.in_order = true;
    attempts_->kill_all();
  }
}

void Launcher::reap() {
  signalfd_siginfo signal;  // one at most: SIGCHLDs that wait are one
  (void)!::read(signals_.get(), &signal, sizeof signal);
  int status = 0;
  rusage usage{};
  pid_t pid = 0;
  while ((pid = ::wait4(-1, &status, WNOHANG, &usage)) > 0) {
    if (pid == rank_pid_) {
      rank_gone_ = true;
      report_.wait_status = status;
    } else if (checker_->owns(pid)) {
      checker_->on_reaped(status, now_);
    } else {
      SLUICE_FAULT_POINT("launcher.reaped");
      attempts_->on_reaped(pid, status, usage, now_);
    }
  }
  attempts_->on_reaping_done(now_);
}

void Launcher::on_time() {
  if (attempts_->next_time() <= now_) attempts_->on_time(now_);
  checker_->on_time(now_);
}

void Launcher::finish() {
  SLUICE_FAULT_POINT("launcher.ending");
  const bool all_dead = kill_all_descendants(kKillBound);
  SLUICE_FAULT_POINT("launcher.killed");
  // Before clean(), which takes away what tells it: should we die meanwhile, the guard knows.
  report_.begun = aftermath_.rank_had_begun();
  (void)::send(guard_.get(), &report_, sizeof report_, MSG_NOSIGNAL);
  aftermath_.clean();
  SLUICE_FAULT_POINT("launcher.cleaned");
  if (guard_gone_) {
    aftermath_.note_lost("the guard was killed");
  } else if (!report_.in_order) {
    aftermath_.note_lost("the engine process " + describe_wait_status(report_.wait_status));
  }
  if (!all_dead) {
    std::fprintf(stderr,
                 "sluice: some processes of this run cannot be killed: they wait for a "
                 "device or file system; see 'ps -eo pid,state,args' for state D\n");
  }
}

}  // namespace

void run_launcher(const ProcessTree& tree, const Aftermath& aftermath, const std::string& mark,
                  io::FileDescriptor guard_socket) {
  Launcher launcher(tree, aftermath, mark, std::move(guard_socket));
  launcher.run();
}

void set_process_name(const char* name) { ::prctl(PR_SET_NAME, name); }

}  // namespace sluice::engine
