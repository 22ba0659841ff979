#include "io/spec_json_schema.h"

#include <doctest/doctest.h>

#include <string>

#include "io/spec_schema.h"

using namespace sluice::io;

// What it accepts and refuses is judged by an independent validator in tests/e2e/schema.sh.

TEST_CASE("spec_json_schema: every supported key of the table is there, and no other") {
  const std::string schema = spec_json_schema();
  CHECK(schema.find("https://json-schema.org/draft/2020-12/schema") != std::string::npos);
  for (const KeyRule& rule : key_rules()) {
    CAPTURE(rule.key);
    bool supported_somewhere = false;
    for (const KeyRule& other : key_rules()) {
      supported_somewhere |= other.key == rule.key && other.supported;
    }
    const std::string property = "\"" + std::string(rule.key) + "\": {";
    CHECK((schema.find(property) != std::string::npos) == supported_somewhere);
  }
}

TEST_CASE("spec_json_schema: what the table says to people is the description") {
  const std::string schema = spec_json_schema();
  CHECK(schema.find("\"description\": \"higher first; without it: 0\"") != std::string::npos);
  CHECK(schema.find("\"description\": \"the work; required\"") != std::string::npos);
}
