#include "engine/status.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.h"

using namespace sluice;
using engine::RunDirectory;
using engine::RunStatus;
using engine::TaskStatus;
using scheduler::AttemptId;

namespace {

io::record::Run run(uint32_t epoch) {
  io::record::Run r;
  r.run_uuid = "u";
  r.epoch = epoch;
  r.previous_length = UINT64_MAX;  // all of the one before
  r.unix_time_ms = 1000;
  r.command = "sluice run /p.yaml";
  r.tasks = {{"a", 10, 1, 0, 0}, {"b", 2, 1, 0, 0}};
  return r;
}
io::record::DoneRecord done(const std::string& item) {
  io::record::DoneRecord r;
  r.task = "a";
  r.item = item;
  r.attempt = AttemptId::make(1, 1);
  r.usage.wall = scheduler::seconds(2);
  r.unix_time_ms = 1'700'000'002'000;
  return r;
}
io::record::Attempt failed(const std::string& item, const std::string& text) {
  io::record::Attempt r;
  r.task = "a";
  r.item = item;
  r.attempt = AttemptId::make(1, 2);
  r.cause = "signal";
  r.signal = 11;
  r.final = true;
  r.stderr_tail = text;
  return r;
}
std::string lines(const std::vector<io::Record>& records) {
  std::string text;
  for (const io::Record& record : records) text += io::encode_record(record);
  return text;
}

struct Folder {
  test::TemporaryFolder folder;
  RunDirectory directory{folder.path()};
  void journal(uint32_t epoch, const std::string& text) {
    test::write_text(directory.journal(epoch), text);
  }
  void snapshot(uint32_t epoch, uint64_t journal_bytes, size_t done_count) {
    const nlohmann::json json = {{"version", 1},
                                 {"run_uuid", "u"},
                                 {"epoch", epoch},
                                 {"journal_bytes", journal_bytes},
                                 {"running", nlohmann::json::array()},
                                 {"tasks",
                                  {{{"task", "a"},
                                    {"instances", 10},
                                    {"running", 3},
                                    {"done", done_count},
                                    {"failed", 0},
                                    {"skipped", 0}},
                                   {{"task", "b"},
                                    {"instances", 2},
                                    {"running", 0},
                                    {"done", 0},
                                    {"failed", 0},
                                    {"skipped", 0}}}}};
    test::write_text(directory.status(), json.dump());
  }
  [[nodiscard]] RunStatus read() const {
    auto status = engine::read_status(directory);
    REQUIRE(status.ok());
    return std::move(*status);
  }
};

}  // namespace

// UC-103
TEST_CASE("status: a journal without an end and without a lease is of a run that was killed") {
  Folder folder;
  folder.journal(1, lines({run(1), done("1"), done("2")}));
  const RunStatus status = folder.read();
  CHECK(status.state == RunStatus::State::kNotRunning);
  CHECK(status.exit_code == 4);
  const TaskStatus total = status.total();
  CHECK(total.instances == 12);
  CHECK(total.done == 2);
  CHECK(total.waiting == 10);
  std::ostringstream text;
  engine::print_status(status, folder.directory, text);
  CHECK(text.str().find("10 unfinished") != std::string::npos);
  CHECK(text.str().find("continue:   sluice run /p.yaml") != std::string::npos);
}

TEST_CASE("status: what rank 0 counted is believed, and what was recorded since is added") {
  Folder folder;
  const std::string first = lines({run(1)});
  const std::string begin = lines({run(2), done("1")});
  folder.journal(1, first + lines({done("1"), done("2"), done("3")}));
  folder.journal(2, begin + lines({done("2"), failed("4", "")}));
  // The spec has changed: of three recorded, the core took none over.
  folder.snapshot(2, begin.size(), 1);
  const RunStatus status = folder.read();
  REQUIRE(status.tasks.size() == 2);
  CHECK(status.tasks[0].done == 2);
  CHECK(status.tasks[0].failed == 1);
  CHECK(status.tasks[0].running == 0);  // nothing runs any more
  CHECK(status.tasks[0].waiting == 7);
}

TEST_CASE("status: a helper file that is damaged, old or ahead of the journal is not believed") {
  Folder folder;
  const std::string text = lines({run(1), done("1")});
  folder.journal(1, text);
  SUBCASE("of another submission") { folder.snapshot(2, 10, 7); }
  SUBCASE("of bytes that are not there") { folder.snapshot(1, text.size() + 1, 7); }
  SUBCASE("torn") { test::write_text(folder.directory.status(), R"({"version": 1, "run_uu)"); }
  SUBCASE("of wrong types") {
    test::write_text(folder.directory.status(), R"({"version": 1, "run_uuid": 5})");
  }
  SUBCASE("with more done than there are") { folder.snapshot(1, text.size(), 11); }
  CHECK(folder.read().tasks[0].done == 1);
}

// UC-099
TEST_CASE("status: failures are grouped by cause and by what they said") {
  Folder folder;
  folder.journal(1, lines({run(1), failed("1", "no mesh"), failed("2", "no mesh"),
                           failed("3", "other"), failed("4", "no mesh"), done("4")}));
  const RunStatus status = folder.read();
  REQUIRE(status.failures.size() == 2);
  CHECK(status.failures[0].failures.size() == 2);
  CHECK(status.failures[0].stderr_tail == "no mesh");
  CHECK(status.failures[0].cause == "signal 11 (Segmentation fault)");
  CHECK(status.failures[1].failures.size() == 1);
}

// UC-101
TEST_CASE("status: as JSON it names its version, its state and every count") {
  Folder folder;
  folder.journal(1, lines({run(1), done("1"), failed("2", "bad byte \xff"),
                           io::record::End{"failed", 1, 5000}}));
  const auto json = nlohmann::json::parse(engine::status_as_json(folder.read(), folder.directory));
  CHECK(json["version"] == 1);
  CHECK(json["state"] == "ended");
  CHECK(json["outcome"] == "failed");
  CHECK(json["exit_code"] == 1);
  CHECK(json["counts"]["done"] == 1);
  CHECK(json["tasks"][0]["failed"] == 1);
  CHECK(json["failures"][0]["items"] == nlohmann::json::array({"2"}));
  CHECK(json["ended_ms"] == 5000);
}

TEST_CASE("status: a worker that was set aside is named, in this submission only") {
  Folder f;
  io::record::Worker worker;
  worker.worker = 2;
  worker.state = "joined";
  worker.host = "n17";
  std::string text = lines({run(1), worker});
  worker.state = "set aside";
  f.journal(1, text + lines({worker}));
  const auto status = engine::read_status(f.directory);
  REQUIRE(status);
  std::ostringstream printed;
  engine::print_status(*status, f.directory, printed);
  CHECK(printed.str().find("set aside:  worker 2 on n17: ") != std::string::npos);
  const auto json = nlohmann::json::parse(engine::status_as_json(*status, f.directory));
  CHECK(json["workers_set_aside"] == nlohmann::json::parse(R"([{"worker": 2, "host": "n17"}])"));
  f.journal(2, lines({run(2)}));
  std::ostringstream later;
  engine::print_status(*engine::read_status(f.directory), f.directory, later);
  CHECK(later.str().find("set aside") == std::string::npos);
}

TEST_CASE("status: as TSV each instance has a line of as many cells as the first") {
  Folder folder;
  folder.journal(1, lines({run(1), io::record::Worker{0, "joined", "node\t1", {4, 1}}, done("1"),
                           failed("2", ""), io::record::Skipped{"b", "", "a[2]"}}));
  std::ostringstream out;
  engine::print_status_tsv(folder.read(), nullptr, out);
  std::istringstream in(out.str());
  std::vector<std::string> rows;
  for (std::string line; std::getline(in, line);) rows.push_back(line);
  REQUIRE(rows.size() == 4);
  for (const std::string& row : rows) CHECK(std::count(row.begin(), row.end(), '\t') == 9);
  CHECK(rows[1].starts_with("a\t1\tdone\t-\t0\tnode 1\t"));
  CHECK(rows[1].ends_with("\t2.000\t-"));
  CHECK(rows[2].starts_with("a\t2\tfailed\tsignal\t139\t"));
  CHECK(rows[3] == "b\t-\tskipped\ta[2]\t-\t-\t-\t-\t-\t-");
}
