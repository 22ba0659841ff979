#include "io/diagnostic.h"

#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

namespace {

using namespace sluice::io;

std::string printed(const Diagnostics& diagnostics) {
  std::ostringstream out;
  diagnostics.print(out);
  return out.str();
}

}  // namespace

TEST_CASE("diagnostic: findings print in file order with line, caret, hint and count") {
  Diagnostics diagnostics;
  diagnostics.set_source("a.yaml", "sluice: 1\ntaks: {}\n");
  diagnostics.error({2, 1}, "unknown key 'taks'", "did you mean 'tasks'?");
  diagnostics.warning({1, 9}, "old version");
  CHECK(diagnostics.errors() == 1);
  CHECK(printed(diagnostics) ==
        "a.yaml:1:9: warning: old version\n"
        "  sluice: 1\n"
        "          ^\n"
        "a.yaml:2:1: error: unknown key 'taks'\n"
        "  taks: {}\n"
        "  ^\n"
        "hint: did you mean 'tasks'?\n"
        "1 error\n");
}

TEST_CASE("diagnostic: a finding without a place names the file only") {
  Diagnostics diagnostics("a.yaml");
  diagnostics.error({}, "the file is empty");
  CHECK(printed(diagnostics) == "a.yaml: error: the file is empty\n1 error\n");
}

TEST_CASE("diagnostic: the same finding is printed and counted once") {
  Diagnostics diagnostics("a.yaml");
  diagnostics.error({}, "x");
  diagnostics.error({}, "x");
  CHECK(printed(diagnostics) == "a.yaml: error: x\n1 error\n");
}

TEST_CASE("diagnostic: tabs are visible and the caret counts characters, not bytes") {
  Diagnostics diagnostics;
  diagnostics.set_source("a.yaml", "\tä: x\n");
  diagnostics.error({1, 6}, "here");
  CHECK(printed(diagnostics) ==
        "a.yaml:1:6: error: here\n"
        "  →ä: x\n"
        "      ^\n"
        "1 error\n");
}

TEST_CASE("diagnostic: a very long line is cut around the place") {
  Diagnostics diagnostics;
  diagnostics.set_source("a.yaml", std::string(5000, 'a') + "b" + std::string(5000, 'c'));
  diagnostics.error({1, 5001}, "here");
  std::istringstream lines(printed(diagnostics));
  std::string head;
  std::string line;
  std::string caret;
  std::getline(lines, head);
  std::getline(lines, line);
  std::getline(lines, caret);
  CHECK(line.size() < 200);
  REQUIRE(caret.find('^') < line.size());
  CHECK(line[caret.find('^')] == 'b');
}

TEST_CASE("diagnostic: did-you-mean finds the nearest name within a quarter of the length") {
  const std::vector<std::string> names = {"memory", "gpus", "cpus", "timeout"};
  CHECK(did_you_mean("memroy", names) == "memory");
  CHECK(did_you_mean("cpu", names) == "cpus");
  CHECK(did_you_mean("Timeout", names) == "timeout");
  CHECK(did_you_mean("wibble", names).empty());
  CHECK(did_you_mean("", names).empty());
  const std::vector<std::string> letters = {"a", "b"};
  CHECK(did_you_mean("x", letters).empty());
}

TEST_CASE("diagnostic: within a part that is read several times only the first at a place counts") {
  Diagnostics diagnostics;
  diagnostics.report_once({2, 1}, {4, 1});
  for (const char* text : {"first", "second"}) {
    diagnostics.error({1, 9}, text);
    diagnostics.error({2, 1}, text);
    diagnostics.error({3, 5}, text);
    diagnostics.error({4, 1}, text);
  }
  CHECK(diagnostics.errors() == 6);
}
