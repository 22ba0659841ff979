#include "engine/logs.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/logs_follow.h"
#include "tests/support/temporary_folder.h"

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

AttemptPlaces places() {
  AttemptPlaces all;
  for (const LogEntry& e : history()) all.add("a[" + e.item + "]", e.attempt);
  return all;
}

std::string chosen(const std::string& target, const std::string& attempt, bool failed = false,
                   const AttemptPlaces& all = places()) {
  std::string text;
  for (const LogEntry& e : choose_logs(history(), target, attempt, failed, all)) {
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

// UC-084
TEST_CASE("logs: an attempt that left no log has its place among the others") {
  AttemptPlaces all = places();
  all.add("a[x]", AttemptId::make(1, 2));  // lost with its worker, between 1.1 and 1.3
  all.add("a[x]", AttemptId::make(1, 3));  // what the journal says of one that has a log
  all.add("a[y]", AttemptId::make(2, 5));  // never started, after 2.2
  CHECK(chosen("a[x]", "1", false, all) == "x1.1 ");
  CHECK(chosen("a[x]", "2", false, all).empty());
  CHECK(chosen("a[x]", "3", false, all) == "x1.3 ");
  CHECK(chosen("a[x]", "4", false, all) == "x2.1 ");
  CHECK(chosen("a", "-1", false, all) == "x2.1 ");
  CHECK(all.is_chosen("2", "a[x]", AttemptId::make(1, 2)));
  CHECK(all.is_chosen("-1", "a[y]", AttemptId::make(2, 5)));
  CHECK(all.is_chosen("1.2", "a[x]", AttemptId::make(1, 2)));
  CHECK(all.is_chosen("", "a[x]", AttemptId::make(1, 2)));
  CHECK_FALSE(all.is_chosen("1", "a[z]", AttemptId::make(1, 2)));
}

TEST_CASE("logs: what failed alike is one group, what cannot be read is like nothing else") {
  const sluice::test::TemporaryFolder folder;
  auto writer = std::move(sluice::io::LogPackWriter::create(folder / "logs", 1, 0).value());
  const auto append = [&writer](uint32_t number, const std::string& outcome,
                                const std::string& err) {
    REQUIRE(writer.append(entry("i" + std::to_string(number), 1, number, outcome), {},
                          {err, {}, static_cast<int64_t>(err.size()), 0}));
  };
  append(1, "exit", "no luck");
  append(2, "exit", "no luck either");
  append(3, "exit", "no luck");
  append(4, "oom", "no luck");
  append(5, "exit", "");
  append(6, "exit", "");
  auto entries = *sluice::io::read_log_index(folder / "logs");
  REQUIRE(entries.size() == 6);
  entries[5].pack = folder / "nowhere";
  std::string groups;
  for (const auto& group : group_alike(entries)) {
    for (const LogEntry* one : group) groups += one->item + " ";
    groups += "| ";
  }
  CHECK(groups == "i1 i3 | i2 | i4 | i5 | i6 | ");
}

// UC-032
TEST_CASE("logs: a piece of what a program writes cannot steer the terminal, nor ends a line") {
  CHECK(quoted_piece("a\x1b[2J\tb\r\nhalf") == "a?[2J\tb?\nhalf");
  CHECK(quoted_piece("whole\n") == "whole\n");
  CHECK(quoted_piece("\n\n") == "\n\n");
  CHECK(quoted_piece("").empty());
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
