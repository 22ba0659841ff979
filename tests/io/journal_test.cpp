#include "io/journal.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <string>
#include <vector>

namespace sluice::io {
namespace {

using scheduler::AttemptId;

record::DoneRecord done_record() {
  return {"simulate",
          "grid=64,alpha=0.1",
          AttemptId::make(2, 77),
          {0x0123456789abcdefULL, 0xfedcba9876543210ULL},
          {{"field", {1, 2}, 4096, false, ""}, {"score", {3, 4}, 0, true, ""}},
          {scheduler::seconds(3), scheduler::seconds(2), 1 << 20},
          5,
          1'700'000'000'123,
          {5, 6},
          "00000a0000ff"};
}

std::vector<Record> all_records() {
  return {
      record::Run{1,
                  "uuid",
                  3,
                  "ab12",
                  "node7",
                  1'700'000'000'000,
                  2,
                  4711,
                  90,
                  {{"tol", "1e-4"}},
                  "/home/a/p.yaml",
                  "sluice run /home/a/p.yaml --set tol=1e-4",
                  {{"simulate", 90, 4, 1LL << 33U, 60'000}, {"mean", 1, 1, 0, 0}},
                  {{"sluice", "0.1.0"}}},
      record::KeyParts{"simulate", {"command", "input mesh"}},
      record::Worker{2, "joined", "node8", {64, 1LL << 38U}, 1'700'000'000'001},
      done_record(),
      record::Durable{"simulate",
                      "grid=64",
                      "field",
                      "results/simulate/grid=64.field.h5",
                      "results/.tmp/2.78",
                      {1, 2},
                      4096},
      record::Attempt{"simulate",
                      "grid=64",
                      AttemptId::make(1, 9),
                      "signal",
                      -3,
                      11,
                      "killed",
                      "line 1\n\"line\" 2\\\t\x01",
                      true,
                      5,
                      {scheduler::seconds(1), {}, 7},
                      1'700'000'000'456},
      record::Skipped{"mean", "", "simulate[grid=64]"},
      record::Removed{"simulate", "grid=64", "field"},
      record::Gone{"simulate", "grid=32"},
      record::Restored{"simulate", "grid=64"},
      record::Sync{},
      record::End{"failed", 1, 1'700'000'000'999},
  };
}

}  // namespace

TEST_CASE("journal: every record comes back as it was written") {
  for (const Record& record : all_records()) {
    const std::string line = encode_record(record);
    CAPTURE(line);
    CHECK(line.back() == '\n');
    CHECK(line.find('\n') == line.size() - 1);
    const auto back = decode_record(line);
    REQUIRE(back.ok());
    CHECK(back->index() == record.index());
    CHECK(encode_record(*back) == line);
  }
}

TEST_CASE("journal: the members of a done record keep their places") {
  const auto back = decode_record(encode_record(done_record()));
  REQUIRE(back.ok());
  const auto& done = std::get<record::DoneRecord>(*back);
  CHECK(done.task == "simulate");
  CHECK(done.item == "grid=64,alpha=0.1");
  CHECK(done.attempt == AttemptId::make(2, 77));
  CHECK(done.key == scheduler::Hash128{0x0123456789abcdefULL, 0xfedcba9876543210ULL});
  REQUIRE(done.outputs.size() == 2);
  CHECK(done.outputs[0].name == "field");
  CHECK(done.outputs[0].content == scheduler::Hash128{1, 2});
  CHECK(done.outputs[0].bytes == 4096);
  CHECK_FALSE(done.outputs[0].is_value);
  CHECK(done.outputs[1].is_value);  // although its text is empty
  CHECK(done.usage.wall == scheduler::seconds(3));
  CHECK(done.usage.memory_peak_bytes == 1 << 20);
  CHECK(done.worker == 5);
  CHECK(done.unix_time_ms == 1'700'000'000'123);
}

// Golden line: a change here is a change of the format.
TEST_CASE("journal: the bytes of a record are fixed") {
  CHECK(encode_record(record::Skipped{"mean", "", "simulate[grid=64]"})
            .starts_with(R"({"t":"skipped","task":"mean","because":"simulate[grid=64]","sum":")"));
  CHECK(encode_record(record::Sync{}) == "{\"t\":\"sync\",\"sum\":\"5704861163dd4e62\"}\n");
}

TEST_CASE("journal: text that is not UTF-8 keeps its bytes") {
  const std::vector<std::string> texts{"k=\xff\xfe",         "k=\xc3",
                                       "k=\xed\xa0\x80",     "k=\xc0\xaf",
                                       "k=caf\xc3\xa9",      "k=\xf0\x9f\x8c\x8a",
                                       "k=\xf5\x80\x80\x80", std::string("k=\0", 3)};
  for (const std::string& text : texts) {
    const std::string line = encode_record(record::Removed{"t", text, "o"});
    CAPTURE(line);
    const auto back = decode_record(line);
    REQUIRE(back.ok());
    CHECK(std::get<record::Removed>(*back).item == text);
  }
  CHECK(encode_record(record::Removed{"t", "\xff", "o"}).find("\"item_hex\":\"ff\"") !=
        std::string::npos);
}

TEST_CASE("journal: any changed byte of a line is noticed") {
  const std::string line = encode_record(done_record());
  for (size_t place = 0; place + 1 < line.size(); ++place) {
    std::string damaged = line;
    damaged[place] = static_cast<char>(damaged[place] ^ 1);
    CAPTURE(damaged);
    CHECK_FALSE(decode_record(damaged).ok());
  }
}

TEST_CASE("journal: a kind of a later version is unknown, not an error") {
  const auto back = decode_record(encode_record(record::Unknown{"hologram"}));
  REQUIRE(back.ok());
  CHECK(std::get<record::Unknown>(*back).kind == "hologram");
}

TEST_CASE("journal: a segment is created once") {
  FakeFiles files;
  REQUIRE(JournalWriter::create(files, "/run/journal.1.jsonl").ok());
  CHECK(JournalWriter::create(files, "/run/journal.1.jsonl").error().code == EEXIST);
}

TEST_CASE("journal: sync writes a sync record, but only if there is something to sync") {
  FakeFiles files;
  auto writer = JournalWriter::create(files, "/run/journal.1.jsonl");
  REQUIRE(writer.ok());
  REQUIRE(writer->sync().ok());
  CHECK(writer->length() == 0);
  REQUIRE(writer->append(done_record()).ok());
  CHECK(writer->unsynced_bytes() == encode_record(done_record()).size());
  REQUIRE(writer->sync().ok());
  CHECK(writer->unsynced_bytes() == 0);
  const std::string content = *files.read("/run/journal.1.jsonl");
  CHECK(content == encode_record(done_record()) + encode_record(record::Sync{}));
  CHECK(writer->length() == content.size());
  REQUIRE(writer->sync().ok());
  CHECK(*files.read("/run/journal.1.jsonl") == content);
}

TEST_CASE("journal: a full disk leaves whole records, and writing goes on when there is room") {
  FakeFiles files;
  auto writer = JournalWriter::create(files, "/run/journal.1.jsonl");
  const std::string line = encode_record(done_record());
  files.set_capacity(line.size() * 2 + 20);
  CHECK(writer->append(done_record()).ok());
  CHECK(writer->append(done_record()).ok());
  CHECK(writer->append(done_record()).error().code == ENOSPC);
  CHECK(*files.read("/run/journal.1.jsonl") == line + line);
  files.set_capacity(line.size() * 4);
  CHECK(writer->append(done_record()).ok());
  CHECK(*files.read("/run/journal.1.jsonl") == line + line + line);
  CHECK(writer->length() == line.size() * 3);
}

TEST_CASE("journal: a failed append is cut off, at the latest before the next one") {
  FakeFiles files;
  auto writer = JournalWriter::create(files, "/run/journal.1.jsonl");
  const std::string line = encode_record(done_record());
  REQUIRE(writer->append(done_record()).ok());
  files.fail_call(1);
  CHECK(writer->append(done_record()).error().code == EIO);
  CHECK(writer->length() == line.size());
  CHECK(writer->append(done_record()).ok());
  CHECK(*files.read("/run/journal.1.jsonl") == line + line);
}

TEST_CASE("journal: a failed sync is final: no sync record may follow it") {
  FakeFiles files;
  auto writer = JournalWriter::create(files, "/run/journal.1.jsonl");
  REQUIRE(writer->append(done_record()).ok());
  files.fail_call(1);
  CHECK(writer->sync().error().code == EIO);
  CHECK(writer->sync().error().code == EIO);
  CHECK(writer->unsynced_bytes() > 0);
  CHECK(*files.read("/run/journal.1.jsonl") == encode_record(done_record()));
}

}  // namespace sluice::io
