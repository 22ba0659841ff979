// Rank 0's driver with a worker that is played by the test: it answers as a worker does, in no
// time.
#include "engine/scheduler_rank.h"

#include <doctest/doctest.h>
#include <poll.h>

#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/forecast.h"
#include "engine/run_start.h"
#include "io/journal.h"
#include "io/transport_local.h"
#include "tests/support/spec_folder.h"

using namespace sluice;
using engine::RunDirectory;
using engine::SchedulerRank;
using scheduler::AttemptId;
using scheduler::Instant;
using scheduler::WorkerId;
namespace event = scheduler::event;
namespace message = io::message;

namespace {

//  make[n=1] \                make[n=2] -> sum -> results/sum/sum.txt
//  make[n=2] -> sum
constexpr const char* kSpec = R"(sluice: 1
name: two
tasks:
  make:
    foreach: {n: [1, 2]}
    run: /bin/echo ${{ item.n }}
    outputs: {x: {file: x.txt}}
  sum:
    run: /bin/cat ${{ in.xs }}
    inputs: {xs: make.x}
    outputs: {sum: {file: sum.txt}}
)";

class PlayedWorker {
 public:
  PlayedWorker(io::Transport& transport, RunDirectory directory)
      : transport_(transport), directory_(std::move(directory)) {
    send(message::Hello{"n1", "node", "/nowhere", {1, 1 << 20}, 0});
  }

  void poll() {
    transport_.poll(
        [this](WorkerId, io::Channel, std::span<const std::byte> bytes) {
          auto decoded = io::decode(bytes);
          REQUIRE(decoded.ok());
          if (auto* start = std::get_if<message::Start>(&*decoded)) attempt(*start);
          if (auto* save = std::get_if<message::Save>(&*decoded)) keep(*save);
          if (std::holds_alternative<message::Leave>(*decoded)) send(message::Left{});
        },
        100);
  }

  std::function<bool(const std::string& label)> fails;
  std::vector<std::string> ran;

 private:
  void attempt(const message::Start& start) {
    ran.push_back(start.spec.label);
    const AttemptId id = start.decision.attempt;
    report(event::AttemptStarted{transport_.self(), id});
    if (fails && fails(start.spec.label)) {
      event::AttemptFailed failed;
      failed.worker = transport_.self();
      failed.attempt = id;
      failed.exit_code = 3;
      report(failed);
      return;
    }
    event::AttemptFinished finished{transport_.self(), id, {}, {}};
    for (const io::AttemptOutput& output : start.spec.outputs) {
      finished.outputs.push_back({io::hash_text(start.spec.label), 5, ""});
      (void)output;
    }
    report(finished);
  }
  void keep(const message::Save& save) {
    std::ofstream(directory_.path / save.temporary_path) << "saved";
    report(event::ObjectSaved{transport_.self(), save.object, save.save});
  }
  void report(scheduler::Event happened) { send(message::Report{std::move(happened)}); }
  void send(const io::Message& given) {
    transport_.send(WorkerId(0), io::Channel::kControl, io::encode(given));
  }

  io::Transport& transport_;
  RunDirectory directory_;
};

struct RunResult {
  int exit_code = -1;
  std::vector<std::string> ran;
  std::string printed;
  size_t restored = 0;
};

RunResult run(const io::Pipeline& pipeline, const RunDirectory& directory,
              std::function<bool(const std::string&)> fails = {},
              const engine::RunRules& rules = {}) {
  RunResult result;
  io::LocalNetwork network(2);
  engine::Report report({false, false, "sluice run p.yaml", directory},
                        [&](std::string_view text) { result.printed += text; });
  std::unique_ptr<SchedulerRank> rank;
  engine::Clock clock;
  engine::RecordKeeper::Callbacks callbacks;
  callbacks.journal_failed = [&](const Error& error) { rank->records_failed(clock.now(), error); };
  callbacks.mail = [&](const engine::Mail& mail) { rank->on_mail(clock.now(), mail); };
  auto start = engine::start_run(pipeline, directory, "n0", callbacks, {}, rules);
  REQUIRE_MESSAGE(start.ok(), (start.ok() ? "" : start.error().message));
  result.restored = start->restored.size();
  engine::SchedulerOptions options{start->run_uuid, directory, start->core, 1};
  rank = std::make_unique<SchedulerRank>(options, pipeline, network.end(WorkerId(0)),
                                         *start->keeper, report);
  rank->begin(clock.now(), engine::opening(rules.selection, start->restored), start->durable_paths);
  PlayedWorker worker(network.end(WorkerId(1)), directory);
  worker.fails = std::move(fails);
  const Instant limit = clock.now() + scheduler::seconds(20);
  while (!rank->finished(clock.now()) && clock.now() < limit) {
    network.end(WorkerId(0))
        .poll(
            [&](WorkerId from, io::Channel, std::span<const std::byte> bytes) {
              auto decoded = io::decode(bytes);
              REQUIRE(decoded.ok());
              rank->on_message(clock.now(), from, *decoded);
            },
            100);
    worker.poll();
    start->keeper->run_completions();
    start->keeper->tick(clock.now());
    rank->tick(clock.now());
    rank->schedule(clock.now());
    pollfd fd{start->keeper->fd(), POLLIN, 0};
    (void)poll(&fd, 1, 1);
  }
  CHECK(rank->finished(clock.now()));
  result.exit_code = rank->exit_code();
  result.ran = worker.ran;
  return result;
}

}  // namespace

TEST_CASE("scheduler rank: a run publishes its result, journals it, and has nothing to do again") {
  test::SpecFolder folder;
  const auto pipeline = folder.read(kSpec);
  REQUIRE_MESSAGE(pipeline, folder.printed);
  const RunDirectory directory = RunDirectory::for_spec(folder.path() / "p.yaml", "");

  const auto before = engine::make_forecast(*pipeline, directory);
  REQUIRE(before.ok());
  for (const engine::Verdict& verdict : before->verdicts) {
    CHECK(verdict.kind == engine::Verdict::Kind::kWillRun);
  }
  CHECK(!std::filesystem::exists(directory.path));  // a forecast changes nothing

  const RunResult first = run(*pipeline, directory);
  CHECK(first.exit_code == 0);
  CHECK(first.ran == std::vector<std::string>{"make[n=1]", "make[n=2]", "sum"});
  CHECK(std::filesystem::exists(directory.results() / "sum" / "sum.txt"));
  CHECK(!std::filesystem::exists(directory.results() / "make"));
  const auto journal = io::read_journal(directory.path);
  REQUIRE(journal.ok());
  CHECK(journal->end->outcome == "done");
  CHECK(journal->instances.at({"sum", ""}).durable.count("sum") == 1);

  const auto after = engine::make_forecast(*pipeline, directory);
  REQUIRE(after.ok());
  for (const engine::Verdict& verdict : after->verdicts) {
    CHECK(verdict.kind == engine::Verdict::Kind::kUpToDate);
  }
  const RunResult second = run(*pipeline, directory);
  CHECK(second.exit_code == 0);
  CHECK(second.ran.empty());
  CHECK(second.restored == 3);
  CHECK(second.printed.find("nothing to do: all 3 instances are done") != std::string::npos);
}

TEST_CASE(
    "scheduler rank: a lost result is made again, with what it needs, and nothing else is said") {
  test::SpecFolder folder;
  const auto pipeline = folder.read(kSpec);
  REQUIRE(pipeline);
  const RunDirectory directory = RunDirectory::for_spec(folder.path() / "p.yaml", "");
  CHECK(run(*pipeline, directory).exit_code == 0);
  std::filesystem::remove(directory.results() / "sum" / "sum.txt");
  const auto forecast = engine::make_forecast(*pipeline, directory);
  REQUIRE(forecast.ok());
  CHECK(forecast->verdicts[2].kind == engine::Verdict::Kind::kWillRun);
  CHECK(engine::reason_text(*pipeline, forecast->verdicts[2], engine::Naming::kInstances) ==
        "its result 'sum' is missing in the run directory, or was changed there");
  const RunResult again = run(*pipeline, directory);
  CHECK(again.exit_code == 0);
  CHECK(again.ran == std::vector<std::string>{"make[n=1]", "make[n=2]", "sum"});
  CHECK(again.printed.find("not reproducible") == std::string::npos);
}

TEST_CASE(
    "scheduler rank: a failure is 1, its dependant is skipped, its inputs are kept for the next "
    "run") {
  test::SpecFolder folder;
  const auto pipeline = folder.read(kSpec);
  REQUIRE(pipeline);
  const RunDirectory directory = RunDirectory::for_spec(folder.path() / "p.yaml", "");
  const auto second_fails = [](const std::string& label) { return label == "make[n=2]"; };
  const RunResult failed = run(*pipeline, directory, second_fails);
  CHECK(failed.exit_code == 1);
  CHECK(failed.printed.find("make[n=2]: attempt 1.2 ended by exit 3 on n1") != std::string::npos);
  CHECK(failed.printed.find("sum is skipped because make[n=2] failed") != std::string::npos);
  const auto forecast = engine::make_forecast(*pipeline, directory);
  REQUIRE(forecast.ok());
  CHECK(forecast->verdicts[1].reason == engine::Verdict::Reason::kLastFailed);
  const RunResult again = run(*pipeline, directory);
  CHECK(again.exit_code == 0);
  CHECK(again.ran == std::vector<std::string>{"make[n=2]", "sum"});  // make[n=1] was saved
}

TEST_CASE("scheduler rank: two runs in one directory, the second is refused and names the first") {
  test::SpecFolder folder;
  const auto pipeline = folder.read(kSpec);
  REQUIRE(pipeline);
  const RunDirectory directory = RunDirectory::for_spec(folder.path() / "p.yaml", "");
  const auto first = engine::start_run(*pipeline, directory, "n0", {});
  REQUIRE(first.ok());
  const auto second = engine::start_run(*pipeline, directory, "n0", {});
  REQUIRE(!second.ok());
  CHECK(second.error().message.find("process " + std::to_string(getpid())) != std::string::npos);
}

TEST_CASE("scheduler rank: a part of a pipeline is done for itself, the rest is for a later run") {
  test::SpecFolder folder;
  const auto pipeline = folder.read(kSpec);
  REQUIRE(pipeline);
  const RunDirectory directory = RunDirectory::for_spec(folder.path() / "p.yaml", "");
  engine::RunRules part;
  part.selection = *engine::select(*pipeline, {{"make[n=2]"}, {}, {}});
  const auto forecast = engine::make_forecast(*pipeline, directory, part.selection);
  REQUIRE(forecast.ok());
  CHECK(forecast->verdicts[0].kind == engine::Verdict::Kind::kLeftOut);
  CHECK(forecast->verdicts[1].kind == engine::Verdict::Kind::kWillRun);
  CHECK(forecast->verdicts[2].kind == engine::Verdict::Kind::kLeftOut);
  const RunResult first = run(*pipeline, directory, {}, part);
  CHECK(first.exit_code == 0);
  CHECK(first.ran == std::vector<std::string>{"make[n=2]"});
  const RunResult rest = run(*pipeline, directory);
  CHECK(rest.ran == std::vector<std::string>{"make[n=1]", "sum"});
}

TEST_CASE("scheduler rank: a forced instance runs again, what reads it only if its bytes differ") {
  test::SpecFolder folder;
  const auto pipeline = folder.read(kSpec);
  REQUIRE(pipeline);
  const RunDirectory directory = RunDirectory::for_spec(folder.path() / "p.yaml", "");
  CHECK(run(*pipeline, directory).exit_code == 0);
  engine::RunRules again;
  again.selection = *engine::select(*pipeline, {{}, {}, {"make[n=2]"}});
  const RunResult forced = run(*pipeline, directory, {}, again);
  CHECK(forced.exit_code == 0);
  CHECK(forced.ran == std::vector<std::string>{"make[n=2]"});
}

TEST_CASE("scheduler rank: a fresh run reuses nothing, and is what an interrupted one continues") {
  test::SpecFolder folder;
  const auto pipeline = folder.read(kSpec);
  REQUIRE(pipeline);
  const RunDirectory directory = RunDirectory::for_spec(folder.path() / "p.yaml", "");
  CHECK(run(*pipeline, directory).exit_code == 0);
  engine::RunRules fresh;
  fresh.fresh = true;
  const auto second_fails = [](const std::string& label) { return label == "make[n=2]"; };
  const RunResult cut_short = run(*pipeline, directory, second_fails, fresh);
  CHECK(cut_short.exit_code == 1);
  CHECK(cut_short.restored == 0);
  CHECK(cut_short.ran == std::vector<std::string>{"make[n=1]", "make[n=2]"});
  CHECK(std::filesystem::exists(directory.results() / "sum" / "sum.txt"));  // the old one stays
  const RunResult rest = run(*pipeline, directory);
  CHECK(rest.exit_code == 0);
  CHECK(rest.ran == std::vector<std::string>{"make[n=2]", "sum"});
}
