#include "engine/engine_rank.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <iostream>
#include <memory>
#include <vector>

#include "engine/clock.h"
#include "engine/launcher_client.h"
#include "engine/poll_backoff.h"
#include "engine/preflight.h"
#include "engine/report.h"
#include "engine/run_start.h"
#include "engine/scheduler_rank.h"
#include "engine/turn_watch.h"
#include "engine/worker_rank.h"
#include "io/checker_client.h"
#include "io/files.h"
#include "io/journal_scan.h"
#include "io/sources.h"
#include "io/spec.h"

namespace sluice::engine {

using scheduler::Instant;
using scheduler::WorkerId;

namespace {

constexpr int kEnvironmentUnusable = 3;
constexpr size_t kMessagesPerTurn = 1000;
constexpr scheduler::Duration kSameSignal = scheduler::seconds(2);
constexpr int kReserveCoresFrom =
    16;  // rank 0's worker withholds a core only on nodes at least this large

int stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

std::string why_stopped(int signal) {
  if (signal == SIGUSR1) return "SIGUSR1";
  return std::string(signal == SIGINT ? "Ctrl-C" : "SIGTERM") + " (a second one ends it at once)";
}

Report make_report(const Options& options) {
  Report::Options how;
  how.terminal = isatty(STDERR_FILENO) == 1;
  const char* term = std::getenv("TERM");
  if (term != nullptr && std::string_view(term) == "dumb") how.terminal = false;
  const char* no_color = std::getenv("NO_COLOR");
  how.color = how.terminal && (no_color == nullptr || *no_color == '\0');
  how.columns = [] {
    winsize size{};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
  };
  how.why = shell_words({"sluice", "why", options.directory().path.string()});
  how.command = options.command;
  how.directory = options.directory();
  return Report(how, [](std::string_view text) { std::cerr << text << std::flush; });
}

// A rank 0 that shares its node with workers has none of its own.
bool carries_worker(const RankContext& context) {
  return context.mpi_rank != 0 || context.local_count == 1;
}

std::vector<Core> worker_cores(const RankContext& context) {
  if (!carries_worker(context)) return {};
  // On rank 0's node the workers are the others.
  const bool with_scheduler = context.local_count > 1 && context.scheduler_is_local;
  const int count = with_scheduler ? context.local_count - 1 : context.local_count;
  const int rank = with_scheduler ? context.local_rank - 1 : context.local_rank;
  std::vector<Core> cores = share_of(context.node, rank, count);
  if (context.mpi_rank == 0 && context.mpi_size > 1) {
    int keep = context.options.reserve_cores;
    if (keep < 0) keep = static_cast<int>(context.node.cores.size()) >= kReserveCoresFrom ? 1 : 0;
    while (keep-- > 0 && cores.size() > 1) cores.erase(cores.begin());
  }
  return cores;
}

// The control loop of one rank, whatever roles it has.
class Loop {
 public:
  Loop(const RankContext& context, io::Transport& transport)
      : context_(context),
        transport_(transport),
        signal_fd_(stop_signals()),
        launcher_(*context.launcher) {}
  ~Loop() { close(signal_fd_); }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  bool add_worker(std::string& error);
  bool add_scheduler(io::Pipeline& pipeline);
  int run();

 private:
  void dispatch(WorkerId from, std::span<const std::byte> bytes);
  void unreadable(WorkerId from);
  bool read_launcher();
  void read_checker();
  void read_signals();
  void wait();
  void take_turn();
  [[nodiscard]] bool finished() const;
  [[nodiscard]] bool scheduler_lost() const;
  void say_counts() const;
  [[nodiscard]] Instant now() const { return clock_.now(); }

  // Descriptors that are worth a look, as of the last wait.
  struct Ready {
    bool signals = true;
    bool launcher = true;
    bool checker = true;
  };

  const RankContext& context_;
  io::Transport& transport_;
  int signal_fd_;
  Clock clock_;
  TurnWatch watch_;
  Ready ready_;
  PollBackoff backoff_;
  LauncherClient& launcher_;
  io::CheckerClient checker_{kCheckerFd};
  std::unique_ptr<IoThread> worker_io_;
  std::unique_ptr<WorkerRank> worker_;
  std::unique_ptr<Report> report_;
  RunStart start_;
  std::unique_ptr<SchedulerRank> scheduler_;
  int signals_ = 0;
  Instant signalled_;
  int signal_exit_ = 0;
  bool launcher_gone_ = false;
  bool cannot_read_ = false;  // a worker: what rank 0 wants
  bool active_ = false;       // a message came in this turn that was more than a sign of life
};

bool Loop::add_worker(std::string& error) {
  const int64_t sharers = std::max(1, context_.local_count);
  auto store = io::Store::create(context_.place,
                                 io::node_memory_budget_bytes(context_.place.memory) / sharers);
  if (!store) {
    error = store.error().message;
    return false;
  }
  WorkerOptions options;
  options.host = context_.node.host;
  options.node_key = context_.node.node_key;
  options.cores = worker_cores(context_);
  const size_t all = std::max<size_t>(context_.node.cores.size(), 1);
  options.memory_bytes = context_.node.memory_bytes / static_cast<int64_t>(all) *
                         static_cast<int64_t>(options.cores.size());
  options.scheduler_silent_max = patience(context_.options);
  options.place = store->place();  // not the wanted one if node memory cannot be used
  worker_io_ = std::make_unique<IoThread>("sluice-io");
  worker_ = std::make_unique<WorkerRank>(std::move(options), std::move(*store), transport_,
                                         launcher_, checker_, *worker_io_);
  worker_->start(now());
  return true;
}

Expected<RunRules> run_rules(const io::Pipeline& pipeline, const Options& options) {
  RunRules rules;
  auto selection = select(pipeline, options.selection);
  if (!selection) return selection.error();
  rules.selection = std::move(*selection);
  if (!options.failures_max.empty()) {
    const auto most = failures_max(options.failures_max, rules.selection.count(pipeline));
    if (!most) return most.error();
    rules.failures_max = *most;
  }
  rules.lost_after = scheduler::seconds(options.lost_after_s);
  rules.fresh = options.fresh;
  return rules;
}

bool Loop::add_scheduler(io::Pipeline& pipeline) {
  report_ = std::make_unique<Report>(make_report(context_.options));
  RecordKeeper::Callbacks callbacks;
  callbacks.journal_failed = [this](const Error& error) {
    scheduler_->records_failed(now(), error);
  };
  callbacks.mail = [this](const Mail& mail) { scheduler_->on_mail(now(), mail); };
  auto rules = run_rules(pipeline, context_.options);
  if (!rules) {
    report_->line("error", rules.error().message);
    return false;
  }
  RunOrigin origin{context_.options.command_anywhere(),
                   {{"sluice", SLUICE_VERSION}, {"hdf5", SLUICE_HDF5_VERSION}}};
  origin.versions.insert(origin.versions.end(), context_.versions.begin(), context_.versions.end());
  auto started = start_run(pipeline, context_.options.directory(), context_.node.host,
                           std::move(callbacks), origin, *rules);
  if (!started) {
    report_->line("error", started.error().message);
    return false;
  }
  start_ = std::move(*started);
  for (const std::string& text : start_.messages) report_->line("warn", text);
  SchedulerOptions options{start_.run_uuid,  start_.directory, start_.core, 0,
                           context_.sources, &watch_};
  options.workers_expected =
      static_cast<size_t>(context_.mpi_size) - (carries_worker(context_) ? 0 : 1);
  if (!context_.profile.empty()) {
    report_->line("info",
                  std::to_string(context_.mpi_size) + " ranks, profile " + context_.profile);
  }
  if (!context_.node.narrowed.empty()) report_->line("warn", context_.node.narrowed);
  report_->started(pipeline.name, pipeline.graph.instance_count(), start_.restored.size());
  if (!rules->selection.instances.empty()) {
    const size_t count = rules->selection.count(pipeline);
    report_->line("info", std::to_string(count) + (count == 1 ? " instance is" : " instances are") +
                              " selected, the others are left out");
  }
  scheduler_ = std::make_unique<SchedulerRank>(std::move(options), pipeline, transport_,
                                               *start_.keeper, *report_);
  scheduler_->begin(now(), opening(rules->selection, std::move(start_.restored)),
                    start_.durable_paths, start_.overtaken);
  return true;
}

void Loop::dispatch(WorkerId from, std::span<const std::byte> bytes) {
  auto message = io::decode(bytes);
  if (!message) {
    std::cerr << "sluice: error: rank " << transport_.self().value
              << " got a message it cannot read from rank " << from.value << ": "
              << message.error().message << "; are all ranks the same version of sluice?\n";
    unreadable(from);
    return;
  }
  const auto* report = std::get_if<io::message::Report>(&*message);
  const bool sign_of_life =
      std::holds_alternative<io::message::Ping>(*message) ||
      (report != nullptr && std::holds_alternative<scheduler::event::Heartbeat>(report->event));
  if (!sign_of_life) active_ = true;
  // Rank 0's process may have both roles: each ignores what is not for it.
  if (scheduler_) scheduler_->on_message(now(), from, *message);
  if (worker_) worker_->on_message(now(), from, std::move(*message));
}

void Loop::read_checker() {
  std::vector<io::CheckReply> replies;
  // A broken socket means that the launcher is dead: read_launcher sees it.
  (void)checker_.read(now(), replies);
  for (const io::CheckReply& reply : replies) {
    if (worker_) worker_->on_checked(now(), reply);
  }
}

// What it said is not known, so rank 0 and a worker cannot rely on each other any more: the worker
// is lost, as if it had died. Between workers nothing is said that is not asked for again.
void Loop::unreadable(WorkerId from) {
  if (scheduler_) {
    scheduler_->on_mail(now(), {false, {from.value}});
  } else if (from == kSchedulerRank) {
    cannot_read_ = true;
  }
}

bool Loop::read_launcher() {
  std::vector<LaunchMessage> messages;
  const bool alive = launcher_.read(messages);
  if (!messages.empty()) active_ = true;  // what we say about them is answered
  for (const LaunchMessage& one : messages) {
    if (worker_) worker_->on_launcher(now(), one);
  }
  return alive;
}

// A batch system may signal every process of a step, and the guard forwards its own: a repeated
// SIGTERM counts as a second one only after kSameSignal. Ctrl-C reaches the guard alone.
void Loop::read_signals() {
  signalfd_siginfo info{};
  while (read(signal_fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    const bool echo = signal == SIGTERM && signals_ > 0 && now() < signalled_ + kSameSignal;
    if (echo) continue;
    signalled_ = now();
    ++signals_;
    if (signals_ > 1 && signal != SIGUSR1) signal_exit_ = 128 + signal;
    if (scheduler_) scheduler_->request_stop(now(), why_stopped(signal));
  }
}

bool Loop::finished() const {
  if (signal_exit_ != 0 || launcher_gone_ || cannot_read_) return true;
  if (scheduler_) return scheduler_->finished(now());
  return worker_->left() && transport_.pending() == 0;
}

void Loop::wait() {
  const Instant at = now();
  Instant deadline = Instant::never();
  bool bulk = false;
  if (scheduler_) {
    deadline = std::min({deadline, scheduler_->next_deadline(), start_.keeper->next_deadline()});
  }
  if (worker_) {
    deadline = std::min(deadline, worker_->next_deadline());
    bulk = worker_->bulk_active();
  }
  int64_t timeout_ns =
      std::max<int64_t>(0, deadline.ns == Instant::never().ns ? 1'000'000'000 : (deadline - at).ns);
  if (transport_.ready()) {
    timeout_ns = 0;  // rank 0 and its own worker talk to each other
  } else if (context_.polled) {
    const bool supplied =
        (!scheduler_ || scheduler_->workers_supplied()) && (!worker_ || worker_->supplied());
    const scheduler::Duration sleep =
        backoff_.next(at, active_, bulk || transport_.pending() > 0, supplied);
    timeout_ns = std::min(timeout_ns, sleep.ns);
  }
  std::vector<pollfd> fds{
      {signal_fd_, POLLIN, 0}, {launcher_.fd(), POLLIN, 0}, {checker_.fd(), POLLIN, 0}};
  if (launcher_.wants_write()) fds[1].events |= POLLOUT;
  if (worker_io_) fds.push_back({worker_io_->fd(), POLLIN, 0});
  if (start_.keeper) fds.push_back({start_.keeper->fd(), POLLIN, 0});
  const timespec timeout{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  const int found = ppoll(fds.data(), fds.size(), &timeout, nullptr);
  ready_ = Ready{found > 0 && fds[0].revents != 0, found > 0 && fds[1].revents != 0,
                 found > 0 && fds[2].revents != 0};
}

void Loop::take_turn() {
  active_ = false;
  (void)transport_.poll([this](WorkerId from, io::Channel,
                               std::span<const std::byte> bytes) { dispatch(from, bytes); },
                        kMessagesPerTurn);
  if (ready_.launcher && !read_launcher()) launcher_gone_ = true;
  if (ready_.checker) read_checker();
  if (worker_io_) worker_io_->run_completions();
  if (start_.keeper) start_.keeper->run_completions();
  if (ready_.signals) read_signals();
  if (worker_) worker_->tick(now());
  if (start_.keeper) start_.keeper->tick(now());
  if (scheduler_) {
    scheduler_->tick(now());
    scheduler_->schedule(now());
  }
}

bool Loop::scheduler_lost() const { return !scheduler_ && worker_->scheduler_lost(now()); }

int Loop::run() {
  while (true) {
    if (context_.hang_watch != nullptr) context_.hang_watch->turn();
    watch_.begin(now());
    take_turn();
    watch_.end(now());
    if (finished()) break;
    if (scheduler_lost()) {
      std::cerr << "sluice: worker " << context_.mpi_rank << " on " << context_.node.host
                << " has not heard from rank 0 for "
                << patience(context_.options).ns / scheduler::seconds(1).ns
                << " s and leaves; the next submission continues the run\n";
      launcher_gone_ = true;
      break;
    }
    wait();
  }
  say_counts();
  if (signal_exit_ != 0) return signal_exit_;
  if (launcher_gone_ || cannot_read_) return kEnvironmentUnusable;
  return scheduler_ ? scheduler_->exit_code() : 0;
}

void Loop::say_counts() const {
  const char* debug = std::getenv("SLUICE_DEBUG");
  if (debug == nullptr || std::string_view(debug) != "1") return;
  std::cerr << "sluice: debug: rank " << context_.mpi_rank << ": " << watch_.text()
            << (worker_ ? "; " + worker_->received_text() : "") << "\n";
}

// A run writes, replaces and cleans what lies in its directory. Killed at once, it may have left
// there no more than its guard's word of a death.
bool is_somebody_elses(const RunDirectory& directory) {
  const auto names = io::real_files().list(directory.path);
  if (!names || io::is_run_directory(*names)) return false;
  const auto foreign = std::find_if(names->begin(), names->end(), [&](const std::string& name) {
    const std::filesystem::path path = directory.path / name;
    return path != directory.lost() && path != directory.stop_request() &&
           !path.string().starts_with(directory.sources_cache().string());
  });
  if (foreign == names->end()) return false;
  std::cerr << "sluice: error: the run directory " << directory.path.string() << " holds '"
            << *foreign << "' but no run; name one with --run-dir that is new, empty, or of an "
            << "earlier run\n";
  return true;
}

}  // namespace

scheduler::Duration patience(const Options& options) {
  return scheduler::seconds(options.lost_after_s) * 2;
}

std::optional<io::Pipeline> read_for_run(RankContext& context) {
  const Options& options = context.options;
  const RunDirectory directory = options.directory();
  if (is_somebody_elses(directory)) return std::nullopt;
  io::FileSourceIds sources(directory.sources_cache());
  io::Diagnostics diagnostics;
  auto pipeline = io::read_pipeline(options.spec_options(), sources, diagnostics);
  if (pipeline) preflight(*pipeline, directory, any_machine(), diagnostics);
  diagnostics.print(std::cerr);
  if (diagnostics.errors() > 0) return std::nullopt;
  if (pipeline) {
    if (const auto rules = run_rules(*pipeline, options); !rules) {
      std::cerr << "sluice: error: " << rules.error().message << "\n";
      return std::nullopt;
    }
  }
  if (pipeline && std::filesystem::exists(directory.path))
    (void)sources.save();  // a cache: only speed is lost
  context.sources = sources.take_stamps();
  return pipeline;
}

int refuse_start(io::Transport& transport, int code) {
  Clock clock;
  for (uint32_t rank = 1; rank < transport.size(); ++rank) {
    transport.send(WorkerId(rank), io::Channel::kControl, io::encode(io::message::Leave{}));
  }
  const auto ignore = [](WorkerId, io::Channel, std::span<const std::byte>) {};
  while (transport.pending() > 0 && clock.now() < Instant{scheduler::seconds(5).ns}) {
    (void)transport.poll(ignore, kMessagesPerTurn);
  }
  return code;
}

int run_rank(const RankContext& context, io::Transport& transport, io::Pipeline* pipeline) {
  Loop loop(context, transport);
  if (context.mpi_rank == 0 && !loop.add_scheduler(*pipeline))
    return refuse_start(transport, kEnvironmentUnusable);
  std::string error;
  if (carries_worker(context) && !loop.add_worker(error)) {
    std::cerr << "sluice: error: " << context.node.host << ": " << error << "\n";
    return kEnvironmentUnusable;
  }
  return loop.run();
}

}  // namespace sluice::engine
