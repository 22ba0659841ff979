#include "io/spec_source.h"

#include <fstream>
#include <sstream>

namespace sluice::io {

std::optional<std::string> read_spec_source(const std::filesystem::path& file,
                                            const std::string& what, const std::string& hint,
                                            Diagnostics& diagnostics) {
  namespace fs = std::filesystem;
  std::error_code code;
  if (fs::is_directory(file, code)) {
    diagnostics.error({}, "this is a directory, " + what + " is needed");
    return std::nullopt;
  }
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  // An empty file makes the copy fail, which is no error of reading.
  if (in.peek() != std::ifstream::traits_type::eof()) text << in.rdbuf();
  if (!in.is_open() || in.bad() || text.fail()) {
    diagnostics.error(
        {}, fs::exists(file, code) ? "the file cannot be read" : "there is no such file", hint);
    return std::nullopt;
  }
  return std::move(text).str();
}

}  // namespace sluice::io
