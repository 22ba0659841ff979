// Starts a program: vfork and exec with what posix_spawn cannot do (processor affinity, death with
// the parent, session). Errors come back as text for the user. The caller blocks the signals it
// handles, keeps every other disposition at its default, and makes its descriptors close-on-exec;
// the child gets an empty signal mask. One thread, which must live as long as the children (they
// die with it). Test: tests/engine/launcher_test.cpp
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/environment.h"
#include "scheduler/expected.h"

namespace sluice::engine {

struct SpawnPlan {
  std::string program;  // an absolute path
  std::vector<std::string> argv;
  const Environment* environment = nullptr;
  std::string working_directory;  // "": this process's
  std::vector<int32_t> cpus;      // empty: as this process
  // (ours, the child's): the child's are below every one of ours, or equal to it.
  std::vector<std::pair<int, int>> descriptors;
  bool new_session = true;  // false: only a process group of its own
  rlimit open_files{};      // the limit the child gets; rlim_max 0: as this process
};

struct SpawnError {
  std::string text;
  bool try_again = false;  // the machine is short of processes or memory, or the file is written to
};

// The child's pid, or why it does not run.
[[nodiscard]] std::variant<pid_t, SpawnError> spawn(const SpawnPlan& plan);

// The program that `name` means: a path when it has a '/', else the first executable file of that
// name in `search_path` (a PATH). Relative names start at working_directory. An Error says what was
// found instead and what to do.
[[nodiscard]] Expected<std::string> find_program(const std::string& name,
                                                 const std::string& search_path,
                                                 const std::string& working_directory);

}  // namespace sluice::engine
