#include "engine/recorded_spec.h"

#include <filesystem>
#include <optional>
#include <sstream>
#include <utility>

#include "io/files.h"
#include "io/sources.h"
#include "io/spec.h"

namespace sluice::engine {

namespace {

bool is_spec(const std::filesystem::path& file, const std::string& hash) {
  if (file.empty()) return false;
  const auto text = io::real_files().read(file);
  return text && io::to_hex(io::hash_text(*text)) == hash;
}

}  // namespace

bool is_command_list(const RunDirectory& directory, const io::record::Run& run) {
  return is_spec(directory.commands_copy(), run.spec_hash);
}

Expected<io::Pipeline> read_recorded_spec(const RunDirectory& directory,
                                          const io::record::Run& run) {
  io::SpecOptions options;
  options.set = run.params;
  options.run_directory = directory.path;
  const bool is_list = is_command_list(directory, run);
  const std::filesystem::path copy = is_list ? directory.commands_copy() : directory.spec_copy();
  if (is_spec(run.spec, run.spec_hash)) {
    options.file = run.spec;
  } else if (is_spec(copy, run.spec_hash)) {
    options.file = copy;
    options.folder = std::filesystem::path(run.spec).parent_path();
  } else {
    return Error{"the spec of submission " + std::to_string(run.epoch) +
                 " is not there any more: '" + run.spec + "' has changed since, and '" +
                 copy.string() + "' is of another submission"};
  }
  if (is_list) {
    options.command_list.emplace();
    options.command_list->file = options.file;
    options.command_list->folder = options.folder;
  }
  io::FileSourceIds sources(directory.sources_cache());
  io::Diagnostics diagnostics;
  std::optional<io::Pipeline> pipeline = io::read_pipeline(options, sources, diagnostics);
  if (pipeline) return std::move(*pipeline);
  std::ostringstream text;
  diagnostics.print(text);
  return Error{"the spec cannot be read as it was run: " + text.str()};
}

}  // namespace sluice::engine
