#include "engine/clean.h"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include "io/lease.h"
#include "tests/support/temporary_folder.h"

using namespace sluice;
using engine::Leftover;
using engine::RunDirectory;

namespace {

io::record::Run run(uint32_t epoch) {
  io::record::Run r;
  r.run_uuid = "u";
  r.epoch = epoch;
  r.previous_length = UINT64_MAX;  // all of the one before
  return r;
}
io::record::DoneRecord done(const std::string& item) {
  io::record::DoneRecord r;
  r.task = "a";
  r.item = item;
  r.attempt = scheduler::AttemptId::make(1, 1);
  r.outputs = {{"x", {1, 2}, 1, false, ""}};
  return r;
}
io::record::Durable durable(const std::string& item, const std::string& path,
                            const std::string& temporary = "results/.tmp/0") {
  return {"a", item, "x", path, temporary, {1, 2}, 1};
}

struct Folder {
  test::TemporaryFolder folder;
  RunDirectory directory{folder.path()};

  void journal(uint32_t epoch, const std::vector<io::Record>& records) {
    std::string text;
    for (const io::Record& record : records) text += io::encode_record(record);
    test::write_text(directory.journal(epoch), text);
  }
  void file(const std::string& path) { test::write_text(folder / path, "x"); }
  [[nodiscard]] std::set<std::string> found(const engine::CleanChoice& choice = {}) const {
    const auto journal = io::read_journal(folder.path());
    const auto ledger = io::read_ledger(folder.path());
    REQUIRE(journal.ok());
    REQUIRE(ledger.ok());
    std::set<std::string> paths;
    for (const Leftover& one : engine::find_leftovers(directory, *journal, *ledger, choice)) {
      paths.insert(one.path.lexically_relative(folder.path()));
    }
    return paths;
  }
};

using Paths = std::set<std::string>;

}  // namespace

TEST_CASE("clean: takes temporaries, failed directories and objects that no record names") {
  Folder folder;
  folder.journal(1, {run(1), done("1"), durable("1", "objects/a/1.x"), done("2"),
                     durable("2", "results/a/2.x")});
  for (const char* path : {"objects/a/1.x", "objects/a/9.x", "results/a/2.x", "results/mine.txt",
                           "results/.tmp/5", "objects/.tmp/6", "failed/1.3/w", "logs/1.0.log"}) {
    folder.file(path);
  }
  CHECK(folder.found() == Paths{"objects/a/9.x", "results/.tmp/5", "objects/.tmp/6", "failed/1.3"});
}

TEST_CASE("clean: the only copy of a result whose rename was cut short is no leftover") {
  Folder folder;
  folder.journal(1, {run(1), done("1"), durable("1", "results/a/1.x", "results/.tmp/7")});
  folder.file("results/.tmp/7");
  folder.file("results/.tmp/8");
  CHECK(folder.found() == Paths{"results/.tmp/8"});
}

TEST_CASE("clean: logs of older submissions go on request only") {
  Folder folder;
  folder.journal(1, {run(1)});
  folder.journal(2, {run(2)});
  for (const char* path : {"logs/1.0.log", "logs/1.0.index", "logs/2.0.log"}) folder.file(path);
  CHECK(folder.found().empty());
  CHECK(folder.found({true, false}) == Paths{"logs/1.0.log", "logs/1.0.index"});
}

TEST_CASE("clean: results of instances that are gone are moved on request, others never") {
  Folder folder;
  folder.journal(1, {run(1), done("1"), durable("1", "results/a/1.x"), done("2"),
                     durable("2", "results/a/2.x")});
  folder.journal(2, {run(2), io::record::Gone{"a", "1"}});
  folder.file("results/a/1.x");
  folder.file("results/a/2.x");
  CHECK(folder.found().empty());
  CHECK(folder.found({false, true}) == Paths{"results/a/1.x"});
}

TEST_CASE("clean: the lease beats before a removal when a second has passed") {
  Folder folder;
  std::vector<Leftover> leftovers;
  for (const char* path : {"failed/1", "failed/2", "failed/3", "failed/4", "failed/5"}) {
    folder.file(path);
    leftovers.push_back({Leftover::Kind::kFailed, folder.folder / path, 1});
  }
  auto lease = io::Lease::take(folder.folder.path(), scheduler::Duration{});
  REQUIRE(lease.ok());
  std::vector<uint64_t> beats;  // as anyone sees them when a removal is about to begin
  scheduler::Instant time;
  const auto removal = engine::remove_leftovers(leftovers, folder.directory, 1, *lease, [&] {
    const auto view = io::view_lease(folder.folder.path());
    REQUIRE(view.ok());
    beats.push_back(view->owner.counter);
    time = time + scheduler::milliseconds(400);
    return time;
  });
  // At 400, 800, 1200 (beats), 1600, 2000 ms; seen before each.
  CHECK(beats == std::vector<uint64_t>{0, 0, 0, 1, 1});
  CHECK(removal.removed.size() == 5);
  CHECK(removal.errors.empty());
  CHECK_FALSE(removal.stopped);
  CHECK(std::filesystem::is_empty(folder.directory.failed()));
}

TEST_CASE("clean: removes nothing more once another run has taken over") {
  Folder folder;
  std::vector<Leftover> leftovers;
  for (const char* path : {"failed/1", "failed/2", "failed/3"}) {
    folder.file(path);
    leftovers.push_back({Leftover::Kind::kFailed, folder.folder / path, 1});
  }
  auto lease = io::Lease::take(folder.folder.path(), scheduler::Duration{});
  REQUIRE(lease.ok());
  scheduler::Instant time;
  const auto removal = engine::remove_leftovers(leftovers, folder.directory, 1, *lease, [&] {
    // The first removal took so long that the lease looked stale.
    if (time.ns > 0) folder.file("lease." + std::to_string(lease->epoch() + 1));
    time = time + scheduler::seconds(300);
    return time;
  });
  CHECK(removal.stopped);
  REQUIRE(removal.removed.size() == 1);
  CHECK(removal.removed[0].path == leftovers[0].path);
  REQUIRE(removal.errors.size() == 1);
  CHECK(removal.errors[0].find("failed/2': the run's lease cannot be kept") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(leftovers[0].path));
  CHECK(std::filesystem::exists(leftovers[1].path));
  CHECK(std::filesystem::exists(leftovers[2].path));
}
