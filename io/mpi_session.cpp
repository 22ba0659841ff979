#include "io/mpi_session.h"

// The C++ bindings that MPI itself has dropped; their headers do not pass our warnings.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <dlfcn.h>
#include <malloc.h>
#include <mpi.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

namespace sluice::io {

namespace {

constexpr size_t kChannels = 2;

constexpr size_t index_of(Channel channel) { return static_cast<size_t>(channel); }

std::optional<int> number_in(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return std::nullopt;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*end != '\0' || value < 0 || value > INT_MAX) return std::nullopt;
  return static_cast<int>(value);
}

// What batch systems call the number of tasks of a step and one's place in it.
struct BatchStep {
  const char* size;
  const char* place;
};
constexpr std::array<BatchStep, 4> kBatchSteps = {{{"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
                                                   {"FLUX_JOB_SIZE", "FLUX_TASK_RANK"},
                                                   {"JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK"},
                                                   {"PMI_SIZE", "PMI_RANK"}}};

const BatchStep* batch_step_of_several() {
  for (const BatchStep& step : kBatchSteps) {
    if (number_in(step.size).value_or(0) > 1) return &step;
  }
  return nullptr;
}

// `name = value` lines of one of Open MPI's parameter files.
bool file_sets(const std::filesystem::path& file, std::string_view parameter, std::string& value) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const size_t equals = line.find('=');
    const size_t begin = line.find_first_not_of(" \t");
    if (equals == std::string::npos || begin == std::string::npos || line[begin] == '#') continue;
    const size_t end = line.find_last_not_of(" \t", equals - 1) + 1;
    if (line.compare(begin, end - begin, parameter) != 0) continue;
    const size_t value_begin = line.find_first_not_of(" \t", equals + 1);
    value = value_begin == std::string::npos ? "" : line.substr(value_begin);
    return true;
  }
  return false;
}

// The places where Open MPI looks for parameters besides the environment: the user's, the
// distribution's, and that of the installation which this process has loaded.
std::vector<std::filesystem::path> parameter_files() {
  std::vector<std::filesystem::path> files;
  if (const char* home = std::getenv("HOME")) {
    files.push_back(std::filesystem::path(home) / ".openmpi/mca-params.conf");
  }
  files.emplace_back("/etc/openmpi/openmpi-mca-params.conf");
  Dl_info library = {};
  if (dladdr(reinterpret_cast<const void*>(&MPI_Init), &library) != 0 &&
      library.dli_fname != nullptr) {
    files.push_back(std::filesystem::path(library.dli_fname).parent_path().parent_path() /
                    "etc/openmpi-mca-params.conf");
  }
  return files;
}

// What the user or the site chose for one of Open MPI's parameters.
std::optional<std::string> chosen_elsewhere(const std::string& parameter) {
  if (const char* value = std::getenv(("OMPI_MCA_" + parameter).c_str())) return value;
  std::string value;
  for (const auto& file : parameter_files()) {
    if (file_sets(file, parameter, value)) return value;
  }
  return std::nullopt;
}

// Distributions exclude what does not work ("^ucx"): no choice against what we take.
bool only_excludes_others(std::string_view choice, std::string_view ours) {
  if (!choice.starts_with('^')) return false;
  for (size_t begin = 0; begin <= ours.size();) {
    const size_t end = std::min(ours.find(',', begin), ours.size());
    if (choice.find(ours.substr(begin, end - begin)) != std::string_view::npos) return false;
    begin = end + 1;
  }
  return true;
}

// Sets a parameter, unless user or site chose otherwise. Returns whether `ours` will be in force.
bool prefer(const std::string& parameter, const char* ours) {
  const std::optional<std::string> choice = chosen_elsewhere(parameter);
  if (choice && !only_excludes_others(*choice, ours)) return *choice == ours;
  ::setenv(("OMPI_MCA_" + parameter).c_str(), ours, 1);
  return true;
}

// Sets what must be known before MPI_Init. Returns whether the profile is "survive": a site that
// chose another PML (UCX, OFI) did so for its network, and with those ranks do not survive a death.
bool prepare_environment() {
  // Without this the endpoints of ranks are looked up at the first message between them; after the
  // detach nobody answers and the message would be lost without an error.
  prefer("mpi_add_procs_cutoff", "1000000");
  if (!prefer("pml", "ob1")) return false;
  prefer("btl", "self,vader,tcp");
  return true;
}

// Leaves the PMIx server, to which a lost connection means a failed rank. Open MPI holds the only
// reference to its PMIx client, and the library is not linked here: what is loaded is used. Returns
// why it did not work, or "".
std::string detach_from_launcher() {
  const std::string end = ", so a lost rank will end the run (the same command continues it)";
  void* library = ::dlopen("libpmix.so.2", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return "this MPI has not loaded libpmix.so.2" + end;
  auto finalize = reinterpret_cast<int (*)(const void*, size_t)>(::dlsym(library, "PMIx_Finalize"));
  auto initialized = reinterpret_cast<int (*)()>(::dlsym(library, "PMIx_Initialized"));
  if (finalize == nullptr || initialized == nullptr) {
    return "libpmix.so.2 has no 'PMIx_Finalize' or no 'PMIx_Initialized'" + end;
  }
  if (initialized() == 0) return "MPI runs without a PMIx server" + end;
  const int code = finalize(nullptr, 0);
  if (code != 0) return "PMIx_Finalize returned " + std::to_string(code) + end;
  if (initialized() != 0) return "something else than MPI still uses PMIx" + end;
  return "";
}

// Chunks of a megabyte are allocated and freed all the time. By default each of them would be
// mapped and unmapped, and its new pages cost many times the copy itself (measured: 13 s of CPU per
// GB against 1.7, on a virtual machine, where a page fault is dearest).
void keep_freed_memory() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
}

void sleep_microseconds(int64_t microseconds) {
  const timespec pause = {0, static_cast<long>(microseconds * 1000)};
  ::nanosleep(&pause, nullptr);
}

std::string error_text(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text = {};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return std::string(text.data(), static_cast<size_t>(length));
}

}  // namespace

struct MpiSession::State {
  int rank = 0;
  int size = 1;
  int node_rank = 0;
  int node_size = 1;
  int node_leader = 0;
  bool survives = false;
  bool detached = false;
  std::string problem;
  // One communicator per channel: neither matches the other's messages.
  std::array<MPI_Comm, kChannels> channels = {MPI_COMM_NULL, MPI_COMM_NULL};

  void look_around() {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm node = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &node_rank);
    MPI_Comm_size(node, &node_size);
    node_leader = rank;
    MPI_Bcast(&node_leader, 1, MPI_INT, 0, node);
    MPI_Comm_free(&node);
    for (MPI_Comm& channel : channels) {
      MPI_Comm_dup(MPI_COMM_WORLD, &channel);
      MPI_Comm_set_errhandler(channel, MPI_ERRORS_RETURN);
    }
  }
};

MpiSession::MpiSession(std::unique_ptr<State> state) : state_(std::move(state)) {}
MpiSession::~MpiSession() = default;

bool MpiSession::launched_by_mpi() {
  return number_in("OMPI_COMM_WORLD_SIZE") || number_in("PMIX_RANK") || number_in("PMI_RANK");
}

int MpiSession::environment_rank() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    if (const auto rank = number_in(variable)) return *rank;
  }
  const BatchStep* step = batch_step_of_several();
  return step == nullptr ? 0 : number_in(step->place).value_or(0);
}

std::string MpiSession::library_version() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string all(text.data(), static_cast<size_t>(length));
  return all.substr(0, all.find_first_of("\n,"));
}

Status MpiSession::check_world(size_t world_size) {
  // mpirun says the size itself, and its daemons may be a batch step of another size.
  if (world_size > 1 || number_in("OMPI_COMM_WORLD_SIZE")) return Done{};
  const BatchStep* step = batch_step_of_several();
  if (step == nullptr) return Done{};
  return Error{"started " + std::to_string(*number_in(step->size)) + " times without MPI (" +
               step->size + " says so, but this process is alone in its world): use " +
               "srun --mpi=pmix or mpirun"};
}

Expected<std::unique_ptr<MpiSession>> MpiSession::start() {
  keep_freed_memory();
  auto state = std::make_unique<State>();
  state->survives = prepare_environment();
  int thread_level = MPI_THREAD_SINGLE;
  const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &thread_level);
  if (code != MPI_SUCCESS) {
    return Error{"MPI_Init failed: " + error_text(code) +
                 "; try 'mpirun -n 2 hostname' and the site's MPI module"};
  }
  if (thread_level < MPI_THREAD_FUNNELED) {
    return Error{
        "this MPI has no support for threads beside it (MPI_THREAD_FUNNELED); use a build "
        "with thread support"};
  }
  state->look_around();
  if (state->survives) {
    // The server removes the names of shared-memory segments when its clients leave: all must have
    // opened them.
    MPI_Barrier(MPI_COMM_WORLD);
    state->problem = detach_from_launcher();
    state->detached = state->survives = state->problem.empty();
  }
  return std::unique_ptr<MpiSession>(new MpiSession(std::move(state)));
}

int MpiSession::mpi_rank() const { return state_->rank; }
size_t MpiSession::size() const { return static_cast<size_t>(state_->size); }
int MpiSession::node_rank() const { return state_->node_rank; }
int MpiSession::node_leader() const { return state_->node_leader; }
size_t MpiSession::node_size() const { return static_cast<size_t>(state_->node_size); }
bool MpiSession::survives() const { return state_->survives; }
std::string_view MpiSession::profile() const { return state_->survives ? "survive" : "fast"; }
const std::string& MpiSession::profile_problem() const { return state_->problem; }

bool MpiSession::barrier(scheduler::Duration limit) {
  MPI_Request request = MPI_REQUEST_NULL;
  if (MPI_Ibarrier(MPI_COMM_WORLD, &request) != MPI_SUCCESS) return false;
  const double end = MPI_Wtime() + limit.seconds();
  int done = 0;
  while (MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done == 0) {
    if (MPI_Wtime() > end) return false;
    sleep_microseconds(50);
  }
  return done != 0;
}

int MpiSession::communicator(Channel channel) const {
  return MPI_Comm_c2f(state_->channels[index_of(channel)]);
}

void MpiSession::leave(int exit_code) {
  std::fflush(nullptr);
  if (!state_->detached) {
    MPI_Finalize();
    ::_exit(exit_code);
  }
  // A small message counts as sent while MPI still holds it (a full socket): give it some progress.
  // MPI_Finalize would wait for the PMIx server for ever.
  constexpr int kLastSteps = 100;
  for (int step = 0; step < kLastSteps; ++step) {
    int found = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    sleep_microseconds(50);
  }
  ::_exit(exit_code);
}

}  // namespace sluice::io
