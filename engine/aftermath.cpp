#include "engine/aftermath.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

#include "io/file_descriptor.h"

namespace sluice::engine {
namespace {

namespace fs = std::filesystem;

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// True if some process that we may look at has the file mapped.
bool is_mapped(const std::string& path) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc", error)) {
    std::ifstream maps(entry.path() / "maps");
    for (std::string line; std::getline(maps, line);) {
      if (line.ends_with(path)) return true;
    }
  }
  return false;
}

bool is_ours(const fs::path& file, int64_t start_seconds) {
  struct stat info {};
  return ::lstat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == ::getuid() &&
         info.st_ctim.tv_sec >= start_seconds;
}

// Without the job's id: a segment of this user and local rank, made since we started, that nobody
// uses any more.
void remove_unused_segments(const std::string& begin, const std::string& end,
                            int64_t start_seconds) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("/dev/shm", error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(begin) || !name.ends_with(end)) continue;
    if (!is_ours(entry.path(), start_seconds) || is_mapped(entry.path().string())) continue;
    ::unlink(entry.path().c_str());
  }
}

void remove_vader_segments(int64_t start_seconds) {
  std::string local_rank = variable("OMPI_COMM_WORLD_LOCAL_RANK");
  if (local_rank.empty()) local_rank = variable("SLURM_LOCALID");
  if (local_rank.empty()) return;  // not under MPI
  const std::string host = host_name();
  const std::string exact =
      vader_segment_name(host, ::getuid(), variable("PMIX_NAMESPACE"), local_rank);
  if (!exact.empty()) {
    const fs::path file = fs::path("/dev/shm") / exact;
    if (is_ours(file, start_seconds)) ::unlink(file.c_str());
    return;
  }
  const std::string begin = "vader_segment." + host + "." + std::to_string(::getuid()) + ".";
  remove_unused_segments(begin, "." + local_rank, start_seconds);
}

}  // namespace

std::string vader_segment_name(const std::string& host, unsigned uid,
                               const std::string& pmix_namespace, const std::string& local_rank) {
  if (pmix_namespace.empty() ||
      pmix_namespace.find_first_not_of("0123456789") != std::string::npos) {
    return "";
  }
  const unsigned long job = std::strtoul(pmix_namespace.c_str(), nullptr, 10);
  std::array<char, 24> hex{};
  std::snprintf(hex.data(), hex.size(), "%lx", job);
  return "vader_segment." + host + "." + std::to_string(uid) + "." + hex.data() + "." + local_rank;
}

std::string mpi_job() {
  std::string job = variable("PMIX_NAMESPACE");
  for (char& c : job) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '-') c = '_';
  }
  return job;
}

std::string lost_note_name(int mpi_rank, const std::string& job) {
  return std::to_string(mpi_rank) + (job.empty() ? "" : "@" + job);
}

std::optional<uint32_t> rank_of_lost_note(std::string_view name, const std::string& job) {
  uint32_t rank = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), rank);
  if (error != std::errc() || lost_note_name(static_cast<int>(rank), job) != name) return {};
  return rank;
}

std::string describe_wait_status(int status) {
  if (WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    return "was killed by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
  }
  return "exited with code " + std::to_string(WEXITSTATUS(status));
}

bool Aftermath::rank_had_begun() const {
  std::error_code error;
  return fs::exists(tree->store.memory, error) || fs::exists(tree->store.disk, error);
}

void Aftermath::clean() const {
  for (const std::string& left : io::remove_store(tree->store)) {
    std::fprintf(stderr, "sluice: cannot remove %s; remove it by hand or with 'sluice clean'\n",
                 left.c_str());
  }
  remove_vader_segments(start_seconds);
}

void Aftermath::note_lost(const std::string& what) const {
  std::error_code error;
  if (tree->lost_folder.empty() || !fs::is_directory(tree->lost_folder.parent_path(), error)) {
    return;
  }
  fs::create_directory(tree->lost_folder, error);
  const std::string name = lost_note_name(tree->mpi_rank, mpi_job());
  const fs::path temporary = tree->lost_folder / ("." + name + "." + std::to_string(::getpid()));
  const io::FileDescriptor file(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  const std::string line = host_name() + " " + what + "\n";
  const bool written = file.open() && ::write(file.get(), line.data(), line.size()) ==
                                          static_cast<ssize_t>(line.size());
  if (written) fs::rename(temporary, tree->lost_folder / name, error);
  if (!written || error) {
    std::fprintf(stderr, "sluice: rank %d: %s (and this cannot be noted in %s)\n", tree->mpi_rank,
                 what.c_str(), tree->lost_folder.c_str());
  }
}

}  // namespace sluice::engine
