// What a run has recorded as durable survives a crash, and a journal that cannot be written has no
// holes: the file calls of the real implementation go wrong one after another.
#include "engine/record_keeper.h"

#include <doctest/doctest.h>
#include <poll.h>

#include <cerrno>
#include <optional>

#include "io/tier.h"
#include "tests/support/faulty_system.h"
#include "tests/support/temporary_folder.h"

using namespace sluice;
using sluice::test::Fault;
using sluice::test::FaultySystem;
using sluice::test::for_each_call;
using sluice::test::read_text;
using sluice::test::TemporaryFolder;
using sluice::test::write_text;
namespace fs = std::filesystem;

namespace {

const std::string kContent(3000, 'r');

io::record::DoneRecord done_record(int number) {
  io::record::DoneRecord record;
  record.task = "t";
  record.item = std::to_string(number);
  record.attempt = scheduler::AttemptId::make(1, static_cast<uint32_t>(number));
  return record;
}

io::record::Durable durable_record(int number) {
  io::record::Durable record;
  record.task = "t";
  record.item = std::to_string(number);
  record.output = "x";
  record.path = "results/t/" + record.item + ".x";
  record.temporary = "results/.tmp/" + record.item;
  record.bytes = static_cast<int64_t>(kContent.size());
  return record;
}

// A keeper over a run directory, as a run has it after its start, and what it told.
struct Run {
  explicit Run(const fs::path& path) : directory{path} {
    REQUIRE(io::make_durable_folders(directory.results_temporary()));
    auto journal = io::JournalWriter::create(io::real_files(), directory.journal(1));
    io::record::Run run;
    run.run_uuid = "u";
    REQUIRE(journal.value().append(run));
    keeper = std::make_unique<engine::RecordKeeper>(
        io::real_files(), directory, std::move(*journal), nullptr,
        std::move(io::Lease::take(path, {}).value()),
        engine::RecordKeeper::Callbacks{[this](const Error& error) { failure = error; },
                                        [](const engine::Mail&) {}});
  }
  // As a worker does: the saved file is synced before rank 0 hears of it.
  void save(int number) const {
    const fs::path source = directory.path / "source";
    write_text(source, kContent);
    (void)io::copy_file(source, directory.path / durable_record(number).temporary, 0444,
                        io::Sync::kFileAndFolder);
  }
  void finish_one(int number) {
    save(number);
    keeper->append(done_record(number));
    keeper->commit(durable_record(number), [this, number](const Status& status) {
      committed.emplace_back(number, status.ok());
    });
  }
  void wait() const {
    // Jobs that have nothing to tell end silently: look for them now and then.
    for (int looks = 0; keeper->pending() > 0; ++looks) {
      REQUIRE(looks < 60'000);
      pollfd fd{keeper->fd(), POLLIN, 0};
      (void)poll(&fd, 1, 1);
      keeper->run_completions();
    }
  }

  engine::RunDirectory directory;
  std::unique_ptr<engine::RecordKeeper> keeper;
  std::optional<Error> failure;
  std::vector<std::pair<int, bool>> committed;
};

bool is_whole(const fs::path& file) { return fs::exists(file) && read_text(file) == kContent; }

// Whatever a crash left in `folder`: what the run was told to be committed is in place, and what a
// record says will be in place is there under one of its two names.
void check_after_crash(const fs::path& folder, const Run& run) {
  const auto state = io::read_journal(folder);
  REQUIRE_MESSAGE(state, state.error().message);
  for (const auto& [number, ok] : run.committed) {
    if (!ok) continue;
    const auto facts = state->instances.find({"t", std::to_string(number)});
    REQUIRE(facts != state->instances.end());
    CHECK(facts->second.done);
    CHECK(facts->second.durable.contains("x"));
    CHECK(is_whole(folder / durable_record(number).path));
  }
  for (const auto& [name, facts] : state->instances) {
    for (const auto& [output, durable] : facts.durable) {
      CHECK((is_whole(folder / durable.path) || is_whole(folder / durable.temporary)));
    }
  }
}

}  // namespace

TEST_CASE("record keeper: wherever the machine stops, what a durable record names is there") {
  const auto body = [](const Fault& fault) {
    const TemporaryFolder folder;
    const TemporaryFolder after;
    Run run(folder / "run");
    FaultySystem system(folder.path());
    system.arm(fault);
    for (const int number : {1, 2}) {
      run.finish_one(number);
      run.wait();
    }
    const std::string at = system.hit_call();
    for (const bool names : {false, true}) {
      for (const bool bytes : {false, true}) {
        INFO("stopped at call " << fault.nth << ": " << at << ", only synced names: " << names
                                << ", only synced bytes: " << bytes);
        const fs::path left = after / (std::to_string(names) + std::to_string(bytes));
        system.lay_out_crash(left, names, bytes);
        check_after_crash(left / "run", run);
      }
    }
    system.disarm();
    if (!at.empty()) return true;
    CHECK(run.committed == std::vector<std::pair<int, bool>>{{1, true}, {2, true}});
    return false;
  };
  CHECK(for_each_call({Fault::Kind::kCrash}, body) > 15);
}

TEST_CASE("record keeper: whichever call fails, there is no hole in the journal") {
  for (const int error : {EIO, ENOSPC}) {
    const auto body = [error](const Fault& fault) {
      const TemporaryFolder folder;
      Run run(folder / "run");
      FaultySystem system(folder.path());
      system.arm(fault);
      for (int number = 1; number <= 3; ++number) {
        run.keeper->append(done_record(number));
        run.wait();
      }
      run.keeper->tick({0});
      run.wait();
      system.disarm();
      INFO("call " << fault.nth << ", errno " << error << ": " << system.hit_call());
      const auto state = io::read_journal(folder / "run");
      REQUIRE_MESSAGE(state, state.error().message);
      // Those that are there are the first ones.
      for (int number = 1; number <= 3; ++number) {
        const bool is_there = state->instances.contains({"t", std::to_string(number)});
        CHECK(is_there == (number <= static_cast<int>(state->instances.size())));
      }
      if (run.failure) {
        CHECK(run.failure->code == error);
        CHECK(run.failure->message.find(folder.path().string()) != std::string::npos);
      } else {
        CHECK(state->instances.size() == 3);
      }
      return system.hit();
    };
    CHECK(for_each_call({Fault::Kind::kError, error}, body) > 3);
  }
}

TEST_CASE("record keeper: whichever call fails, a commit is told to have failed or is in place") {
  for (const int error : {EIO, ENOSPC}) {
    const auto body = [error](const Fault& fault) {
      const TemporaryFolder folder;
      Run run(folder / "run");
      run.save(1);
      FaultySystem system(folder.path());
      system.arm(fault);
      run.keeper->commit(durable_record(1),
                         [&](const Status& status) { run.committed.emplace_back(1, status.ok()); });
      run.wait();
      system.disarm();
      INFO("call " << fault.nth << ", errno " << error << ": " << system.hit_call());
      REQUIRE(run.committed.size() == 1);
      CHECK((is_whole(run.directory.path / durable_record(1).path) ||
             is_whole(run.directory.path / durable_record(1).temporary)));
      if (run.committed[0].second) CHECK(is_whole(run.directory.path / durable_record(1).path));
      return system.hit();
    };
    CHECK(for_each_call({Fault::Kind::kError, error}, body) > 3);
  }
}
