// What people read about their mistakes. tests/io/golden/mistakes/NAME.yaml is read together with
// the files in tests/io/golden/mistakes/files; the findings must be those in NAME.txt.
// SLUICE_BLESS=1 writes NAME.txt anew: look at the difference before you commit it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/spec_folder.h"

namespace {

using namespace sluice;
namespace fs = std::filesystem;

const fs::path kMistakes = fs::path(SLUICE_SOURCE_DIR) / "tests/io/golden/mistakes";

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(kMistakes)) {
    if (entry.path().extension() == ".yaml") {
      out.push_back(entry.path().stem().string());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

TEST_CASE("spec_mistakes: every mistake is found, explained and remedied as in its golden file") {
  const bool bless = std::getenv("SLUICE_BLESS") != nullptr;
  const std::vector<std::string> all = names();
  CHECK(all.size() >= 15);
  for (const std::string& name : all) {
    CAPTURE(name);
    test::SpecFolder folder;
    folder.write("obs.h5", "observations");
    folder.write("model.nml", "parameters");
    folder.write("script.sh", "not executable");
    folder.write("gap.txt", "s1\n\ns3\n");
    folder.write("twice.txt", "s1\ns2\ns1\n");
    folder.write("blank.txt", "\n");
    folder.write("windows.txt", "s1\r\ns2\r\n");
    folder.write("nul.txt", std::string("s1\n\0\n", 5));
    fs::create_directory(folder.path() / "data");
    fs::create_symlink("gone.h5", folder.path() / "dangling.h5");
    const auto pipeline = folder.read(test::read_text(kMistakes / (name + ".yaml")));
    const fs::path golden = kMistakes / (name + ".txt");
    if (bless) {
      test::write_text(golden, folder.printed);
    }
    CHECK(folder.printed == test::read_text(golden));
    const bool warnings_only = name.rfind("warning_", 0) == 0;
    CHECK(pipeline.has_value() == warnings_only);
  }
}
