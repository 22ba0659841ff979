// A pipeline in words, for `plan` and `check`: how many instances and objects each task has, and
// what each of its inputs is joined with. Pure functions. Test: tests/io/spec_describe_test.cpp
#pragma once

#include <string>
#include <vector>

#include "io/pipeline.h"

namespace sluice::io {

struct InputDescription {
  std::string name;    // "fields"
  std::string source;  // "simulate.field", or the path of a file
  std::string join;    // "one-to-one", "broadcast", "gather over [alpha]", "file"
  // How many instances are read by how many, and how many by one of them; 0 for files.
  size_t producers = 0, consumers = 0;
  size_t each_min = 0, each_max = 0;
};

struct TaskDescription {
  std::string name;
  size_t instances = 0;
  std::string keys;     // "grid x alpha", "" without foreach
  std::string request;  // "4 cpus, 8GiB memory, 2 licence"
  std::string timeout;  // "45m", "" without
  std::string way;      // "no shell", "bash -euo pipefail"
  // What was read, in one unit each: "timeout 1h30m", "memory 7.45 GiB", "retry of exit: 2 more,
  // statuses 75". Only what differs from the defaults.
  std::vector<std::string> rules;
  std::vector<InputDescription> inputs;
  std::vector<std::string> results;  // names of the outputs that go into results/
};

[[nodiscard]] std::vector<TaskDescription> describe(const Pipeline& pipeline);
// "gather over [alpha] where seed=0"
[[nodiscard]] std::string join_text(const TaskInput& input);
// "gather over [alpha], 12 into 4 (3 each)"
[[nodiscard]] std::string edge_text(const InputDescription& input);
// Bytes for people, two decimals where it is not whole: "7.45 GiB", "512 MiB".
[[nodiscard]] std::string memory_text(int64_t bytes);
// Which file an input of an instance is; "" when a task makes it.
[[nodiscard]] std::string source_path(const Pipeline& pipeline, scheduler::InstanceId instance,
                                      const std::string& input);
// The variables under `env`, as `NAME=value`; what only the attempt knows as "${in.x}".
[[nodiscard]] std::vector<std::string> environment_texts(const Pipeline& pipeline,
                                                         scheduler::InstanceId instance);
// "3 tasks, 9 instances, 15 objects"
[[nodiscard]] std::string count_text(const Pipeline& pipeline);

}  // namespace sluice::io
