// How long an instance's command line will be, before it runs: the system passes at most 128 KiB in
// one word or variable and about 2 MiB in all, and `${{ in.x.paths }}` is refused above 100 KB when
// the attempt is staged (io/store.h). What is known now is counted to the byte; paths that only the
// worker knows are taken to have a usual length, values of other tasks to be empty. Pure function.
// Test: tests/io/command_size_test.cpp
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "io/pipeline.h"

namespace sluice::io {

constexpr size_t kWordBytesMax = 131'072;  // MAX_ARG_STRLEN, with the zero behind it
constexpr size_t kUsualPathBytes = 48;

struct CommandSize {
  size_t total_bytes = 0;    // words and variables, each with its zero and its pointer
  size_t largest_bytes = 0;  // of one word or variable, and which one that is
  std::string largest;       // "word 3 of the command", "the variable PARAM_cases"
  struct Paths {
    std::string input;
    size_t count = 0;
    size_t bytes = 0;  // about
  };
  std::vector<Paths> paths;  // of each ${{ in.x.paths }}
};
[[nodiscard]] CommandSize command_size(const Pipeline& pipeline, scheduler::InstanceId instance);

}  // namespace sluice::io
