#include "engine/preflight.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <sstream>

#include "tests/support/spec_folder.h"

using namespace sluice;
using engine::RunDirectory;
using engine::ThisMachine;

namespace {

constexpr ThisMachine kSmall{{2, int64_t{4} << 30U}, 2U << 20U};

// "severity line: text" of each finding.
std::vector<std::string> findings(test::SpecFolder& folder, const std::string& spec) {
  const auto pipeline = folder.read(spec);
  REQUIRE_MESSAGE(pipeline, folder.printed);
  io::Diagnostics diagnostics;
  engine::preflight(*pipeline, RunDirectory::for_spec(folder.path() / "p.yaml", ""), kSmall,
                    diagnostics);
  std::vector<std::string> texts;
  for (const io::Diagnostic& finding : diagnostics.sorted()) {
    const bool is_error = finding.level == io::Diagnostic::Level::kError;
    texts.push_back((is_error ? "error " : "warning ") + std::to_string(finding.mark.line) + ": " +
                    finding.text);
  }
  return texts;
}

}  // namespace

TEST_CASE("preflight: a task that this machine cannot hold is a warning at its place") {
  test::SpecFolder folder;
  CHECK(findings(folder, R"(sluice: 1
tasks:
  fits:
    run: work
    resources: {cpus: 2, memory: 4GiB}
  wide:
    run: work
    resources: {cpus: 64}
  large:
    run: work
    resources: {memory: 8GB}
)") == std::vector<std::string>{
           "warning 6: task 'wide' asks for 64 cpus; this machine has 2",
           "warning 9: task 'large' asks for 7.45 GiB of memory; this machine has 4 GiB"});
}

// UC-018
TEST_CASE("preflight: a command line that is too long is found before anything starts") {
  test::SpecFolder folder;
  std::string items = "[";
  for (size_t i = 0; i < 3000; ++i) items += (i == 0 ? "" : ", ") + std::to_string(i);
  const auto found =
      findings(folder, "sluice: 1\nparams: {all: {type: list, default: " + items +
                           "]}, text: {type: string, default: " + std::string(140'000, 'x') + R"(}}
tasks:
  part:
    foreach: {n: "${{ params.all }}"}
    run: part ${{ out.x }}
    outputs: {x: {file: x}}
  merge:
    run: merge ${{ in.parts.paths }}
    inputs: {parts: part.x}
  long:
    run: work ${{ params.text }}
  script:
    sh: echo "$PARAM_text"
)");
  REQUIRE(found.size() == 3);
  CHECK(found[0].find("warning 8: 'merge': the 3000 paths of input 'parts' are about") == 0);
  CHECK(found[1] ==
        "error 11: 'long': word 2 of the command has 140000 bytes; the system passes at most "
        "131071");
  CHECK(found[2].find("error 13: 'script': the variable PARAM_text has 140011 bytes") == 0);
}

// UC-043
TEST_CASE("preflight: an input that the run itself writes is an error") {
  test::SpecFolder folder;
  std::filesystem::create_directories(folder.path() / "p.run" / "results" / "a");
  folder.write("p.run/results/a/x", "1");
  folder.write("p.run.txt", "1");
  const auto found = findings(folder, R"(sluice: 1
tasks:
  a:
    run: work ${{ out.x }}
    outputs: {x: {file: x}}
  b:
    run: work ${{ in.x }} ${{ in.y }}
    inputs: {x: {file: p.run/results/a/../a/x}, y: {file: p.run.txt}}
)");
  REQUIRE(found.size() == 1);
  CHECK(found[0].find("error 6: task 'b', input 'x' reads") == 0);
  CHECK(found[0].find("of the run directory, which the run writes") != std::string::npos);
}
