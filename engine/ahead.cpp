#include "engine/ahead.h"

#include <iostream>

#include "engine/cli.h"
#include "engine/preflight.h"
#include "io/sources.h"
#include "io/spec.h"

namespace sluice::engine {

std::optional<io::Pipeline> read_and_print(const Options& options, io::Diagnostics& diagnostics) {
  const RunDirectory directory = options.directory();
  io::FileSourceIds sources(directory.sources_cache());
  auto pipeline = io::read_pipeline(options.spec_options(), sources, diagnostics);
  if (pipeline) preflight(*pipeline, directory, any_machine(), diagnostics);
  diagnostics.print(std::cerr);
  if (diagnostics.errors() > 0) return std::nullopt;
  return pipeline;
}

std::string counted(size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace sluice::engine
