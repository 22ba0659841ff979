// `sluice`: argv -> guard -> launcher -> this executable again as the rank (hidden verb) -> MPI ->
// role -> exit code.
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "engine/cli.h"
#include "engine/descendants.h"
#include "engine/engine_rank.h"
#include "engine/launch_protocol.h"
#include "engine/launcher.h"
#include "engine/launcher_client.h"
#include "engine/topology.h"
#include "engine/verbs.h"
#include "io/fault.h"
#include "io/mpi_session.h"
#include "io/store.h"
#include "io/transport_local.h"
#include "io/transport_mpi.h"

namespace {

using namespace sluice;  // NOLINT(google-build-using-namespace): the program's own main file

constexpr const char* kRankVerb = "__rank";
constexpr int kBadSpec = 2;
constexpr int kEnvironmentUnusable = 3;

struct Owner {
  int64_t pid = 0;
  uint64_t start_time = 0;
};

// The rank is started as: sluice __rank <guard pid>:<guard start time> <the user's arguments>
bool parse_owner(const char* text, Owner& owner) {
  const char* const end = text + std::strlen(text);
  const auto pid = std::from_chars(text, end, owner.pid);
  if (pid.ec != std::errc() || pid.ptr == end || *pid.ptr != ':') return false;
  return std::from_chars(pid.ptr + 1, end, owner.start_time).ec == std::errc();
}

// Tells the launcher that this end is in order; whatever the exit code, no death is reported.
int leave_in_order(engine::LauncherClient& launcher, int code) {
  launcher.send(engine::launch::Quit{});
  for (int i = 0; launcher.wants_write() && i < 1000; ++i) launcher.flush();
  return code;
}

int run_alone(engine::RankContext& context) {
  if (const Status world = io::MpiSession::check_world(1); !world) {
    if (io::MpiSession::environment_rank() == 0)
      std::cerr << "sluice: error: " << world.error().message << "\n";
    return kEnvironmentUnusable;
  }
  auto pipeline = engine::read_for_run(context);
  if (!pipeline) return kBadSpec;
  io::LocalNetwork network(1);
  return engine::run_rank(context, network.end(scheduler::WorkerId(0)), &*pipeline);
}

// The launcher cleans up after it and tells of its death.
void end_hung_rank(int mpi_rank, int64_t seconds) {
  pollfd out{STDERR_FILENO, POLLOUT, 0};  // that it cannot be written may be why it hangs
  if (poll(&out, 1, 0) > 0 && out.revents == POLLOUT) {
    std::cerr << "sluice: error: rank " << mpi_rank << " hangs for " << seconds
              << " s and is ended; most likely MPI waits for a peer that died; what it did is done "
                 "elsewhere, or by the same command again\n";
  }
  (void)raise(SIGKILL);
}

[[noreturn]] void run_under_mpi(engine::RankContext& context) {
  std::optional<io::Pipeline> pipeline;
  const bool first = io::MpiSession::environment_rank() == 0;
  if (first) pipeline = engine::read_for_run(context);
  auto session = io::MpiSession::start();
  if (!session) {
    std::cerr << "sluice: error: " << session.error().message << "\n";
    std::_Exit(leave_in_order(*context.launcher, kEnvironmentUnusable));
  }
  io::MpiSession& mpi = **session;
  context.mpi_rank = mpi.mpi_rank();
  context.mpi_size = static_cast<int>(mpi.size());
  context.local_rank = mpi.node_rank();
  context.local_count = static_cast<int>(mpi.node_size());
  context.scheduler_is_local = mpi.node_leader() == 0;
  context.polled = true;
  context.profile = mpi.profile();
  context.versions.emplace_back("mpi", io::MpiSession::library_version());
  set_assert_mpi_rank(context.mpi_rank);
  io::set_fault_mpi_rank(context.mpi_rank);
  int code = kEnvironmentUnusable;
  const int64_t patience_s = engine::patience(context.options).ns / scheduler::seconds(1).ns;
  engine::HangWatch watch(static_cast<uint64_t>(patience_s), [rank = context.mpi_rank, patience_s] {
    end_hung_rank(rank, patience_s);
  });
  context.hang_watch = &watch;
  io::MpiTransport transport(mpi);
  const Status world = io::MpiSession::check_world(mpi.size());
  if (!world) {
    if (first) std::cerr << "sluice: error: " << world.error().message << "\n";
  } else if (first && !pipeline) {
    code = engine::refuse_start(transport, kBadSpec);
  } else {
    if (first && !mpi.profile_problem().empty())
      std::cerr << "sluice: warn: " << mpi.profile_problem() << "\n";
    code = engine::run_rank(context, transport, pipeline ? &*pipeline : nullptr);
  }
  std::cerr << std::flush;
  mpi.leave(leave_in_order(*context.launcher, code));
}

int rank_main(int argc, char** argv) {
  engine::RankContext context;
  Owner owner;
  if (argc < 4 || !parse_owner(argv[2], owner)) {
    std::cerr << "sluice: '" << kRankVerb << "' is for sluice itself; use 'sluice run PIPELINE'\n";
    return kBadSpec;
  }
  engine::set_process_name("sluice-rank");
  // Whoever reads our messages may go away ('| head'): the work goes on.
  (void)signal(SIGPIPE, SIG_IGN);
  // A file that grows beyond the limit is an error to be told (EFBIG), no death.
  (void)signal(SIGXFSZ, SIG_IGN);
  engine::LauncherClient launcher(engine::kLauncherFd);
  context.launcher = &launcher;
  std::vector<char*> arguments{argv[0]};
  arguments.insert(arguments.end(), argv + 3, argv + argc);
  const int parsed = engine::parse_command_line(static_cast<int>(arguments.size()),
                                                arguments.data(), context.options);
  if (parsed >= 0) return leave_in_order(launcher, parsed);
  auto node = engine::read_node();
  if (!node) {
    std::cerr << "sluice: error: " << node.error().message << "\n";
    return leave_in_order(*context.launcher, kEnvironmentUnusable);
  }
  context.node = std::move(*node);
  context.versions.emplace_back("hwloc", engine::hwloc_version());
  context.place = io::store_place(owner.pid, owner.start_time, io::MpiSession::environment_rank());
  // What a double death of an earlier run left on this node.
  (void)engine::kill_orphaned_attempts();
  (void)io::remove_orphaned_stores();
  if (io::MpiSession::launched_by_mpi()) run_under_mpi(context);
  io::set_fault_mpi_rank(0);
  return leave_in_order(launcher, run_alone(context));
}

// Guard, launcher and rank each need about twenty for themselves.
bool may_open_enough_files() {
  constexpr rlim_t kOpenFilesMin = 32;
  rlimit open_files{};
  if (getrlimit(RLIMIT_NOFILE, &open_files) != 0 || open_files.rlim_max >= kOpenFilesMin)
    return true;
  std::cerr << "sluice: error: only " << open_files.rlim_max << " files may be open at a time, "
            << kOpenFilesMin << " are needed at the least: raise the limit on open files "
            << "(ulimit -n)\n";
  return false;
}

int guard_main(int argc, char** argv, const engine::Options& options) {
  if (!may_open_enough_files()) return kEnvironmentUnusable;
  (void)signal(SIGXFSZ, SIG_IGN);
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const int64_t pid = getpid();
  const uint64_t start_time = io::process_start_time(pid);
  engine::ProcessTree tree;
  tree.mpi_rank = io::MpiSession::environment_rank();
  tree.store = io::store_place(pid, start_time, tree.mpi_rank);
  tree.lost_folder = options.directory().lost();
  tree.rank_argv = {self, kRankVerb, std::to_string(pid) + ":" + std::to_string(start_time)};
  tree.rank_argv.insert(tree.rank_argv.end(), argv + 1, argv + argc);
  tree.checker_program = self.parent_path() / "sluice-h5";
  return engine::run_guarded(tree);
}

// A query whose answer did not arrive has not succeeded. A reader who has seen enough is no error.
int with_output_written(int code) {
  std::cout.flush();
  if (std::cout) return code;
  pollfd out{STDOUT_FILENO, 0, 0};
  if (poll(&out, 1, 0) > 0 && (out.revents & POLLERR) != 0) return code;
  std::cerr << "sluice: error: stdout cannot be written; is the disk full that it goes to?\n";
  return kEnvironmentUnusable;
}

int run_main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], kRankVerb) == 0) return rank_main(argc, argv);
  engine::Options options;
  if (const int code = engine::parse_command_line(argc, argv, options); code >= 0)
    return with_output_written(code);
  if (options.verb == engine::Verb::kVersion) {
    std::cout << engine::version_text(io::MpiSession::library_version());
    return with_output_written(0);
  }
  if (options.verb != engine::Verb::kRun) return with_output_written(engine::run_verb(options));
  return guard_main(argc, argv, options);
}

}  // namespace

int main(int argc, char** argv) {
  std::error_code gone;
  (void)std::filesystem::current_path(gone);
  if (gone) {
    std::cerr << "sluice: error: the folder that this was started in is gone (" << gone.message()
              << "); change to one that is there\n";
    return kEnvironmentUnusable;
  }
  try {
    return run_main(argc, argv);
  } catch (const std::system_error& error) {
    std::cerr << "sluice: error: " << error.what();
    // The one thing that needs a try again is a thread.
    if (error.code() == std::errc::resource_unavailable_try_again)
      std::cerr << ": no more threads or processes; check the limit on them (ulimit -u)";
    std::cerr << "\n";
    return kEnvironmentUnusable;
  }
}
