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
};

struct TaskDescription {
  std::string name;
  size_t instances = 0;
  std::string keys;     // "grid x alpha", "" without foreach
  std::string request;  // "4 cpus, 8GiB memory, 2 licence"
  std::string timeout;  // "45m", "" without
  std::vector<InputDescription> inputs;
  std::vector<std::string> results;  // names of the outputs that go into results/
};

[[nodiscard]] std::vector<TaskDescription> describe(const Pipeline& pipeline);
// "gather over [alpha]"
[[nodiscard]] std::string join_text(const TaskInput& input);
// "3 tasks, 9 instances, 15 objects"
[[nodiscard]] std::string count_text(const Pipeline& pipeline);

}  // namespace sluice::io
