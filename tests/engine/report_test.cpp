#include "engine/report.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace sluice::engine;
using namespace sluice::scheduler;

namespace {

struct Screen {
  std::string text;
  int columns = 80;
  Report report;
  explicit Screen(bool terminal = false)
      : report({terminal,
                false,
                "sluice run heat.yaml",
                {"/data/heat.run"},
                [this] { return columns; },
                "sluice why heat.yaml"},
               [this](std::string_view piece) { text += piece; }) {}
};

bool contains(const std::string& text, const std::string& piece) {
  return text.find(piece) != std::string::npos;
}

}  // namespace

TEST_CASE("report: durations are written as people say them") {
  CHECK(duration_text(milliseconds(1234)) == "1.2 s");
  CHECK(duration_text(seconds(59)) == "59 s");
  CHECK(duration_text(seconds(200)) == "3 min 20 s");
  CHECK(duration_text(seconds(7500)) == "2 h 5 min");
}

TEST_CASE("report: without a terminal there are no escape codes and no carriage returns") {
  Screen screen;
  Counts counts;
  counts.done = 1;
  counts.running = 2;
  for (int i = 0; i < 3; ++i) screen.report.progress({seconds(61 * i).ns}, counts, 2);
  screen.report.line("warn", "something");
  CHECK(contains(screen.text, "1/3 done, 2 running"));
  CHECK(!contains(screen.text, "\x1b"));
  CHECK(!contains(screen.text, "\r"));
}

TEST_CASE("report: the time left is mean core time times what is left over the cores") {
  Screen screen(true);
  Counts counts;
  counts.done = 2;
  counts.ready = 8;
  screen.report.attempt_done(seconds(10), 1);
  screen.report.attempt_done(seconds(20), 1);
  screen.report.progress({1}, counts, 4);
  CHECK(contains(screen.text, "about 30 s left"));  // 15 s × 8 / 4
}

TEST_CASE("report: the summary groups failures by cause, with node, stderr and what shows more") {
  Screen screen;
  FailureLine failure;
  failure.task = "solve";
  failure.cause = "exit 3";
  failure.host = "n7";
  failure.stderr_tail = "no\x1b[2J convergence\n";
  failure.final = true;
  for (int i = 0; i < 7; ++i) {
    failure.label = "solve[case=" + std::to_string(i) + "]";
    screen.report.failed(failure);
  }
  Counts counts;
  counts.done = 3;
  counts.failed = 7;
  counts.skipped = 1;
  screen.text.clear();
  screen.report.summary({seconds(5).ns}, counts, Outcome::kFailed, 1, {});
  CHECK(contains(screen.text, "3 of 11 instances done (3 ran now) in 5.0 s; 7 failed; 1 skipped"));
  CHECK(contains(screen.text, "7 × solve: exit 3"));
  CHECK(contains(screen.text, "solve[case=0] and 6 more with the same last lines on n7"));
  CHECK(contains(screen.text, "| no?[2J convergence"));
  CHECK(contains(screen.text, "sluice logs /data/heat.run 'solve[case=0]'"));
  CHECK(contains(screen.text, "sluice logs /data/heat.run --failed"));
  CHECK(contains(screen.text, "sluice why heat.yaml 'TASK[item]'"));
  CHECK(contains(screen.text, "continue with: sluice run heat.yaml"));
}

TEST_CASE("report: of many failures alike only some get a line as they come") {
  Screen screen;
  FailureLine failure;
  failure.task = "solve";
  failure.cause = "exit 3";
  failure.host = "n7";
  failure.final = true;
  for (int i = 0; i < 1000; ++i) {
    failure.label = "solve[case=" + std::to_string(i) + "]";
    screen.report.failed(failure);
  }
  CHECK(std::count(screen.text.begin(), screen.text.end(), '\n') == 11);
  CHECK(contains(screen.text, "they are only counted"));
}

TEST_CASE("report: few results are named, of many the folders of their tasks") {
  Screen screen;
  std::vector<std::string> results;
  for (int i = 0; i < 9; ++i)
    results.push_back("results/part/" + std::string(i > 4 ? "00001/" : "") + std::to_string(i));
  results.emplace_back("results/sum/sum.txt");
  Counts counts;
  counts.done = 10;
  screen.report.summary({1}, counts, Outcome::kAllDone, 0, results);
  CHECK(contains(screen.text, "  /data/heat.run/results/part/00001/5\n"));
  CHECK(contains(screen.text, "  /data/heat.run/results/sum/sum.txt\n"));
  results.emplace_back("results/part/9");
  screen.text.clear();
  screen.report.summary({1}, counts, Outcome::kAllDone, 0, results);
  CHECK(contains(screen.text, "  /data/heat.run/results/part/: 10 results\n"));
  CHECK(contains(screen.text, "  /data/heat.run/results/sum/sum.txt\n"));
  CHECK_FALSE(contains(screen.text, "part/00001"));
}

// UC-100
TEST_CASE("report: the progress line is narrower than the terminal, also after a resize") {
  Screen screen(true);
  Counts counts;
  counts.done = 1000;
  counts.running = 200;
  counts.failed = 7;
  screen.columns = 20;
  screen.report.progress({1}, counts, 2);
  CHECK(screen.text == "1000/1207 done, 200");
  screen.columns = 10;
  screen.text.clear();
  screen.report.progress({seconds(1).ns}, counts, 2);
  CHECK(screen.text == "\r\x1b[K1000/1207");
}

TEST_CASE("report: a run that finds everything done says so") {
  Screen screen;
  Counts counts;
  counts.done = counts.restored = 4;
  screen.report.summary({1}, counts, Outcome::kAllDone, 0, {"results/table.tsv"});
  CHECK(contains(screen.text, "nothing to do: all 4 instances are done"));
  CHECK(contains(screen.text, "/data/heat.run/results/table.tsv"));
}
