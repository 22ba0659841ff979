// A pipeline folder for tests of the spec: files written into a temporary folder, a spec read from
// it, its findings as text. One thread.
#pragma once

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "io/pipeline.h"
#include "io/sources.h"
#include "io/spec.h"
#include "tests/support/temporary_folder.h"

namespace sluice::test {

class SpecFolder {
 public:
  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }
  void write(const std::string& name, const std::string& text) const {
    write_text(path() / name, text);
  }
  void write_program(const std::string& name, const std::string& text) const {
    write(name, text);
    ::chmod((path() / name).c_str(), 0755);
  }

  // Reads `text` as the spec "p.yaml"; `printed` gets the findings, the folder shown as FOLDER.
  std::optional<io::Pipeline> read(const std::string& text,
                                   std::vector<std::pair<std::string, std::string>> set = {}) {
    write("p.yaml", text);
    io::Diagnostics diagnostics;
    io::FileSourceIds sources;
    auto pipeline = io::read_pipeline({path() / "p.yaml", std::move(set), path() / "p.run"},
                                      sources, diagnostics);
    std::ostringstream out;
    diagnostics.print(out);
    printed = out.str();
    replace_all(path().string() + "/p.yaml", "p.yaml");
    replace_all(path().string(), "FOLDER");
    if (pipeline) {
      keep_sound(text);
    }
    return pipeline;
  }

  std::string printed;

 private:
  // Sound specs go to the folder in SLUICE_SOUND_SPECS, for tests/e2e/schema.sh.
  static void keep_sound(const std::string& text) {
    static int count = 0;
    if (const char* folder = std::getenv("SLUICE_SOUND_SPECS")) {
      write_text(std::filesystem::path(folder) / (std::to_string(++count) + ".yaml"), text);
    }
  }
  void replace_all(const std::string& what, const std::string& with) {
    for (size_t at = printed.find(what); at != std::string::npos; at = printed.find(what, at)) {
      printed.replace(at, what.size(), with);
      at += with.size();
    }
  }
  TemporaryFolder folder_;
};

}  // namespace sluice::test
