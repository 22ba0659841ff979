#include "engine/run_directory.h"

namespace sluice::engine {

RunDirectory RunDirectory::for_spec(const std::filesystem::path& spec,
                                    const std::string& run_dir_option) {
  namespace fs = std::filesystem;
  fs::path path = run_dir_option;
  if (run_dir_option.empty()) path = spec.parent_path() / (spec.stem().string() + ".run");
  path = fs::absolute(path).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // "here/" is "here"
  return {path};
}

}  // namespace sluice::engine
