#include "io/run_ledger.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "tests/support/seeds.h"
#include "tests/support/temporary_folder.h"

namespace sluice::io {
namespace {

using scheduler::AttemptId;
using State = RunLedger::State;
using test::TemporaryFolder;

record::Run run(uint32_t epoch, std::vector<record::RunTask> tasks = {}) {
  record::Run r;
  r.run_uuid = "uuid";
  r.epoch = epoch;
  r.previous_length = UINT64_MAX;  // all of the one before
  r.unix_time_ms = 1000 * epoch;
  r.tasks = std::move(tasks);
  return r;
}
record::DoneRecord done(const std::string& task, const std::string& item, uint32_t number = 1) {
  record::DoneRecord r;
  r.task = task;
  r.item = item;
  r.attempt = AttemptId::make(1, number);
  r.usage.wall = scheduler::seconds(2);
  r.unix_time_ms = 5000;
  return r;
}
record::Attempt failed(const std::string& task, const std::string& item, bool final,
                       const std::string& text = "") {
  record::Attempt r;
  r.task = task;
  r.item = item;
  r.attempt = AttemptId::make(1, 9);
  r.cause = "exit";
  r.exit_code = 3;
  r.final = final;
  r.stderr_tail = text;
  return r;
}
void write(const TemporaryFolder& folder, uint32_t epoch, const std::vector<Record>& records) {
  std::string text;
  for (const Record& record : records) text += encode_record(record);
  test::write_text(folder / ("journal." + std::to_string(epoch) + ".jsonl"), text);
}
RunLedger read(const TemporaryFolder& folder, LedgerMark mark = {}) {
  auto ledger = read_ledger(folder.path(), mark);
  REQUIRE(ledger.ok());
  return std::move(*ledger);
}
const RunLedger::Instance& instance(const RunLedger& ledger, const std::string& label) {
  for (const RunLedger::Instance& one : ledger.instances) {
    if (ledger.label(one) == label) return one;
  }
  FAIL("no instance " << label);
  return ledger.instances.front();
}

}  // namespace

TEST_CASE("run ledger: the last record of an instance decides, each failure is kept") {
  const TemporaryFolder folder;
  write(folder, 1,
        {run(1), record::Worker{4, "joined", "node4", {8, 100}, 1}, failed("a", "x", false, "one"),
         failed("a", "x", true, "two"), record::Skipped{"b", "", "a[x]"}, done("a", "y")});
  record::DoneRecord again = done("a", "x", 2);
  again.worker = 4;
  write(folder, 2, {run(2), again});
  const RunLedger ledger = read(folder);
  const auto& x = instance(ledger, "a[x]");
  CHECK(x.state == State::kDone);
  CHECK(x.failures == 2);
  CHECK(ledger.failures[x.last_failure].stderr_tail == "two");
  CHECK(ledger.failures[ledger.failures[x.last_failure].previous].stderr_tail == "one");
  CHECK(instance(ledger, "b").state == State::kSkipped);
  CHECK(instance(ledger, "b").because == "a[x]");
  CHECK(ledger.host_of(AttemptId::make(1, 2), 4) == "node4");
  CHECK(ledger.host_of(AttemptId::make(2, 2), 4).empty());  // that submission had other workers
  REQUIRE(ledger.submissions.size() == 2);
  CHECK(ledger.submissions[0].failed_attempts == 2);
  CHECK(ledger.submissions[1].done == 1);
}

TEST_CASE("run ledger: core time counts the cores that were asked for") {
  const TemporaryFolder folder;
  write(folder, 1, {run(1, {{"a", 2, 4, 0, 0}}), done("a", "x"), done("a", "y")});
  CHECK(read(folder).submissions[0].busy == scheduler::seconds(2 * 2 * 4));
}

TEST_CASE("run ledger: an instance is gone for the submission that says so") {
  const TemporaryFolder folder;
  write(folder, 1, {run(1), done("a", "x"), done("a", "y")});
  write(folder, 2, {run(2), record::Gone{"a", "x"}});
  CHECK(instance(read(folder), "a[x]").gone);
  CHECK_FALSE(instance(read(folder), "a[y]").gone);
  write(folder, 3, {run(3)});
  CHECK_FALSE(instance(read(folder), "a[x]").gone);
}

TEST_CASE("run ledger: what is behind the mark is counted by task") {
  const TemporaryFolder folder;
  write(folder, 1, {run(1), done("a", "0")});
  const uint64_t before = read(folder).newest_length;
  write(folder, 1,
        {run(1), done("a", "0"), done("a", "1"), failed("a", "2", false), failed("a", "2", true),
         record::Skipped{"b", "", "a[2]"}});
  const RunLedger ledger = read(folder, {1, before});
  REQUIRE(ledger.since.size() == 2);
  CHECK(ledger.since[0].done == 1);
  CHECK(ledger.since[0].failed == 1);
  CHECK(ledger.since[1].skipped == 1);
  CHECK(read(folder, {2, 0}).since[0].done == 0);  // another segment's place
}

TEST_CASE("run ledger: equal failure texts are kept once") {
  const TemporaryFolder folder;
  std::vector<Record> records{run(1)};
  const std::string text(2000, 'e');
  for (int i = 0; i < 100; ++i) records.push_back(failed("a", std::to_string(i), true, text));
  write(folder, 1, records);
  const RunLedger ledger = read(folder);
  CHECK(ledger.failures.size() == 100);
  CHECK(ledger.failures[0].stderr_tail.data() == ledger.failures[99].stderr_tail.data());
  CHECK(ledger.texts.bytes() < 2 * text.size());
}

// The full reader is the oracle: random histories over few names, so that all orders meet.
TEST_CASE("run ledger: agrees with the full reader on every instance") {
  tests::for_each_seed([](uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto pick = [&](uint64_t n) { return random() % n; };
    const TemporaryFolder folder;
    for (uint32_t epoch = 1; epoch <= 1 + pick(3); ++epoch) {
      std::vector<Record> records{run(epoch)};
      for (size_t i = pick(60); i > 0; --i) {
        const std::string task(1, static_cast<char>('a' + pick(3)));
        const std::string item = pick(5) == 0 ? "k=\"\xff" : std::to_string(pick(20));
        switch (pick(4)) {
          case 0:
            records.push_back(failed(task, item, pick(2) == 0));
            break;
          case 1:
            records.push_back(record::Skipped{task, item, "z"});
            break;
          case 2:
            records.push_back(record::Sync{});
            break;
          default:
            records.push_back(done(task, item));
        }
      }
      write(folder, epoch, records);
    }
    const RunLedger ledger = read(folder);
    const auto expected = read_journal(folder.path());
    REQUIRE(expected.ok());
    CHECK(ledger.instances.size() == expected->instances.size());
    for (const RunLedger::Instance& found : ledger.instances) {
      const auto& facts =
          expected->instances.at({ledger.tasks[found.task], std::string(found.item)});
      CAPTURE(ledger.label(found));
      if (found.state == State::kDone) {
        CHECK(facts.done.has_value());
        CHECK_FALSE(facts.last_failure != nullptr);
        CHECK(facts.skipped_because.empty());
      } else if (found.state == State::kSkipped) {
        CHECK(facts.skipped_because == found.because);
      } else {
        REQUIRE(facts.last_failure != nullptr);
        CHECK(facts.last_failure->final == (found.state == State::kFailed));
      }
    }
  });
}

}  // namespace sluice::io
