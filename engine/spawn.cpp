#include "engine/spawn.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string_view>

namespace sluice::engine {
namespace {

enum class Step : uint8_t { kNone, kSession, kCpus, kDescriptors, kDirectory, kExec };

// All that the child needs, ready made: between vfork and exec it shares the parent's memory and
// may neither allocate nor lock.
struct Prepared {
  const char* program;
  char* const* argv;
  char* const* environment;
  const char* working_directory;
  const SpawnPlan* plan;
  std::vector<unsigned long> cpu_bits;
  pid_t parent;
  Step failed_step;  // written by the child, read by the parent
  int error;
};

constexpr size_t kBitsPerWord = sizeof(unsigned long) * CHAR_BIT;

std::vector<unsigned long> cpu_bits(const std::vector<int32_t>& cpus) {
  if (cpus.empty()) return {};
  const auto last = static_cast<size_t>(*std::max_element(cpus.begin(), cpus.end()));
  std::vector<unsigned long> bits(last / kBitsPerWord + 1);
  for (const int32_t cpu : cpus) {
    const auto index = static_cast<size_t>(cpu);
    bits[index / kBitsPerWord] |= 1UL << (index % kBitsPerWord);
  }
  return bits;
}

[[noreturn]] void give_up(Prepared& prepared, Step step) {
  prepared.failed_step = step;
  prepared.error = errno;
  ::_exit(127);
}

[[noreturn]] void become(Prepared& prepared) {
  const SpawnPlan& plan = *prepared.plan;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != prepared.parent) ::_exit(127);  // the parent died before the line above
  if (plan.new_session ? ::setsid() < 0 : ::setpgid(0, 0) < 0) give_up(prepared, Step::kSession);
  if (!prepared.cpu_bits.empty() &&
      ::sched_setaffinity(0, prepared.cpu_bits.size() * sizeof(unsigned long),
                          reinterpret_cast<const cpu_set_t*>(prepared.cpu_bits.data())) != 0) {
    give_up(prepared, Step::kCpus);
  }
  for (const auto& [ours, childs] : plan.descriptors) {
    const int result = ours == childs ? ::fcntl(ours, F_SETFD, 0) : ::dup2(ours, childs);
    if (result < 0) give_up(prepared, Step::kDescriptors);
  }
  if (*prepared.working_directory != '\0' && ::chdir(prepared.working_directory) != 0) {
    give_up(prepared, Step::kDirectory);
  }
  if (plan.open_files.rlim_max != 0) ::setrlimit(RLIMIT_NOFILE, &plan.open_files);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(prepared.program, prepared.argv, prepared.environment);
  give_up(prepared, Step::kExec);
}

// In a function of its own, so that no variable of the caller lives in a register across vfork.
[[gnu::noinline]] pid_t fork_and_become(Prepared& prepared) {
  const pid_t pid = ::vfork();
  if (pid == 0) become(prepared);
  return pid;
}

std::string in_quotes(std::string_view text) { return "'" + std::string(text) + "'"; }

std::string octal(mode_t mode) {
  std::string digits = "0000";
  for (size_t i = 0; i < digits.size(); ++i) {
    digits[digits.size() - 1 - i] = static_cast<char>('0' + ((mode >> (3 * i)) & 7U));
  }
  return digits;
}

// The interpreter a script names, "" if it is not a script.
std::string interpreter_of(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  std::array<char, 256> start{};
  const ssize_t got = ::read(fd, start.data(), start.size());
  ::close(fd);
  const std::string_view text(start.data(), got > 0 ? static_cast<size_t>(got) : 0);
  if (!text.starts_with("#!")) return "";
  const size_t begin = text.find_first_not_of(" \t", 2);
  if (begin == std::string_view::npos) return "";
  return std::string(text.substr(begin, text.find_first_of(" \t\r\n", begin) - begin));
}

std::string exec_error(const SpawnPlan& plan, const std::string& path, int error) {
  const std::string name = in_quotes(path);
  if (error == ENOENT) {
    const std::string interpreter = interpreter_of(path);
    if (interpreter.empty()) {
      return "cannot start " + name + ": the file or the loader that it needs does not exist";
    }
    return name + " names the interpreter " + in_quotes(interpreter) +
           ", which does not exist here: correct its first line";
  }
  if (error == ENOEXEC) {
    return name + " is neither a program for this machine nor a script that names its " +
           "interpreter: begin it with a line such as #!/bin/sh";
  }
  if (error == E2BIG) {
    size_t longest = 0;
    for (const std::string& word : plan.argv) longest = std::max(longest, word.size());
    return "the command line of " + name + " is too long: its longest word has " +
           std::to_string(longest) + " bytes, the system takes 131071 a word and about 2 MiB " +
           "in all; pass a list file instead";
  }
  return "cannot start " + name + ": " + std::strerror(error);
}

std::string cpu_list(const std::vector<int32_t>& cpus) {
  std::string text;
  for (const int32_t cpu : cpus) text += (text.empty() ? "" : ",") + std::to_string(cpu);
  return text;
}

SpawnError explain(const SpawnPlan& plan, Step step, int error) {
  const bool try_again = error == EAGAIN || error == ENOMEM || error == ETXTBSY;
  switch (step) {
    case Step::kNone:
      return {std::string("cannot make a process: ") + std::strerror(error) +
                  "; check the limits on processes and memory (ulimit -u, the batch job's memory)",
              try_again};
    case Step::kSession:
    case Step::kDescriptors:
      return {std::string("cannot set up a process: ") + std::strerror(error), try_again};
    case Step::kCpus:
      return {"cannot use processors " + cpu_list(plan.cpus) + ": " + std::strerror(error) +
                  "; not all of them are allowed for this job (see 'sluice hw')",
              false};
    case Step::kDirectory:
      return {"cannot enter the folder " + in_quotes(plan.working_directory) + ": " +
                  std::strerror(error),
              false};
    case Step::kExec:
      break;
  }
  return {exec_error(plan, plan.program, error), try_again};
}

// Why the file cannot be executed; "" if it can.
std::string not_executable(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return "no file " + in_quotes(path);
    return "cannot look at " + in_quotes(path) + ": " + std::strerror(errno);
  }
  if (S_ISDIR(info.st_mode)) return in_quotes(path) + " is a folder, expected a program";
  if (::access(path.c_str(), X_OK) != 0) {
    return in_quotes(path) + " is not executable (mode " + octal(info.st_mode & 07777U) +
           "): chmod +x it";
  }
  return "";
}

}  // namespace

std::variant<pid_t, SpawnError> spawn(const SpawnPlan& plan) {
  std::vector<char*> argv;
  argv.reserve(plan.argv.size() + 1);
  for (const std::string& word : plan.argv) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const std::vector<char*> environment = plan.environment->pointers();
  Prepared prepared{plan.program.c_str(),
                    argv.data(),
                    environment.data(),
                    plan.working_directory.c_str(),
                    &plan,
                    cpu_bits(plan.cpus),
                    ::getpid(),
                    Step::kNone,
                    0};
  const pid_t pid = fork_and_become(prepared);
  if (pid < 0) return explain(plan, Step::kNone, errno);
  if (prepared.failed_step == Step::kNone) return pid;
  ::waitpid(pid, nullptr, 0);  // it has already called _exit
  return explain(plan, prepared.failed_step, prepared.error);
}

Expected<std::string> find_program(const std::string& name, const std::string& search_path,
                                   const std::string& working_directory) {
  namespace fs = std::filesystem;
  if (name.empty()) return Error{"the command's first word is empty, expected a program"};
  if (name.find('/') != std::string::npos) {
    const std::string plain = name.starts_with("./") ? name.substr(2) : name;
    const std::string path = fs::absolute(fs::path(working_directory) / plain).string();
    if (std::string problem = not_executable(path); !problem.empty()) return Error{problem};
    return path;
  }
  std::string near_miss;
  for (size_t begin = 0; begin <= search_path.size();) {
    const size_t end = std::min(search_path.find(':', begin), search_path.size());
    const std::string folder = search_path.substr(begin, end - begin);
    begin = end + 1;
    const std::string path = fs::absolute(fs::path(working_directory) / folder / name).string();
    const std::string problem = not_executable(path);
    if (problem.empty()) return path;
    if (near_miss.empty() && !problem.starts_with("no file")) near_miss = problem;
  }
  if (!near_miss.empty()) return Error{near_miss};
  return Error{"no program " + in_quotes(name) + " in PATH (" + search_path +
               "): load its module or write its path"};
}

}  // namespace sluice::engine
