#include "engine/attempt_process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "engine/live_stream.h"

namespace sluice::engine {
namespace {

using scheduler::AttemptId;
using scheduler::Duration;
using scheduler::Instant;

constexpr Duration kDrainBound = scheduler::seconds(2);
constexpr Duration kFirstPause = scheduler::milliseconds(10);
constexpr Duration kPauseMax = scheduler::seconds(1);
constexpr int kTries = 25;  // about 20 s
constexpr Duration kLookAgain = scheduler::seconds(1);
constexpr size_t kReadBytes = 64U << 10U;
constexpr int kReadsPerWake = 4;  // fair to the other attempts
constexpr int kReadsAtExit = 64;  // more than any pipe holds
constexpr const char* kMarkVariable = "SLUICE_ATTEMPT";

Duration of_timeval(const timeval& t) {
  return scheduler::seconds(t.tv_sec) + scheduler::microseconds(t.tv_usec);
}

// An attempt's file for a stream: unique, and told apart by its end.
std::filesystem::path stream_file(const std::string& folder, AttemptId attempt, size_t which) {
  return std::filesystem::path(folder) /
         (std::to_string(attempt.value) + (which == 0 ? ".out" : ".err"));
}

// The files that stand in for /dev/null and for the captured standard output.
struct Redirects {
  io::FileDescriptor in;
  io::FileDescriptor out;
  std::string problem;

  explicit Redirects(const launch::Start& start) {
    if (!start.stdin_path.empty()) {
      in = io::FileDescriptor(::open(start.stdin_path.c_str(), O_RDONLY | O_CLOEXEC));
      if (!in.open()) note("read its stdin", start.stdin_path);
    }
    if (!start.stdout_path.empty()) {
      constexpr int kMode = 0666;
      out = io::FileDescriptor(
          ::open(start.stdout_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode));
      if (!out.open()) note("make its stdout", start.stdout_path);
    }
  }

 private:
  void note(const char* what, const std::string& path) {
    problem = std::string("cannot ").append(what) + " '" + path + "': " + std::strerror(errno);
  }
};

}  // namespace

struct Attempts::Attempt {
  AttemptId id;
  pid_t pid = 0;
  uint64_t sequence = 0;  // in the order of starting
  Instant started;
  std::string stream_directory;
  std::array<io::FileDescriptor, 2> pipes;  // stdout, stderr
  std::array<StreamCapture, 2> streams;
  bool ended = false;  // the main process is reaped; the rest is being killed, pipes drained
  Instant overdue = Instant::never();
  launch::Exited exited;

  void add_usage(const rusage& usage) {
    exited.usage.cpu = exited.usage.cpu + of_timeval(usage.ru_utime) + of_timeval(usage.ru_stime);
    exited.usage.memory_peak_bytes =
        std::max(exited.usage.memory_peak_bytes, static_cast<int64_t>(usage.ru_maxrss) * 1024);
  }
  [[nodiscard]] bool is_drained() const { return !pipes[0].open() && !pipes[1].open(); }
};

Attempts::Attempts(Setup setup)
    : setup_(std::move(setup)), null_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {}

Attempts::~Attempts() = default;

void Attempts::start(launch::Start start, Instant now) {
  SLUICE_ASSERT(!by_id_.contains(start.attempt), start.attempt);
  Waiting waiting{std::move(start), now, kFirstPause, kTries};
  if (!try_start(waiting, now)) waiting_.push_back(std::move(waiting));
}

// False: not now, the machine is short of something.
bool Attempts::try_start(Waiting& waiting, Instant now) {
  const launch::Start& start = waiting.start;
  std::array<int, 2> out{-1, -1};
  std::array<int, 2> err{-1, -1};
  bool try_again = false;
  const Redirects redirects(start);
  std::string problem = redirects.problem;
  if (problem.empty() &&
      (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(err.data(), O_CLOEXEC) != 0)) {
    problem = std::string("cannot make a pipe: ") + std::strerror(errno) +
              "; raise the limit on open files (ulimit -n)";
    try_again = true;
  }
  std::array<io::FileDescriptor, 2> ours{io::FileDescriptor(out[0]), io::FileDescriptor(err[0])};
  const io::FileDescriptor out_end(out[1]);
  const io::FileDescriptor err_end(err[1]);
  if (problem.empty()) {
    const int in = redirects.in.open() ? redirects.in.get() : null_.get();
    const int to = redirects.out.open() ? redirects.out.get() : out_end.get();
    const auto result = spawn_attempt(start, {in, to, err_end.get()});
    if (const pid_t* pid = std::get_if<pid_t>(&result)) {
      adopt(start, *pid, std::move(ours), now);
      return true;
    }
    problem = std::get<SpawnError>(result).text;
    try_again = std::get<SpawnError>(result).try_again;
  }
  if (try_again && --waiting.tries_left > 0) {
    if (waiting.pause >= kPauseMax) tell_that_it_waits(problem);
    waiting.next_try = now + waiting.pause;
    waiting.pause = std::min(waiting.pause * 2, kPauseMax);
    return false;
  }
  report_start_error(start.attempt, problem);
  return true;
}

// Once: nothing else is heard of a machine that is short of something until the tries are used up.
void Attempts::tell_that_it_waits(const std::string& problem) {
  if (std::exchange(told_that_it_waits_, true)) return;
  std::fprintf(stderr, "sluice: warn: attempts wait to be started, for some 20 s each: %s\n",
               problem.c_str());
}

std::variant<pid_t, SpawnError> Attempts::spawn_attempt(const launch::Start& start,
                                                        std::array<int, 3> descriptors) {
  Environment environment = setup_.environment;
  environment.take(setup_.removed, start.keep_environment);
  if (!start.working_directory.empty()) environment.set("PWD", start.working_directory);
  for (const auto& [name, value] : start.environment) environment.set(name, value);
  environment.set(kMarkVariable, setup_.mark + "." + std::to_string(start.attempt.value));
  const Expected<std::string> program = find_program(
      start.argv.empty() ? "" : start.argv[0], environment.get("PATH"), start.working_directory);
  if (!program) return SpawnError{program.error().message, false};
  SpawnPlan plan;
  plan.program = program.value();
  plan.argv = start.argv;
  plan.environment = &environment;
  plan.working_directory = start.working_directory;
  plan.cpus = start.cpus;
  for (size_t i = 0; i < descriptors.size(); ++i) {
    plan.descriptors.emplace_back(descriptors[i], static_cast<int>(i));
  }
  plan.open_files = setup_.open_files;
  return spawn(plan);
}

void Attempts::report_start_error(AttemptId attempt, const std::string& text) {
  launch::Exited exited;
  exited.attempt = attempt;
  exited.start_error = text;
  setup_.report(exited);
}

void Attempts::adopt(const launch::Start& start, pid_t pid, std::array<io::FileDescriptor, 2> pipes,
                     Instant now) {
  auto owned = std::make_unique<Attempt>();
  Attempt& attempt = *owned;
  attempt.id = start.attempt;
  attempt.exited.attempt = start.attempt;
  attempt.pid = pid;
  attempt.sequence = sequence_++;
  attempt.started = now;
  attempt.stream_directory = start.stream_directory;
  attempt.pipes = std::move(pipes);
  // The run directory is there by now, so links in its path are seen.
  if (stream_prefix_.empty()) stream_prefix_ = live_stream_prefix(setup_.run_directory);
  by_pid_[pid] = std::move(owned);
  by_id_[start.attempt] = &attempt;
  for (size_t which = 0; which < attempt.pipes.size(); ++which) {
    const int fd = attempt.pipes[which].get();
    attempt.streams[which].set_name(live_stream_name(stream_prefix_, start.attempt, which == 1));
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
    by_fd_[fd] = {&attempt, which};
    if (!setup_.watch(fd)) close_stream(attempt, which);
  }
  setup_.report(launch::Started{start.attempt, pid});
}

void Attempts::signal(const launch::Signal& signal, Instant now) {
  const auto is_it = [&](const Waiting& waiting) {
    return waiting.start.attempt == signal.attempt;
  };
  if (const auto it = std::find_if(waiting_.begin(), waiting_.end(), is_it); it != waiting_.end()) {
    waiting_.erase(it);
    report_start_error(signal.attempt, "stopped before the machine had room to start it");
    return;
  }
  const auto found = by_id_.find(signal.attempt);
  if (found == by_id_.end() || found->second->ended) return;  // it ended while the message came
  const pid_t group = -found->second->pid;
  if (!signal.kill) {
    ::kill(group, SIGTERM);
    ::kill(group, SIGCONT);  // a stopped process handles nothing
    return;
  }
  ::kill(group, SIGKILL);
  find_orphans();
  for (auto& [pid, orphan] : orphans_) {
    if (orphan.attempt != signal.attempt || orphan.killed) continue;
    ::kill(pid, SIGKILL);
    orphan.killed = true;
  }
  next_look_ = now + kLookAgain;
}

void Attempts::kill_all() {
  waiting_.clear();
  for (const auto& [pid, attempt] : by_pid_) ::kill(-pid, SIGKILL);
}

void Attempts::on_readable(int fd, Instant now) {
  const auto found = by_fd_.find(fd);
  if (found == by_fd_.end()) return;  // closed by an earlier event of the same wake
  const auto [attempt, which] = found->second;
  read_stream(*attempt, which, kReadsPerWake);
  if (attempt->ended && attempt->is_drained()) report_ended(now);
}

void Attempts::read_stream(Attempt& attempt, size_t which, int reads_max) {
  std::array<char, kReadBytes> buffer;  // not initialised: read fills what is used
  for (int i = 0; i < reads_max && attempt.pipes[which].open(); ++i) {
    const ssize_t got = ::read(attempt.pipes[which].get(), buffer.data(), buffer.size());
    if (got > 0) {
      attempt.streams[which].append({buffer.data(), static_cast<size_t>(got)});
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
      close_stream(attempt, which);
    } else if (errno == EAGAIN) {
      return;
    }
  }
}

void Attempts::close_stream(Attempt& attempt, size_t which) {
  const int fd = attempt.pipes[which].get();
  if (fd < 0) return;
  by_fd_.erase(fd);
  attempt.pipes[which].reset();
}

void Attempts::on_reaped(pid_t pid, int status, const rusage& usage, Instant now) {
  if (const auto orphan = orphans_.find(pid); orphan != orphans_.end()) {
    const auto owner = by_id_.find(orphan->second.attempt);
    if (owner != by_id_.end()) owner->second->add_usage(usage);
    orphans_.erase(orphan);
    return;
  }
  const auto found = by_pid_.find(pid);
  if (found == by_pid_.end()) return;  // an orphan that ended before it was seen
  ended_.push_back(std::move(found->second));
  by_pid_.erase(found);
  Attempt& attempt = *ended_.back();
  attempt.ended = true;
  attempt.overdue = now + kDrainBound;
  attempt.add_usage(usage);
  attempt.exited.usage.wall = now - attempt.started;
  if (WIFSIGNALED(status)) attempt.exited.signal = WTERMSIG(status);
  if (WIFEXITED(status)) attempt.exited.exit_code = WEXITSTATUS(status);
  for (size_t which = 0; which < attempt.pipes.size(); ++which) {
    read_stream(attempt, which, kReadsAtExit);
  }
}

void Attempts::on_reaping_done(Instant now) {
  find_orphans();
  kill_orphans();
  report_ended(now);
  next_look_ = now + kLookAgain;
}

// Children of ours that nobody started here: somebody's parent died.
void Attempts::find_orphans() {
  children_.read(child_pids_);
  for (const pid_t pid : child_pids_) {
    if (by_pid_.contains(pid) || orphans_.contains(pid) || setup_.is_own(pid)) continue;
    orphans_[pid] = attribute(pid);
  }
}

Attempts::Orphan Attempts::attribute(pid_t pid) const {
  Orphan orphan{AttemptId{}, sequence_};
  const std::string mark = variable_of(pid, kMarkVariable);
  const std::string prefix = setup_.mark + ".";
  if (mark.starts_with(prefix)) {
    std::from_chars(mark.data() + prefix.size(), mark.data() + mark.size(), orphan.attempt.value);
    return orphan;
  }
  const pid_t session = read_stat(pid).session;
  for (const auto& [id, attempt] : by_id_) {
    if (attempt->pid == session) orphan.attempt = id;
  }
  return orphan;
}

bool Attempts::must_die(const Orphan& orphan) const {
  if (orphan.attempt.valid()) {
    const auto owner = by_id_.find(orphan.attempt);
    return owner == by_id_.end() || owner->second->ended;
  }
  return std::none_of(by_id_.begin(), by_id_.end(), [&](const auto& entry) {
    return !entry.second->ended && entry.second->sequence < orphan.seen_at;
  });
}

void Attempts::kill_orphans() {
  for (auto& [pid, orphan] : orphans_) {
    if (orphan.killed || !must_die(orphan) || read_stat(pid).state == 'Z') continue;
    ::kill(pid, SIGKILL);
    orphan.killed = true;
    const auto owner = by_id_.find(orphan.attempt);
    if (owner != by_id_.end()) ++owner->second->exited.leftover_killed;
  }
}

bool Attempts::has_orphans(AttemptId attempt) const {
  return std::any_of(orphans_.begin(), orphans_.end(),
                     [&](const auto& entry) { return entry.second.attempt == attempt; });
}

void Attempts::report_ended(Instant now) {
  const auto is_complete = [&](const std::unique_ptr<Attempt>& attempt) {
    return attempt->overdue <= now || (attempt->is_drained() && !has_orphans(attempt->id));
  };
  for (size_t i = 0; i < ended_.size();) {
    if (!is_complete(ended_[i])) {
      ++i;
      continue;
    }
    report_exited(*ended_[i]);
    by_id_.erase(ended_[i]->id);
    ended_.erase(ended_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void Attempts::report_exited(Attempt& attempt) {
  close_stream(attempt, 0);
  close_stream(attempt, 1);
  launch::Exited& exited = attempt.exited;
  exited.out = attempt.streams[0].finish(stream_file(attempt.stream_directory, attempt.id, 0));
  exited.err = attempt.streams[1].finish(stream_file(attempt.stream_directory, attempt.id, 1));
  setup_.report(exited);
}

void Attempts::on_time(Instant now) {
  for (size_t i = 0; i < waiting_.size();) {
    if (waiting_[i].next_try > now || !try_start(waiting_[i], now)) {
      ++i;
    } else {
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  if (next_look_ <= now) {
    next_look_ = Instant::never();
    find_orphans();
    kill_orphans();
  }
  report_ended(now);
}

Instant Attempts::next_time() const {
  Instant next = next_look_;
  for (const Waiting& waiting : waiting_) next = std::min(next, waiting.next_try);
  for (const auto& attempt : ended_) next = std::min(next, attempt->overdue);
  return next;
}

}  // namespace sluice::engine
