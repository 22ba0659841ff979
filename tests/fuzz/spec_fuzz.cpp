// Fuzzes the spec's reader: any bytes give a pipeline or findings that can be printed, never a
// crash, a hang or an endless list. Sources are not looked at. Seeds: the golden mistakes and
// configs/.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "io/spec.h"
#include "io/spec_describe.h"
#include "tests/support/fuzz.h"

namespace {

using namespace sluice;

// Every file is there: the fuzzer shall get behind that.
class EverySource final : public io::SourceIds {
 public:
  Expected<scheduler::Hash128> content_id(const std::filesystem::path& path) override {
    return io::hash_text(path.string());
  }
};

const std::filesystem::path& folder() {
  static const std::filesystem::path kFolder = [] {
    const char* base = std::getenv("TMPDIR");
    std::string name = std::string(base == nullptr ? "/tmp" : base) + "/fuzz_spec.XXXXXX";
    test::must(::mkdtemp(name.data()) != nullptr, "a folder can be made");
    return std::filesystem::path(name);
  }();
  return kFolder;
}

// A large range or a pattern outside of the folder costs what was asked for; that is no finding.
bool asks_for_much(std::string_view text) {
  size_t digits = 0;
  size_t most = 0;
  for (const char c : text) {
    digits = c >= '0' && c <= '9' ? digits + 1 : 0;
    most = std::max(most, digits);
  }
  const bool range = text.find("range") != std::string_view::npos;
  const bool pattern = text.find("glob") != std::string_view::npos;
  return (range && (most > 3 || text.find('.') != std::string_view::npos)) ||
         (pattern && text.find('/') != std::string_view::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (asks_for_much(text)) return -1;
  const std::filesystem::path file = folder() / "p.yaml";
  std::ofstream(file, std::ios::binary) << text;
  EverySource sources;
  io::Diagnostics findings;
  io::SpecOptions options;
  options.file = file;
  const auto pipeline = io::read_pipeline(options, sources, findings);
  std::ostringstream printed;
  findings.print(printed);
  test::must(pipeline.has_value() == (findings.errors() == 0), "a pipeline or errors");
  if (pipeline) {
    const auto tasks = io::describe(*pipeline);
    test::must(tasks.size() == pipeline->tasks.size(), "every task is described");
    for (size_t i = 0; i < std::min<size_t>(pipeline->graph.instance_count(), 3); ++i) {
      test::must(!pipeline->label(scheduler::InstanceId(i)).empty(), "an instance has a name");
      (void)pipeline->command_text(scheduler::InstanceId(i));
    }
  }
  return 0;
}
