#include "engine/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <ctime>
#include <memory>

namespace sluice::engine {
namespace {

// Everything in a file of /proc; "" if it cannot be read.
std::string read_proc(const std::string& path) {
  const io::FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> buffer;  // not initialised: read fills what is used
  ssize_t got = 0;
  while (file.open() && (got = ::read(file.get(), buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<size_t>(got));
  }
  return text;
}

std::string proc_path(pid_t pid, std::string_view file) {
  return "/proc/" + std::to_string(pid) + "/" + std::string(file);
}

template <class Number>
bool parse(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

void parse_pids(std::string_view text, std::vector<pid_t>& pids) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    pid_t pid = 0;
    if (parse(text.substr(0, end), pid)) pids.push_back(pid);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// Names of a folder of /proc that are numbers.
std::vector<pid_t> numbers_in(const std::string& folder) {
  std::vector<pid_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(folder.c_str()), &::closedir);
  if (directory == nullptr) return numbers;
  while (const dirent* entry = ::readdir(directory.get())) {
    pid_t number = 0;
    if (parse(std::string_view(entry->d_name), number)) numbers.push_back(number);
  }
  return numbers;
}

std::vector<pid_t> children_by_scan(pid_t parent) {
  std::vector<pid_t> children;
  for (const pid_t pid : numbers_in("/proc")) {
    if (read_stat(pid).parent == parent) children.push_back(pid);
  }
  return children;
}

std::string own_list_path() {
  const std::string pid = std::to_string(::getpid());
  return "/proc/" + pid + "/task/" + pid + "/children";
}

int64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

void kill_tree(pid_t pid) {
  // Children first looked up: once it is dead they are ours, and the next round finds those too.
  const std::vector<pid_t> children = children_of(pid);
  ::kill(pid, SIGKILL);
  for (const pid_t child : children) kill_tree(child);
}

// Process ids mean the same to it as to us (a container has its own).
bool in_our_pid_namespace(pid_t pid) {
  struct stat ours {};
  struct stat theirs {};
  return ::stat("/proc/self/ns/pid", &ours) == 0 &&
         ::stat(proc_path(pid, "ns/pid").c_str(), &theirs) == 0 && ours.st_ino == theirs.st_ino;
}

bool guard_is_gone(std::string_view attempt_mark) {
  const size_t dash = attempt_mark.find('-');
  const size_t dot = attempt_mark.find('.');
  if (dash == std::string_view::npos || dot == std::string_view::npos || dot < dash) return false;
  pid_t pid = 0;
  uint64_t start_time = 0;
  if (!parse(attempt_mark.substr(0, dash), pid)) return false;
  if (!parse(attempt_mark.substr(dash + 1, dot - dash - 1), start_time)) return false;
  return read_stat(pid).start_time != start_time;
}

}  // namespace

std::vector<pid_t> children_of(pid_t pid) {
  if (::access(own_list_path().c_str(), R_OK) != 0) return children_by_scan(pid);
  std::vector<pid_t> children;
  for (const pid_t thread : numbers_in(proc_path(pid, "task"))) {
    parse_pids(read_proc(proc_path(pid, "task/" + std::to_string(thread) + "/children")), children);
  }
  return children;
}

OwnChildren::OwnChildren() : list_(::open(own_list_path().c_str(), O_RDONLY | O_CLOEXEC)) {}

void OwnChildren::read(std::vector<pid_t>& pids) {
  pids.clear();
  if (!list_.open()) {
    pids = children_by_scan(::getpid());
    return;
  }
  std::array<char, 4096> buffer;  // not initialised: pread fills what is used
  text_.clear();
  off_t offset = 0;
  ssize_t got = 0;
  while ((got = ::pread(list_.get(), buffer.data(), buffer.size(), offset)) > 0) {
    text_.append(buffer.data(), static_cast<size_t>(got));
    offset += got;
    if (static_cast<size_t>(got) < buffer.size() / 2) break;  // the usual case in one call
  }
  parse_pids(text_, pids);
}

bool kill_all_descendants(scheduler::Duration bound) {
  const int64_t deadline = monotonic_ns() + bound.ns;
  constexpr int kPauseMsMax = 16;
  for (int pause_ms = 1;; pause_ms = std::min(2 * pause_ms, kPauseMsMax)) {
    pid_t reaped = 0;
    while ((reaped = ::waitpid(-1, nullptr, WNOHANG)) > 0) {
    }
    if (reaped < 0 && errno == ECHILD) return true;
    if (monotonic_ns() > deadline) return false;
    for (const pid_t child : children_of(::getpid())) kill_tree(child);
    ::poll(nullptr, 0, pause_ms);
  }
}

ProcessStat read_stat(pid_t pid) {
  const std::string text = read_proc(proc_path(pid, "stat"));
  const size_t name_end = text.rfind(')');  // the name may hold blanks and brackets
  ProcessStat stat;
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return stat;
  std::string_view rest = std::string_view(text).substr(name_end + 2);
  constexpr int kState = 3;  // as proc(5) counts the fields
  constexpr int kParent = 4;
  constexpr int kSession = 6;
  constexpr int kStartTime = 22;
  for (int field = kState; field <= kStartTime && !rest.empty(); ++field) {
    const size_t end = std::min(rest.find(' '), rest.size());
    const std::string_view word = rest.substr(0, end);
    bool good = true;
    if (field == kState) stat.state = word.front();
    if (field == kParent) good = parse(word, stat.parent);
    if (field == kSession) good = parse(word, stat.session);
    if (field == kStartTime) good = parse(word, stat.start_time);
    if (!good) return {};
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return stat;
}

std::string variable_of(pid_t pid, std::string_view name) {
  const std::string all = read_proc(proc_path(pid, "environ"));
  std::string_view rest = all;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\0'), rest.size());
    const std::string_view entry = rest.substr(0, end);
    if (entry.size() > name.size() && entry[name.size()] == '=' && entry.starts_with(name)) {
      return std::string(entry.substr(name.size() + 1));
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return "";
}

bool knows_its_rank(pid_t pid) {
  return !variable_of(pid, "OMPI_COMM_WORLD_SIZE").empty() ||
         !variable_of(pid, "PMIX_RANK").empty() || !variable_of(pid, "PMI_RANK").empty();
}

std::vector<pid_t> ancestors_up_to_mpirun(pid_t pid) {
  constexpr size_t kMost = 32;
  std::vector<pid_t> ancestors;
  do {
    pid = read_stat(pid).parent;
    if (pid <= 1) break;
    ancestors.push_back(pid);
  } while (ancestors.size() < kMost && knows_its_rank(pid));
  return ancestors;
}

std::string own_mark() {
  return std::to_string(::getpid()) + "-" + std::to_string(read_stat(::getpid()).start_time);
}

size_t kill_orphaned_attempts() {
  size_t killed = 0;
  for (const pid_t pid : numbers_in("/proc")) {
    struct stat owner {};
    if (::stat(proc_path(pid, "").c_str(), &owner) != 0 || owner.st_uid != ::getuid()) continue;
    const std::string mark = variable_of(pid, "SLUICE_ATTEMPT");
    if (mark.empty() || pid == ::getpid() || !in_our_pid_namespace(pid)) continue;
    if (!guard_is_gone(mark)) continue;
    if (::kill(pid, SIGKILL) == 0) ++killed;
  }
  return killed;
}

}  // namespace sluice::engine
