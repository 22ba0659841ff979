#include "engine/run_report.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/spec_folder.h"
#include "tests/support/temporary_folder.h"

using namespace sluice;
using engine::RunReport;
using scheduler::seconds;

namespace {

io::record::DoneRecord done(const std::string& task, const std::string& item, int64_t wall_s,
                            uint32_t epoch = 1, int64_t memory = 10 << 20) {
  io::record::DoneRecord r;
  r.task = task;
  r.item = item;
  r.attempt = scheduler::AttemptId::make(epoch, 1);
  r.usage = {seconds(wall_s), seconds(wall_s), memory};
  return r;
}
io::record::Run run(uint32_t epoch, std::vector<io::record::RunTask> tasks) {
  io::record::Run r;
  r.run_uuid = "u";
  r.epoch = epoch;
  r.previous_length = UINT64_MAX;  // all of the one before
  r.unix_time_ms = 1'000'000 * epoch;
  r.tasks = std::move(tasks);
  return r;
}
io::RunLedger ledger_of(const std::vector<std::vector<io::Record>>& segments) {
  const test::TemporaryFolder folder;
  for (size_t i = 0; i < segments.size(); ++i) {
    std::string text;
    for (const io::Record& record : segments[i]) text += io::encode_record(record);
    test::write_text(folder / ("journal." + std::to_string(i + 1) + ".jsonl"), text);
  }
  auto ledger = io::read_ledger(folder.path());
  REQUIRE(ledger.ok());
  return std::move(*ledger);
}

}  // namespace

TEST_CASE("report: the bound is the work over the cores without a graph") {
  const io::RunLedger ledger =
      ledger_of({{run(1, {{"a", 3, 2, 0, 0}}), io::record::Worker{0, "joined", "n", {4, 1}, 0},
                  done("a", "1", 10), done("a", "2", 10), io::record::End{"done", 0, 1'020'000}}});
  const RunReport report = engine::make_report(ledger, nullptr);
  REQUIRE(report.submissions.size() == 1);
  CHECK(report.submissions[0].work == seconds(40));
  CHECK(report.submissions[0].bound() == seconds(10));
  CHECK(report.submissions[0].makespan == seconds(20));
  CHECK(report.submissions[0].utilisation() == doctest::Approx(0.5));
}

// UC-102
TEST_CASE("report: suggestions come from at least five attempts") {
  for (size_t n = 1; n <= 6; ++n) {
    std::vector<io::Record> records{run(1, {{"a", 10, 4, 1LL << 30U, 0}})};
    for (size_t i = 0; i < n; ++i) {
      records.push_back(done("a", std::to_string(i), 1 + static_cast<int64_t>(i)));
    }
    const RunReport report = engine::make_report(ledger_of({records}), nullptr);
    REQUIRE(report.usage.size() == 1);
    CHECK(report.usage[0].n == n);
    CHECK(report.usage[0].wall_max == seconds(static_cast<int64_t>(n)));
    CHECK(report.usage[0].wall_median == seconds(static_cast<int64_t>((n + 1) / 2)));
    CHECK(report.usage[0].suggestions.empty() == (n < 5));
    if (n >= 5) {
      CHECK(report.usage[0].suggestions ==
            std::vector<std::string>{"memory: 64MiB instead of 1024MiB", "cpus: 1 instead of 4"});
    }
  }
}

TEST_CASE("report: causes count attempts, and instances that are failed now") {
  io::record::Attempt failure;
  failure.task = "a";
  failure.item = "1";
  failure.cause = "exit";
  failure.exit_code = 2;
  io::record::Attempt last = failure;
  last.item = "2";
  last.final = true;
  const RunReport report = engine::make_report(
      ledger_of({{run(1, {{"a", 2, 1, 0, 0}}), failure, failure, done("a", "1", 1), last}}),
      nullptr);
  REQUIRE(report.causes.size() == 1);
  CHECK(report.causes[0].cause == "exit 2");
  CHECK(report.causes[0].attempts == 3);
  CHECK(report.causes[0].instances == 1);
}

// a[1] 5 s ─┐
// a[2] 3 s ─┴─ b 4 s      only what a submission finished itself counts
TEST_CASE("report: the critical path is the longest chain of what the submission finished") {
  test::SpecFolder folder;
  const auto pipeline = folder.read(R"(sluice: 1
tasks:
  a:
    foreach: {n: [1, 2]}
    sh: echo >"$OUT_x"
    outputs: {x: {file: x}}
  b:
    sh: echo >"$OUT_y"
    inputs: {all: a.x}
    outputs: {y: {file: y}}
)");
  REQUIRE(pipeline.has_value());
  const io::RunLedger ledger =
      ledger_of({{run(1, {}), done("a", "n=1", 5)},
                 {run(2, {}), done("a", "n=2", 3, 2), done("b", "", 4, 2)}});
  const RunReport report = engine::make_report(ledger, &*pipeline);
  REQUIRE(report.submissions.size() == 2);
  CHECK(report.submissions[0].critical_path == seconds(5));
  CHECK(report.submissions[1].critical_path == seconds(7));
}

// a[1] 5 s ─┐
// a[2] 3 s ─┴┄ after ┄ b 4 s ── c 2 s
TEST_CASE("report: the critical path goes through order without data as well") {
  test::SpecFolder folder;
  const auto pipeline = folder.read(R"(sluice: 1
tasks:
  c:
    sh: echo >"$OUT_z"
    inputs: {one: b.y}
    outputs: {z: {file: z}}
  b:
    after: [a]
    sh: echo >"$OUT_y"
    outputs: {y: {file: y}}
  a:
    foreach: {n: [1, 2]}
    sh: echo
)");
  REQUIRE_MESSAGE(pipeline.has_value(), folder.printed);
  const io::RunLedger ledger = ledger_of(
      {{run(1, {}), done("a", "n=1", 5), done("a", "n=2", 3), done("b", "", 4), done("c", "", 2)}});
  const RunReport report = engine::make_report(ledger, &*pipeline);
  REQUIRE(report.submissions.size() == 1);
  CHECK(report.submissions[0].critical_path == seconds(11));
}

// a[0] … a[4999] ─┬─ b[0] … b[4999]
//                 └┄ after ┄ c[0] … c[4999]
//
// The cost is |A| + |B| for each submission; nothing here looks at the clock, but |A| × |B| for all
// of them would be felt.
TEST_CASE("report: of a gather that many consumers join the critical path is right") {
  test::SpecFolder folder;
  const auto pipeline = folder.read(R"(sluice: 1
tasks:
  a:
    foreach: {n: {range: [0, 5000]}}
    sh: echo >"$OUT_x"
    outputs: {x: {file: x}}
  b:
    foreach: {m: {range: [0, 5000]}}
    sh: echo
    inputs: {all: a.x}
  c:
    foreach: {k: {range: [0, 5000]}}
    after: [a]
    sh: echo
)");
  REQUIRE_MESSAGE(pipeline.has_value(), folder.printed);
  constexpr uint32_t kSubmissions = 40;
  std::vector<std::vector<io::Record>> segments;
  for (uint32_t epoch = 1; epoch <= kSubmissions; ++epoch) segments.push_back({run(epoch, {})});
  segments.back().push_back(done("a", "n=7", 5, kSubmissions));
  segments.back().push_back(done("b", "m=7", 3, kSubmissions));
  segments.back().push_back(done("c", "k=7", 4, kSubmissions));
  const RunReport report = engine::make_report(ledger_of(segments), &*pipeline);
  REQUIRE(report.submissions.size() == kSubmissions);
  CHECK(report.submissions.front().critical_path == seconds(0));
  CHECK(report.submissions.back().critical_path == seconds(9));
}
