#include "engine/cli_words.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <sstream>

using namespace sluice::engine;

namespace {

bool contains(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("cli_words: help leads with examples and names every verb") {
  const CliWords words = cli_words();
  const std::string help = help_text(words);
  CHECK(help.find("Examples:") < help.find("Usage:"));
  for (const CliVerb& verb : words.verbs) {
    CAPTURE(verb.name);
    CHECK(contains(help, "\n  " + verb.name + " "));
  }
}

TEST_CASE("cli_words: each verb's help has examples of that verb and all of its options") {
  for (const CliVerb& verb : cli_words().verbs) {
    CAPTURE(verb.name);
    const std::string help = verb_help_text(verb);
    CHECK(help.find("Examples:") < help.find("Usage:"));
    REQUIRE_FALSE(verb.examples.empty());
    for (const CliExample& example : verb.examples)
      CHECK(contains(example.command, "sluice " + verb.name));
    for (const CliOption& option : verb.options) CHECK(contains(help, option.names.back()));
  }
}

TEST_CASE("cli_words: every option with a value says its default") {
  for (const CliVerb& verb : cli_words().verbs) {
    for (const CliOption& option : verb.options) {
      CAPTURE(verb.name);
      CAPTURE(option.names.back());
      CHECK_FALSE(option.about.empty());
      const bool needed = option.required || option.names.back() == "PIPELINE";
      if (!option.value.empty() && !needed) CHECK_FALSE(option.default_text.empty());
    }
  }
}

TEST_CASE("cli_words: the verbs of a group are neighbours") {
  std::set<std::string> seen;
  std::string last;
  for (const CliVerb& verb : cli_words().verbs) {
    if (verb.group != last) CHECK(seen.insert(verb.group).second);
    last = verb.group;
  }
}

TEST_CASE("cli_words: help is no wider than a terminal of 100 columns") {
  for (const CliVerb& verb : cli_words().verbs) {
    std::istringstream in(verb_help_text(verb));
    for (std::string line; std::getline(in, line);) {
      CAPTURE(line);
      CHECK(line.size() <= 100);
    }
  }
}
