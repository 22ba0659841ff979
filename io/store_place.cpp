// Where a node's stores are, whose they are, and how much memory they may take.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "io/sources.h"
#include "io/store.h"
#include "io/tier.h"

namespace sluice::io {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "sluice.";
constexpr std::string_view kDiskSuffix = ".disk";
constexpr std::string_view kUnknownPidSpace = "00000000";
constexpr size_t kPidSpaceDigits = 8;

std::string environment(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

bool usable(const fs::path& folder) {
  struct statvfs system {};
  return folder.is_absolute() && ::access(folder.c_str(), W_OK | X_OK) == 0 &&
         ::statvfs(folder.c_str(), &system) == 0 && (system.f_flag & (ST_NOEXEC | ST_RDONLY)) == 0;
}

fs::path disk_base() {
  const fs::path own = environment("TMPDIR");
  return own.is_absolute() && ::access(own.c_str(), W_OK | X_OK) == 0 ? own : fs::path("/tmp");
}

fs::path memory_base() {
  const fs::path wanted = environment("SLUICE_NODE_MEMORY");
  if (wanted.is_absolute()) return wanted;
  const fs::path tmpfs = "/dev/shm";
  return usable(tmpfs) ? tmpfs : disk_base();
}

// A name is no proof: only a folder that is ours, and no link, is removed.
bool is_own_folder(const fs::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid();
}

std::string read_text(const fs::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Where a pid means what it means here: this boot of this host, and this namespace of pids. Its
// hash is part of a store's name, because a base may be seen from elsewhere, $TMPDIR by other hosts
// and /dev/shm by other containers, where the owner's pid is nobody's or someone else's.
std::string own_pid_space() {
  const std::string boot_id = read_text("/proc/sys/kernel/random/boot_id");
  std::error_code code;
  const fs::path pids = fs::read_symlink("/proc/self/ns/pid", code);
  if (boot_id.empty() || code) return std::string(kUnknownPidSpace);
  return to_hex(hash_text(boot_id + pids.string())).substr(0, kPidSpaceDigits);
}

// sluice.<uid>.<owner pid>.<owner start time>.<pid space>.<mpi_rank>[.disk]
struct StoreName {
  int64_t owner_pid = 0;
  uint64_t owner_start_time = 0;
};
// Nothing for a name that is another user's, or whose owner cannot be judged from here.
std::optional<StoreName> own_store(std::string_view name, std::string_view pid_space) {
  if (name.ends_with(kDiskSuffix)) name.remove_suffix(kDiskSuffix.size());
  if (!name.starts_with(kPrefix)) return {};
  std::istringstream fields{std::string(name.substr(kPrefix.size()))};
  std::vector<std::string> parts;
  for (std::string part; std::getline(fields, part, '.');) parts.push_back(part);
  if (parts.size() != 5 || number<uint64_t>(parts[0]) != uint64_t{::geteuid()}) return {};
  const auto pid = number<int64_t>(parts[1]);
  const auto start = number<uint64_t>(parts[2]);
  if (!pid || !start || parts[3] != pid_space || !number<int>(parts[4])) return {};
  return StoreName{*pid, *start};
}

int64_t free_memory_bytes(const fs::path& root) {
  std::istringstream lines(read_text(root / "proc/meminfo"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string name;
    int64_t kibibytes = 0;
    if (fields >> name >> kibibytes && name == "MemAvailable:") return kibibytes * 1024;
  }
  return std::numeric_limits<int64_t>::max();
}

// The smallest limit on the way from the process's group to the root; "max" and huge numbers: none.
int64_t smallest_limit(const fs::path& mount, fs::path group, const char* file) {
  int64_t smallest = std::numeric_limits<int64_t>::max();
  while (true) {
    std::string text = read_text(mount / group.relative_path() / file);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    if (const auto limit = number<int64_t>(text)) smallest = std::min(smallest, *limit);
    if (!group.has_relative_path()) return smallest;
    group = group.parent_path();
  }
}

int64_t free_space_bytes(fs::path folder) {
  struct statvfs system {};
  while (::statvfs(folder.c_str(), &system) != 0) {
    if (!folder.has_relative_path()) return std::numeric_limits<int64_t>::max();
    folder = folder.parent_path();
  }
  return static_cast<int64_t>(system.f_bavail * system.f_frsize);
}

}  // namespace

int64_t cgroup_memory_limit_bytes(const fs::path& root) {
  int64_t smallest = std::numeric_limits<int64_t>::max();
  std::istringstream lines(read_text(root / "proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const fs::path group = line.substr(second + 1);
    const fs::path mounts = root / "sys/fs/cgroup";
    if (controllers == ",,") {
      smallest = std::min({smallest, smallest_limit(mounts, group, "memory.max"),
                           smallest_limit(mounts / "unified", group, "memory.max")});
    } else if (controllers.find(",memory,") != std::string::npos) {
      smallest =
          std::min(smallest, smallest_limit(mounts / "memory", group, "memory.limit_in_bytes"));
    }
  }
  return smallest;
}

int64_t node_memory_budget_bytes(const fs::path& tmpfs, const fs::path& root) {
  const auto wanted = number<int64_t>(environment("SLUICE_NODE_MEMORY_BYTES"));
  if (wanted && *wanted >= 0) return *wanted;
  const int64_t memory = std::min(cgroup_memory_limit_bytes(root), free_memory_bytes(root));
  return std::min(memory, free_space_bytes(tmpfs)) / 2;
}

StorePlace store_place(int64_t owner_pid, uint64_t owner_start_time, int mpi_rank) {
  const std::string name = std::string(kPrefix) + std::to_string(::geteuid()) + "." +
                           std::to_string(owner_pid) + "." + std::to_string(owner_start_time) +
                           "." + own_pid_space() + "." + std::to_string(mpi_rank);
  return {memory_base() / name, disk_base() / (name + std::string(kDiskSuffix))};
}

std::vector<std::string> remove_store(const StorePlace& place) {
  std::vector<std::string> left;
  for (const fs::path& folder : {place.memory, place.disk}) {
    const Status removed = remove_tree(folder);
    if (!removed) left.push_back(removed.error().message);
  }
  return left;
}

std::vector<fs::path> orphaned_stores() {
  const std::string pid_space = own_pid_space();
  if (pid_space == kUnknownPidSpace) return {};
  std::set<fs::path> found;
  for (const fs::path& base :
       {memory_base(), disk_base(), fs::path("/dev/shm"), fs::path("/tmp")}) {
    std::error_code code;
    fs::directory_iterator entry(base, code);
    for (; !code && entry != fs::directory_iterator(); entry.increment(code)) {
      const auto store = own_store(entry->path().filename().string(), pid_space);
      if (!store || !is_own_folder(entry->path())) continue;
      if (process_start_time(store->owner_pid) == store->owner_start_time) continue;
      found.insert(entry->path());
    }
  }
  return {found.begin(), found.end()};
}

size_t remove_orphaned_stores() {
  std::set<std::string> removed;
  for (const fs::path& store : orphaned_stores()) {
    if (!remove_tree(store)) continue;
    std::string name = store.filename();
    if (name.ends_with(kDiskSuffix)) name.resize(name.size() - kDiskSuffix.size());
    removed.insert(name);
  }
  return removed.size();
}

uint64_t process_start_time(int64_t pid) {
  const std::string text = read_text("/proc/" + std::to_string(pid) + "/stat");
  // The second field is the program's name in parentheses and may itself hold blanks and ')'.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  constexpr int kStartTime = 22;
  for (int i = 3; i <= kStartTime; ++i) {
    if (!(fields >> field)) return 0;
  }
  return number<uint64_t>(field).value_or(0);
}

}  // namespace sluice::io
