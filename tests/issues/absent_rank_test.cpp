// A rank that did not run for a while (SIGSTOP, a laptop that slept, a cable that was out) and
// comes back: rank 0 itself, and a worker that was given up meanwhile.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/run_start.h"
#include "engine/scheduler_rank.h"
#include "tests/support/spec_folder.h"

using namespace sluice;
using engine::RunDirectory;
using scheduler::Instant;
using scheduler::seconds;
using scheduler::WorkerId;
namespace event = scheduler::event;
namespace message = io::message;

namespace {

constexpr const char* kSpec = R"(sluice: 1
name: one
tasks:
  make:
    run: /bin/echo 1
    outputs: {x: {file: x.txt}}
)";
constexpr WorkerId kWorker{1};

// Writes down what is sent to worker 1, and that it was forgotten.
class WrittenDown final : public io::Transport {
 public:
  [[nodiscard]] WorkerId self() const override { return WorkerId(0); }
  [[nodiscard]] size_t size() const override { return 2; }
  void send(WorkerId to, io::Channel /*channel*/, io::Bytes message) override {
    const auto decoded = io::decode(message);
    REQUIRE(decoded.ok());
    if (to == kWorker && std::holds_alternative<message::Leave>(*decoded)) text += "leave ";
  }
  size_t poll(const Handler& /*handler*/, size_t /*max*/) override { return 0; }
  [[nodiscard]] bool ready() const override { return false; }
  [[nodiscard]] size_t pending() const override { return 0; }
  [[nodiscard]] size_t pending_bytes(WorkerId /*to*/) const override { return 0; }
  void forget(WorkerId peer) override {
    if (peer == kWorker) text += "forget ";
  }
  std::string text;
};

// Rank 0 with one worker, which says hello at second 1; time is the test's.
class Bench {
 public:
  Bench() {
    pipeline_ = folder_.read(kSpec);
    REQUIRE_MESSAGE(pipeline_, folder_.printed);
    const RunDirectory directory = RunDirectory::for_spec(folder_.path() / "p.yaml", "");
    auto start = engine::start_run(*pipeline_, directory, "n0", {});
    REQUIRE(start.ok());
    start_ = std::move(*start);
    report_ = std::make_unique<engine::Report>(
        engine::Report::Options{false, false, "sluice run p.yaml", directory},
        [this](std::string_view text) { printed += text; });
    engine::SchedulerOptions options{start_.run_uuid, directory, start_.core, 1};
    rank = std::make_unique<engine::SchedulerRank>(options, *pipeline_, transport, *start_.keeper,
                                                   *report_);
    rank->begin(at(0), {}, {});
    rank->tick(at(1));
    rank->on_message(at(1), kWorker, message::Hello{"n1", "node", "/nowhere", {1, 1 << 20}, 0});
  }
  static Instant at(int64_t second) { return Instant{} + seconds(second); }
  void hear(int64_t second) {
    rank->on_message(at(second), kWorker, message::Report{event::Heartbeat{kWorker}});
  }
  [[nodiscard]] bool is_lost() const { return printed.find("is lost") != std::string::npos; }

  WrittenDown transport;
  std::string printed;
  std::unique_ptr<engine::SchedulerRank> rank;

 private:
  test::SpecFolder folder_;
  decltype(std::declval<test::SpecFolder>().read("")) pipeline_;
  engine::RunStart start_;
  std::unique_ptr<engine::Report> report_;
};

}  // namespace

TEST_CASE("issue: rank 0, stopped for long, hears its workers before any of them counts as lost") {
  Bench bench;
  bench.rank->tick(Bench::at(2));
  bench.rank->tick(Bench::at(102));  // here it goes on; what the worker said is not read yet
  CHECK_FALSE(bench.is_lost());
  bench.hear(103);
  bench.rank->tick(Bench::at(103));
  bench.rank->tick(Bench::at(104));
  CHECK_FALSE(bench.is_lost());
  CHECK(bench.printed.find("silent") == std::string::npos);
  for (int second = 105; second < 133; ++second) bench.rank->tick(Bench::at(second));
  CHECK_FALSE(bench.is_lost());
  bench.rank->tick(Bench::at(133));  // 30 s since it was heard
  CHECK(bench.is_lost());
}

TEST_CASE("issue: a worker given up for its silence finds the order to leave when it comes back") {
  Bench bench;
  for (int second = 2; second < 32; ++second) bench.rank->tick(Bench::at(second));
  REQUIRE(bench.is_lost());
  CHECK(bench.transport.text == "leave forget ");
}

TEST_CASE("issue: to a worker whose guard reports its death nothing more is sent") {
  Bench bench;
  bench.rank->on_mail(Bench::at(2), engine::Mail{false, {kWorker.value}});
  REQUIRE(bench.is_lost());
  CHECK(bench.transport.text == "forget ");
}
