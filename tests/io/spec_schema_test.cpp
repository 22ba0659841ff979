#include "io/spec_schema.h"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <utility>

#include "tests/support/spec_folder.h"

using namespace sluice;
using namespace sluice::io;

TEST_CASE("spec_schema: no level has a key twice, and every rule says what it means") {
  std::set<std::pair<Level, std::string_view>> seen;
  for (const KeyRule& rule : key_rules()) {
    CAPTURE(rule.key);
    CHECK(seen.emplace(rule.level, rule.key).second);
    CHECK_FALSE(rule.meaning.empty());
    CHECK(find_rule(rule.level, rule.key) == &rule);
  }
  CHECK(find_rule(Level::kTask, "wibble") == nullptr);
}

TEST_CASE("spec_schema: the reference has every key as the table has it") {
  const std::string reference =
      test::read_text(std::string(SLUICE_SOURCE_DIR) + "/configs/README.md");
  REQUIRE_FALSE(reference.empty());
  for (const KeyRule& rule : key_rules()) {
    const std::string row = reference_row(rule);
    CHECK_MESSAGE(reference.find("\n" + row + "\n") != std::string::npos, row);
  }
}

TEST_CASE("spec_schema: the reference's example is a correct spec") {
  const std::string reference =
      test::read_text(std::string(SLUICE_SOURCE_DIR) + "/configs/README.md");
  const std::string fence = "```yaml\n";
  const size_t begin = reference.find(fence + "sluice: 1");
  REQUIRE(begin != std::string::npos);
  const size_t end = reference.find("```", begin + fence.size());
  test::SpecFolder folder;
  folder.write("data/obs.h5", "observations");
  const auto pipeline =
      folder.read(reference.substr(begin + fence.size(), end - begin - fence.size()));
  CHECK_MESSAGE(pipeline.has_value(), folder.printed);
  CHECK(folder.printed.empty());
}
