#include "io/log_pack.h"

#include <doctest/doctest.h>

#include "tests/support/temporary_folder.h"

using namespace sluice;
using scheduler::AttemptId;
using sluice::test::read_text;
using sluice::test::TemporaryFolder;
using sluice::test::write_text;
namespace fs = std::filesystem;

namespace {

io::LogEntry entry(uint32_t number, const std::string& task, const std::string& item = "") {
  io::LogEntry e;
  e.task = task;
  e.item = item;
  e.attempt = AttemptId::make(1, number);
  e.worker = 3;
  e.outcome = "done";
  return e;
}
io::LogStream text(const std::string& t) { return {t, {}, static_cast<int64_t>(t.size()), 0}; }

}  // namespace

TEST_CASE("log pack: what attempts wrote is read back, by stream, ordered by attempt") {
  const TemporaryFolder folder;
  {
    auto writer = std::move(io::LogPackWriter::create(folder / "logs", 1, 3).value());
    REQUIRE(writer.append(entry(2, "b", "k=1"), text("two out\n"), text("two err\n")));
    REQUIRE(writer.append(entry(1, "a"), text(""), text("one err")));
  }
  const auto entries = io::read_log_index(folder / "logs");
  REQUIRE(entries);
  REQUIRE(entries->size() == 2);
  const io::LogEntry& first = (*entries)[0];
  const io::LogEntry& second = (*entries)[1];
  CHECK(first.task == "a");
  CHECK(second.task == "b");
  CHECK(second.item == "k=1");
  CHECK(second.worker == 3);
  CHECK(second.outcome == "done");
  CHECK(second.pack == folder / "logs/1.3.log");
  CHECK(*io::read_log(first, false) == "");
  CHECK(*io::read_log(first, true) == "one err");
  CHECK(*io::read_log(second, false) == "two out\n");
  CHECK(*io::read_log(second, true) == "two err\n");
}

TEST_CASE("log pack: a stream may come as a file, and says what was dropped") {
  const TemporaryFolder folder;
  const std::string kept(300'000, 'k');
  write_text(folder / "stream", kept);
  auto writer = std::move(io::LogPackWriter::create(folder / "logs", 1, 0).value());
  REQUIRE(writer.append(entry(1, "a"), {"", folder / "stream", 1'000'000, 700'000}, text("e")));
  const auto entries = io::read_log_index(folder / "logs");
  REQUIRE(entries->size() == 1);
  CHECK((*entries)[0].out_bytes == 300'000);
  CHECK((*entries)[0].out_written_bytes == 1'000'000);
  CHECK((*entries)[0].out_dropped_bytes == 700'000);
  CHECK(*io::read_log((*entries)[0], false) == kept);
  CHECK(*io::read_log((*entries)[0], true) == "e");
}

TEST_CASE("log pack: a failed append leaves whole entries") {
  const TemporaryFolder folder;
  auto writer = std::move(io::LogPackWriter::create(folder / "logs", 1, 0).value());
  REQUIRE(writer.append(entry(1, "a"), text("one"), text("")));
  CHECK_FALSE(writer.append(entry(2, "b"), text("half"), {"", folder / "missing", 0, 0}));
  REQUIRE(writer.append(entry(3, "c"), text("three"), text("")));
  CHECK(read_text(folder / "logs/1.0.log") == "onethree");
  const auto entries = io::read_log_index(folder / "logs");
  REQUIRE(entries->size() == 2);
  CHECK(*io::read_log((*entries)[1], false) == "three");
}

TEST_CASE("log pack: torn and foreign index lines are ignored") {
  const TemporaryFolder folder;
  {
    auto writer = std::move(io::LogPackWriter::create(folder / "logs", 2, 5).value());
    REQUIRE(writer.append(entry(1, "a"), text("x"), text("")));
  }
  const fs::path index = folder / "logs/2.5.index";
  const std::string line = read_text(index);
  SUBCASE("torn") { write_text(index, line + line.substr(0, line.size() / 2)); }
  SUBCASE("torn just before the line's end") {
    write_text(index, line + line.substr(0, line.size() - 1));
  }
  SUBCASE("not JSON, wrong members, wrong types") {
    write_text(index, "garbage\n{}\n[1]\n{\"task\":7}\n" + line);
  }
  const auto entries = io::read_log_index(folder / "logs");
  REQUIRE(entries);
  CHECK(entries->size() == 1);
}

TEST_CASE("log pack: a pack shorter than its index says is an error") {
  const TemporaryFolder folder;
  auto writer = std::move(io::LogPackWriter::create(folder / "logs", 1, 0).value());
  REQUIRE(writer.append(entry(1, "a", "k=1"), text("12345"), text("")));
  fs::resize_file(folder / "logs/1.0.log", 3);
  const auto entries = io::read_log_index(folder / "logs");
  const auto log = io::read_log(entries->at(0), false);
  REQUIRE_FALSE(log);
  CHECK(log.error().message.find("ends before byte 5, where the output of a[k=1] should end") !=
        std::string::npos);
}

TEST_CASE("log pack: workers and epochs have files of their own") {
  const TemporaryFolder folder;
  for (const uint32_t epoch : {1U, 2U}) {
    for (const uint32_t worker : {0U, 1U}) {
      auto writer = std::move(io::LogPackWriter::create(folder / "logs", epoch, worker).value());
      io::LogEntry e = entry(1 + worker, "t");
      e.attempt = AttemptId::make(epoch, 1 + worker);
      REQUIRE(writer.append(e, text(std::to_string(epoch * 10 + worker)), text("")));
    }
  }
  const auto entries = io::read_log_index(folder / "logs");
  REQUIRE(entries->size() == 4);
  std::string all;
  for (const io::LogEntry& e : *entries) all += *io::read_log(e, false) + " ";
  CHECK(all == "10 11 20 21 ");
}

TEST_CASE("log pack: a reader gives each entry once, as the files grow") {
  const TemporaryFolder folder;
  io::LogIndexReader reader(folder / "logs");
  const auto new_tasks = [&reader] {
    const auto entries = reader.read_new();
    REQUIRE(entries);
    std::string tasks;
    for (const io::LogEntry& e : *entries) tasks += e.task + " ";
    return tasks;
  };
  CHECK(new_tasks().empty());  // no folder yet
  auto writer = std::move(io::LogPackWriter::create(folder / "logs", 1, 0).value());
  REQUIRE(writer.append(entry(2, "b"), text("two"), text("")));
  REQUIRE(writer.append(entry(1, "a"), text("one"), text("")));
  CHECK(new_tasks() == "a b ");
  CHECK(new_tasks().empty());
  REQUIRE(writer.append(entry(3, "c"), text("three"), text("")));
  auto other = std::move(io::LogPackWriter::create(folder / "logs", 1, 1).value());
  REQUIRE(other.append(entry(4, "d"), text(""), text("four")));
  CHECK(new_tasks() == "c d ");
  CHECK(new_tasks().empty());
}

TEST_CASE("log pack: a reader leaves a torn last line for when it is whole") {
  const TemporaryFolder folder;
  auto writer = std::move(io::LogPackWriter::create(folder / "logs", 1, 0).value());
  REQUIRE(writer.append(entry(1, "first"), text("1"), text("")));
  const fs::path index = folder / "logs/1.0.index";
  const std::string first = read_text(index);
  REQUIRE(writer.append(entry(2, "second"), text("22"), text("err")));
  const std::string both = read_text(index);

  io::LogIndexReader reader(folder / "logs");
  write_text(index, both.substr(0, both.size() - 1));
  CHECK(reader.read_new()->size() == 1);
  CHECK(reader.read_new()->empty());
  SUBCASE("it is completed") { write_text(index, both); }
  SUBCASE("its writer takes it back, and writes it again") {
    write_text(index, first);
    CHECK(reader.read_new()->empty());
    write_text(index, both);
  }
  const auto entries = reader.read_new();
  REQUIRE(entries);
  REQUIRE(entries->size() == 1);
  CHECK((*entries)[0].task == "second");
  CHECK(*io::read_log((*entries)[0], true) == "err");
  CHECK(reader.read_new()->empty());
}

TEST_CASE("log pack: no logs yet is no error") {
  const TemporaryFolder folder;
  const auto entries = io::read_log_index(folder / "logs");
  REQUIRE(entries);
  CHECK(entries->empty());
}
