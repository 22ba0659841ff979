#include <doctest/doctest.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include "io/journal.h"

namespace sluice::io {
namespace {

using scheduler::AttemptId;
using scheduler::Hash128;

const std::filesystem::path kFolder = "/run";
std::filesystem::path segment(uint32_t epoch) {
  return kFolder / ("journal." + std::to_string(epoch) + ".jsonl");
}

record::Run run(uint32_t epoch) {
  record::Run r;
  r.run_uuid = "uuid";
  r.epoch = epoch;
  r.unix_time_ms = 1000 * epoch;
  return r;
}
record::DoneRecord done(const std::string& item, uint64_t content = 1) {
  record::DoneRecord r;
  r.task = "a";
  r.item = item;
  r.attempt = AttemptId::make(1, 1);
  r.key = {9, content};
  r.outputs = {{"out", {7, content}, 10, false, ""}};
  return r;
}
record::Durable durable(const std::string& item, uint64_t content = 1) {
  return {"a", item, "out", "results/a/" + item, "results/.tmp/" + item, {7, content}, 10};
}

void write(FakeFiles& files, uint32_t epoch, const std::vector<Record>& records) {
  auto writer = JournalWriter::create(files, segment(epoch));
  REQUIRE(writer.ok());
  for (const Record& record : records) REQUIRE(writer->append(record).ok());
}
JournalState read(FakeFiles& files) {
  auto state = read_journal(files, kFolder);
  REQUIRE(state.ok());
  return std::move(*state);
}
const JournalState::InstanceFacts* facts(const JournalState& state, const std::string& item) {
  const auto found = state.instances.find({"a", item});
  return found == state.instances.end() ? nullptr : &found->second;
}
bool is_done(const JournalState& state, const std::string& item) {
  const auto* f = facts(state, item);
  return f != nullptr && f->done.has_value();
}

}  // namespace

TEST_CASE("journal: a folder without one reads as empty") {
  FakeFiles files;
  const JournalState state = read(files);
  CHECK(state.epoch == 0);
  CHECK(state.instances.empty());
  CHECK(state.messages.empty());
}

TEST_CASE("journal: facts are merged by task and item, the last one wins") {
  FakeFiles files;
  record::Attempt failure;
  failure.task = "a";
  failure.item = "x";
  failure.cause = "oom";
  write(files, 1,
        {run(1), record::Worker{3, "joined", "n3", {4, 100}}, failure, done("x", 1),
         durable("x", 1), record::Skipped{"a", "y", "b"}, failure,
         record::Worker{3, "lost", "", {}}, record::End{"failed", 1}});
  const JournalState state = read(files);
  CHECK(state.epoch == 1);
  CHECK(state.run_uuid == "uuid");
  CHECK(state.newest_length == files.read(segment(1))->size());
  REQUIRE(state.end.has_value());
  CHECK(state.end->outcome == "failed");
  CHECK(state.attempts.size() == 2);
  REQUIRE(state.workers.size() == 1);
  CHECK(state.workers[0].state == "lost");
  CHECK(state.workers[0].host == "n3");
  const auto* x = facts(state, "x");
  REQUIRE(x != nullptr);
  CHECK(x->done->key == Hash128{9, 1});
  CHECK(x->durable.at("out").path == "results/a/x");
  CHECK(x->last_failure->cause == "oom");  // after the done one
  CHECK(facts(state, "y")->skipped_because == "b");
}

TEST_CASE("journal: a later success clears failure, and durable files of other content") {
  FakeFiles files;
  record::Attempt failure;
  failure.task = "a";
  failure.item = "x";
  write(files, 1,
        {run(1), done("x", 1), durable("x", 1), failure, done("x", 2), done("y", 1),
         durable("y", 1), done("y", 1), durable("z"), record::Removed{"a", "z", "out"}});
  const JournalState state = read(files);
  CHECK_FALSE(facts(state, "x")->last_failure != nullptr);
  CHECK(facts(state, "x")->durable.empty());
  CHECK(facts(state, "y")->durable.size() == 1);  // the same bytes again
  CHECK(facts(state, "z")->durable.empty());
}

TEST_CASE("journal: what came before a fresh run counts no more") {
  FakeFiles files;
  write(files, 1, {run(1), done("x"), durable("x"), done("y")});
  record::Run fresh = run(2);
  continue_from(read(files), fresh);
  fresh.fresh = true;
  write(files, 2, {fresh, done("y")});
  record::Run next = run(3);
  continue_from(read(files), next);
  write(files, 3, {next});
  const JournalState state = read(files);
  CHECK_FALSE(is_done(state, "x"));
  CHECK(is_done(state, "y"));
  CHECK(state.run_uuid == "uuid");
}

TEST_CASE("journal: what no sync record came after is marked") {
  FakeFiles files;
  write(files, 1,
        {run(1), done("x"), durable("x"), record::Sync{}, done("y"), durable("y"), durable("x")});
  const JournalState state = read(files);
  CHECK(facts(state, "x")->done_synced);
  CHECK(facts(state, "x")->unsynced.count("out") == 1);  // recorded again, after the sync
  CHECK_FALSE(facts(state, "y")->done_synced);
  CHECK(facts(state, "y")->unsynced.count("out") == 1);
}

TEST_CASE("journal: any prefix of the bytes reads as a prefix of the records") {
  FakeFiles files;
  write(files, 1, {run(1), done("0"), done("1"), record::Sync{}, done("2"), durable("2")});
  const std::string content = *files.read(segment(1));
  std::vector<size_t> ends;
  for (size_t i = 0; i < content.size(); ++i) {
    if (content[i] == '\n') ends.push_back(i + 1);
  }
  REQUIRE(ends.size() == 6);
  for (size_t length = 0; length <= content.size(); ++length) {
    CAPTURE(length);
    FakeFiles cut;
    REQUIRE(cut.replace(segment(1), content.substr(0, length)).ok());
    const JournalState state = read(cut);
    const auto whole =
        static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), length) - ends.begin());
    CHECK(state.epoch == (whole >= 1 ? 1 : 0));
    CHECK(state.newest_length == (whole == 0 ? 0 : ends[whole - 1]));
    CHECK(is_done(state, "0") == (whole >= 2));
    CHECK(is_done(state, "1") == (whole >= 3));
    CHECK(is_done(state, "2") == (whole >= 5));
    const bool between = length != 0 && (whole == 0 || ends[whole - 1] != length);
    CHECK(state.messages.size() == (between ? 1 : 0));
  }
}

TEST_CASE("journal: a flipped byte cuts there, and the message says where and what is kept") {
  FakeFiles files;
  write(files, 1, {run(1), done("0"), done("1"), done("2")});
  std::string content = *files.read(segment(1));
  const size_t place = content.find("\"item\":\"1\"") + 8;
  const size_t begin = content.rfind('\n', place) + 1;
  content[place] = '7';
  REQUIRE(files.replace(segment(1), content).ok());
  const JournalState state = read(files);
  CHECK(is_done(state, "0"));
  CHECK_FALSE(is_done(state, "1"));
  CHECK_FALSE(is_done(state, "7"));
  CHECK_FALSE(is_done(state, "2"));
  CHECK(state.newest_length == begin);
  REQUIRE(state.messages.size() == 1);
  const std::string& message = state.messages[0];
  CHECK(message.starts_with("journal.1.jsonl: the record at byte " + std::to_string(begin) + " "));
  CHECK(message.find("its sum is ") != std::string::npos);
  CHECK(message.find("2 records before it are kept") != std::string::npos);
  CHECK(message.find("the last " + std::to_string(content.size() - begin) + " bytes are ignored") !=
        std::string::npos);
  CHECK(message.find("worked out again") != std::string::npos);
}

TEST_CASE("journal: after a crash of the machine the synced records are there") {
  FakeFiles files;
  auto writer = JournalWriter::create(files, segment(1));
  REQUIRE(writer->append(run(1)).ok());
  REQUIRE(writer->append(done("0")).ok());
  REQUIRE(writer->sync().ok());
  REQUIRE(writer->append(done("1")).ok());
  files.crash();
  const JournalState state = read(files);
  CHECK(is_done(state, "0"));
  CHECK_FALSE(is_done(state, "1"));
}

TEST_CASE("journal: a takeover reads on, and ignores what a stalled writer adds later") {
  FakeFiles files;
  auto stalled = JournalWriter::create(files, segment(1));
  REQUIRE(stalled->append(run(1)).ok());
  REQUIRE(stalled->append(done("0")).ok());

  record::Run second = run(2);
  continue_from(read(files), second);
  CHECK(second.previous_epoch == 1);
  CHECK(second.previous_length == stalled->length());
  write(files, 2, {second, done("1")});
  REQUIRE(stalled->append(done("late")).ok());
  REQUIRE(stalled->append(done("0", 5)).ok());

  const JournalState state = read(files);
  CHECK(state.epoch == 2);
  CHECK(is_done(state, "1"));
  CHECK_FALSE(is_done(state, "late"));
  CHECK(facts(state, "0")->done->key == Hash128{9, 1});
  CHECK(state.messages.empty());
  CHECK(state.first_time_ms == 1000);
}

TEST_CASE("journal: a segment whose writer died before its first record breaks nothing") {
  FakeFiles files;
  write(files, 1, {run(1), done("0")});
  record::Run second = run(2);
  continue_from(read(files), second);
  REQUIRE(files.replace(segment(2), encode_record(second).substr(0, 20)).ok());
  record::Run third = run(3);
  continue_from(read(files), third);
  CHECK(third.previous_epoch == 1);
  write(files, 3, {third, done("2")});
  const JournalState state = read(files);
  CHECK(state.epoch == 3);
  CHECK(is_done(state, "0"));
  CHECK(is_done(state, "2"));
  CHECK(state.messages.empty());
}

TEST_CASE("journal: a run record without previous_epoch continues the next older segment") {
  FakeFiles files;
  write(files, 9, {run(9), done("0")});
  record::Run second = run(10);  // sorted by number, not by name
  second.previous_length = files.read(segment(9))->size();
  write(files, 10, {second, done("1")});
  const JournalState state = read(files);
  CHECK(state.epoch == 10);
  CHECK(is_done(state, "0"));
  CHECK(is_done(state, "1"));
}

TEST_CASE("journal: a segment that got shorter is told") {
  FakeFiles files;
  write(files, 1, {run(1), done("0"), done("1")});
  record::Run second = run(2);
  continue_from(read(files), second);
  write(files, 2, {second});
  const std::string content = *files.read(segment(1));
  const size_t kept = content.rfind('\n', content.size() - 2) + 1;
  REQUIRE(files.replace(segment(1), content.substr(0, kept)).ok());
  const JournalState state = read(files);
  CHECK(is_done(state, "0"));
  REQUIRE(state.messages.size() == 1);
  CHECK(state.messages[0].find("ends at byte " + std::to_string(kept)) != std::string::npos);
}

TEST_CASE("journal: records of a later version are passed over, a later format is refused") {
  FakeFiles files;
  write(files, 1, {run(1), record::Unknown{"hologram"}, done("0")});
  CHECK(is_done(read(files), "0"));
  record::Run later = run(2);
  later.version = 2;
  write(files, 2, {later});
  const auto refused = read_journal(files, kFolder);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("has version 2, this program reads up to version 1") !=
        std::string::npos);
}

TEST_CASE("journal: other files in the folder are not segments") {
  FakeFiles files;
  write(files, 1, {run(1), done("0")});
  for (const char* name : {"journal.jsonl", "journal..jsonl", "journal.x.jsonl",
                           "journal.2.jsonl.tmp", "journal.99999999999.jsonl", "trace.bin"}) {
    REQUIRE(files.replace(kFolder / name, encode_record(run(5))).ok());
  }
  CHECK(read(files).epoch == 1);
}

}  // namespace sluice::io
