#include "io/journal_scan.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "io/journal.h"
#include "tests/support/temporary_folder.h"

namespace sluice::io {
namespace {

using scheduler::AttemptId;
using test::TemporaryFolder;

record::Run run(uint32_t epoch) {
  record::Run r;
  r.run_uuid = "uuid";
  r.epoch = epoch;
  r.unix_time_ms = 1000 * epoch;
  return r;
}

std::string segment(const std::vector<Record>& records) {
  std::string text;
  for (const Record& record : records) text += encode_record(record);
  return text;
}

// Everything that a walk tells.
struct Walk final : LineVisitor {
  void begin_segment(const record::Run& begun) override {
    kinds.push_back("segment " + std::to_string(begun.epoch));
  }
  void take(std::string_view kind, std::string_view line, uint64_t end) override {
    CHECK(decode_record(line).ok());
    kinds.emplace_back(kind);
    ends.push_back(end);
  }
  std::vector<std::string> kinds;
  std::vector<uint64_t> ends;
};

ScanEnd scan(const TemporaryFolder& folder, Walk& walk) {
  const auto end = scan_journal(folder.path(), walk);
  REQUIRE(end.ok());
  return *end;
}

}  // namespace

TEST_CASE("journal scan: a folder without a journal has no segment") {
  const TemporaryFolder folder;
  Walk walk;
  CHECK(scan(folder, walk).epoch == 0);
  CHECK(walk.kinds.empty());
}

TEST_CASE("journal scan: segments come oldest first, each line with the length up to it") {
  const TemporaryFolder folder;
  const std::string first = segment({run(1), record::Sync{}});
  record::Run second = run(10);
  second.previous_epoch = 1;
  second.previous_length = first.size();
  // What a stalled writer added behind the length that the second one read does not count.
  test::write_text(folder / "journal.1.jsonl", first + segment({record::End{"failed", 1, 0}}));
  test::write_text(folder / "journal.10.jsonl", segment({second, record::Gone{"a", "b"}}));
  Walk walk;
  const ScanEnd end = scan(folder, walk);
  CHECK(walk.kinds ==
        std::vector<std::string>{"segment 1", "run", "sync", "segment 10", "run", "gone"});
  CHECK(end.epoch == 10);
  CHECK(end.newest_length == walk.ends.back());
  CHECK(walk.ends[1] == first.size());
  CHECK(end.messages.empty());
}

TEST_CASE("journal scan: damage ends a segment exactly where the full reader ends it") {
  const std::string whole =
      segment({run(1), record::Skipped{"a", "1", "b"}, record::Skipped{"a", "2", "b"}});
  for (size_t cut = 0; cut < whole.size(); cut += 7) {
    for (const bool torn : {true, false}) {
      const TemporaryFolder folder;
      std::string text = torn ? whole.substr(0, cut) : whole;
      if (!torn) text[cut] = static_cast<char>(text[cut] ^ 1);
      test::write_text(folder / "journal.1.jsonl", text);
      Walk walk;
      const ScanEnd found = scan(folder, walk);
      const auto expected = read_journal(folder.path());
      REQUIRE(expected.ok());
      CAPTURE(text);
      CHECK(found.epoch == expected->epoch);
      CHECK(found.newest_length == expected->newest_length);
      CHECK(found.messages == expected->messages);
    }
  }
}

TEST_CASE("journal scan: lines longer than a buffer are whole") {
  const TemporaryFolder folder;
  record::Attempt attempt;
  attempt.task = "a";
  attempt.stderr_tail = std::string(3U << 20U, 'x');
  test::write_text(folder / "journal.1.jsonl",
                   segment({run(1), attempt, record::Sync{}, attempt, record::Sync{}}));
  Walk walk;
  CHECK(scan(folder, walk).messages.empty());
  CHECK(walk.kinds.size() == 6);
}

TEST_CASE("journal scan: a later version's journal is refused, with the remedy") {
  const TemporaryFolder folder;
  record::Run later = run(1);
  later.version = 2;
  test::write_text(folder / "journal.1.jsonl", segment({later}));
  Walk walk;
  const auto end = scan_journal(folder.path(), walk);
  REQUIRE_FALSE(end.ok());
  CHECK(end.error().message.find("use the newer sluice that wrote it") != std::string::npos);
}

TEST_CASE("member cursor: gives each member as the writer had it, escapes and bytes included") {
  record::Attempt attempt;
  attempt.task = "a\"b\\";
  attempt.item = "k=\xff";
  attempt.attempt = AttemptId::make(2, 7);
  attempt.cause = "exit";
  attempt.exit_code = -3;
  attempt.detail = "plain";
  attempt.stderr_tail = "line\n\ttab \x01 caf\xc3\xa9";
  attempt.final = true;
  const std::string line = encode_record(attempt);
  std::string seen;
  for (MemberCursor member(line); member.next();) {
    const std::string name(member.name());
    seen += name + " ";
    if (name == "task") CHECK(member.text() == attempt.task);
    if (name == "item") CHECK(member.text() == attempt.item);
    if (name == "exit_code") CHECK(member.number() == -3);
    if (name == "detail") CHECK(member.plain());
    if (name == "stderr") CHECK(member.text() == attempt.stderr_tail);
    if (name == "final") CHECK(member.raw() == "true");
  }
  CHECK(seen == "t task item attempt cause exit_code detail stderr final sum ");
}

TEST_CASE("member cursor: steps over arrays, whatever texts they hold") {
  record::DoneRecord done;
  done.task = "t";
  done.outputs = {{"a]}", {1, 2}, 3, true, "[\"{"}, {"b", {}, 0, false, ""}};
  const std::string line = encode_record(done);
  std::string last;
  size_t members = 0;
  for (MemberCursor member(line); member.next(); ++members) last = member.name();
  CHECK(last == "sum");
  CHECK(members == 5);  // t task attempt out sum
}

}  // namespace sluice::io
