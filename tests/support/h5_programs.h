// Starts make_h5 and sluice-h5 for tests that link no HDF5 themselves.
#pragma once

#include <doctest/doctest.h>
#include <spawn.h>
#include <sys/wait.h>

#include <filesystem>
#include <string>
#include <vector>

extern char** environ;

namespace sluice::test {

inline pid_t spawn(const std::vector<std::string>& words, int descriptor_0 = -1) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (descriptor_0 >= 0) posix_spawn_file_actions_adddup2(&actions, descriptor_0, 0);
  pid_t pid = -1;
  REQUIRE(::posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

inline int wait_for(pid_t pid) {
  int status = 0;
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  return status;
}

// `program`: make_h5.
inline void make_h5(const std::string& program, const std::string& kind,
                    const std::filesystem::path& file) {
  const int status = wait_for(spawn({program, kind, file}));
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
}

}  // namespace sluice::test
