// Reads a pipeline: YAML events -> flat tree with marks -> checked tables -> Pipeline. Finds
// everything a user can get wrong and reports all of it at once (after YAML's own syntax, whose
// first error ends the reading). The only file that knows yaml-cpp is io/spec_yaml.cpp (its
// reader). Called before the first task starts; one thread. Test: tests/io/spec_test.cpp,
// tests/io/spec_mistakes_test.cpp (golden messages)
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/command_list.h"
#include "io/diagnostic.h"
#include "io/pipeline.h"
#include "io/sources.h"

namespace sluice::io {

struct SpecOptions {
  std::filesystem::path file;
  std::vector<std::pair<std::string, std::string>> set;  // --set name=value
  std::filesystem::path run_directory;  // absolute; no pattern finds what lies there
  std::optional<CommandListOptions> command_list = std::nullopt;  // instead of a spec
  std::filesystem::path folder = {};  // the pipeline folder, if it is not the file's
  bool set_is_recorded = false;  // `set` is of an earlier run: names that are gone do not count
};

// The pipeline, or nothing when `diagnostics` holds an error. Warnings may be there in both cases.
[[nodiscard]] std::optional<Pipeline> read_pipeline(const SpecOptions& options, SourceIds& sources,
                                                    Diagnostics& diagnostics);

}  // namespace sluice::io
