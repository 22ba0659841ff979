// The environment of user code: what the guard was started with, less the variables of MPI, PMI
// and batch launchers (is_launcher_variable, engine/launcher.h), which would make an MPI program
// in a task join, refuse or hang on the engine's own job (facts: Open MPI, Slurm, MPICH). Values;
// one thread. Test: tests/engine/launcher_test.cpp
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::engine {

// NAME=value strings for execve, with additions that replace what was there.
class Environment {
 public:
  // Of this process, unchanged: for the rank, which must find its MPI launcher.
  [[nodiscard]] static Environment inherited();
  // For user code without keep_env; SLUICE_BATCH_ID names the batch job that the removed variables
  // told of.
  [[nodiscard]] static Environment cleaned();

  // What cleaned() leaves out.
  [[nodiscard]] static Environment removed();
  // Sets those of `from` that one of `patterns` means: a name, or PREFIX* for all that begin so.
  void take(const Environment& from, std::span<const std::string> patterns);

  void set(std::string_view name, std::string_view value);
  void unset(std::string_view name);
  [[nodiscard]] std::string get(std::string_view name) const;  // "" if absent
  // Ends with a null pointer; valid until this object changes.
  [[nodiscard]] std::vector<char*> pointers() const;

 private:
  [[nodiscard]] size_t find(std::string_view name) const;  // entries_.size() if absent
  std::vector<std::string> entries_;
};

// Threaded libraries start as many threads as the node has cores unless told otherwise.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> thread_variables(int32_t cpus);

}  // namespace sluice::engine
