// A list of commands, one on each line, as a pipeline: one task `command` with an instance for
// each line. Blank lines and lines that begin with # are skipped; CR LF counts as LF.
//
// An instance is its line's text (without blanks around it) and, from the second line of the same
// text on, its occurrence: `#2 text`, which no line can be. So editing a line runs one again, and
// reordering lines runs none. The text alone is the key, not the files that it names.
//
// A line that no shell needs to see is started directly; bash would halve the rate. One thread.
// Test: tests/io/command_list_test.cpp
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/diagnostic.h"
#include "io/pipeline.h"
#include "scheduler/types.h"

namespace sluice::io {

struct CommandListOptions {
  std::filesystem::path file;
  int32_t cpus = 1;                   // of each command
  int64_t memory_bytes = 0;           // 0: not counted
  scheduler::Duration timeout;        // 0: none
  int32_t retries = 0;                // whatever the cause
  std::filesystem::path folder = {};  // where commands start; "": the folder of the file
};

// The pipeline, or nothing when `diagnostics` holds an error; its places are line numbers.
[[nodiscard]] std::optional<Pipeline> read_command_list(const CommandListOptions& options,
                                                        Diagnostics& diagnostics);

// The program and its arguments for a line of a list: its own words, or those of a bash.
[[nodiscard]] std::vector<std::string> line_words(std::string_view line);
// The line of an item: without its occurrence.
[[nodiscard]] std::string_view line_of_item(std::string_view item);

}  // namespace sluice::io
