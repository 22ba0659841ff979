#include "engine/logs.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace sluice::engine;
using sluice::io::LogEntry;
using sluice::scheduler::AttemptId;

namespace {

LogEntry entry(const std::string& item, uint32_t epoch, uint32_t number,
               const std::string& outcome) {
  LogEntry e;
  e.task = "a";
  e.item = item;
  e.attempt = AttemptId::make(epoch, number);
  e.outcome = outcome;
  return e;
}

// x failed twice, then succeeded in the second submission; y was stopped, then succeeded.
std::vector<LogEntry> history() {
  return {entry("x", 1, 1, "exit"), entry("x", 1, 3, "oom"), entry("y", 1, 4, "stopped"),
          entry("x", 2, 1, "done"), entry("y", 2, 2, "done")};
}

std::string chosen(const std::string& target, const std::string& attempt, bool failed = false) {
  std::string text;
  for (const LogEntry& e : choose_logs(history(), target, attempt, failed)) {
    text +=
        e.item + std::to_string(e.attempt.epoch()) + "." + std::to_string(e.attempt.number()) + " ";
  }
  return text;
}

}  // namespace

// UC-084
TEST_CASE("logs: every attempt of an instance can be named, by its place or by its number") {
  CHECK(chosen("a[x]", "") == "x1.1 x1.3 x2.1 ");
  CHECK(chosen("a[x]", "1") == "x1.1 ");
  CHECK(chosen("a[x]", "2") == "x1.3 ");
  CHECK(chosen("a[x]", "4").empty());
  CHECK(chosen("a", "-1") == "x2.1 y2.2 ");
  CHECK(chosen("", "1.4") == "y1.4 ");
  CHECK(chosen("b", "").empty());
}

TEST_CASE("logs: --failed leaves out what was stopped in order") {
  CHECK(chosen("", "", true) == "x1.1 x1.3 ");
}

TEST_CASE("logs: the last lines of a text, with and without its final newline") {
  CHECK(last_lines("a\nb\nc\n", 2) == "b\nc\n");
  CHECK(last_lines("a\nb\nc", 2) == "b\nc");
  CHECK(last_lines("a\n\n\n", 2) == "\n\n");
  CHECK(last_lines("a\nb", 5) == "a\nb");
  CHECK(last_lines("a\nb\n", 0).empty());
  CHECK(last_lines("", 3).empty());
}

TEST_CASE("logs: an attempt is chosen by a place from 1, the last one, or a number with a dot") {
  for (const char* good : {"1", "12", "-1", "1.17"}) CHECK(is_attempt_choice(good));
  for (const char* bad : {"", "0", "-2", "x", "1.", ".1", "1.2.3", "1 "})
    CHECK_FALSE(is_attempt_choice(bad));
}
