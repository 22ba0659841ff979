#include "engine/replay.h"

#include <doctest/doctest.h>

#include <deque>
#include <string>
#include <variant>
#include <vector>

#include "io/trace.h"
#include "scheduler/core.h"
#include "tests/support/graph_dsl.h"
#include "tests/support/temporary_folder.h"

namespace sluice::engine {
namespace {

using scheduler::Core;
using scheduler::Decision;
using scheduler::Event;
using scheduler::Instant;
using scheduler::WorkerId;
namespace event = scheduler::event;
namespace decision = scheduler::decision;

const std::filesystem::path kFile = "/run/trace.bin";

// a x6 --gather--> b
scheduler::Graph sample() {
  tests::GraphDsl dsl;
  const auto a = dsl.task("a", {.count = 6});
  const auto b = dsl.task("b", {.result = true});
  dsl.gather(a, b);
  return dsl.build();
}

// A driver with two workers that answer each start with a success, writing a trace as it goes.
struct Recorder {
  explicit Recorder(io::Files& files, const std::filesystem::path& file)
      : trace(io::TraceWriter::create(files, file, graph, options, uint64_t{1} << 20U).value()) {}

  void feed(const Event& input) {
    now = now + scheduler::milliseconds(1);
    REQUIRE(trace.append(io::TraceWriter::event_block(now, input)).ok());
    std::vector<Decision> out;
    core.apply(now, input, out);
    for (const Decision& d : out) answer(d);
    ++events;
  }
  void schedule() {
    std::vector<Decision> out;
    core.schedule(now, out);
    REQUIRE(trace.append(io::TraceWriter::schedule_block(now, core.digest())).ok());
    for (const Decision& d : out) answer(d);
    ++schedules;
  }
  void answer(const Decision& d) {
    if (const auto* start = std::get_if<decision::StartAttempt>(&d)) {
      inputs.push_back(event::AttemptStarted{start->worker, start->attempt});
      inputs.push_back(event::AttemptFinished{
          start->worker, start->attempt, {{{start->instance.value + 1ULL, 5}, 100, ""}}, {}});
    } else if (const auto* save = std::get_if<decision::SaveObject>(&d)) {
      inputs.push_back(event::ObjectSaved{save->worker, save->object, save->save});
    } else if (const auto* commit = std::get_if<decision::CommitObject>(&d)) {
      inputs.push_back(event::ObjectCommitted{commit->object});
    }
  }
  void run() {
    feed(event::WorkerJoined{WorkerId(0), scheduler::NodeId(0), {2, 1000}});
    feed(event::WorkerJoined{WorkerId(1), scheduler::NodeId(1), {1, 1000}});
    feed(event::Begin{});
    schedule();
    while (!inputs.empty()) {
      const Event input = inputs.front();
      inputs.pop_front();
      feed(input);
      schedule();
    }
    REQUIRE(core.ended());
  }

  scheduler::Graph graph = sample();
  scheduler::CoreOptions options;
  Core core{graph, options};
  io::TraceWriter trace;
  std::deque<Event> inputs;
  Instant now;
  uint64_t events = 0;
  uint64_t schedules = 0;
};

}  // namespace

TEST_CASE("replay: a recorded run gives the same decisions again") {
  io::FakeFiles files;
  Recorder recorder(files, kFile);
  recorder.run();
  const auto trace = io::read_trace(files, kFile);
  REQUIRE(trace.ok());
  const ReplayResult result = replay(*trace, true);
  CHECK(result.digest == recorder.core.digest());
  CHECK(result.recorded_digest == recorder.core.digest());
  CHECK(result.events == recorder.events);
  CHECK(result.schedules == recorder.schedules);
  CHECK(result.schedules > 10);
  CHECK(result.first_difference == 0);
  CHECK(result.complete);
}

TEST_CASE("replay: the first schedule call that decides otherwise is named") {
  io::FakeFiles files;
  Recorder recorder(files, kFile);
  recorder.run();
  auto trace = io::read_trace(files, kFile);
  REQUIRE(trace.ok());
  // Worker 1 had one core; with two, the first schedule call starts more.
  auto& joined = std::get<event::WorkerJoined>(trace->blocks[1].event);
  REQUIRE(joined.worker == WorkerId(1));
  joined.resources.cpus = 2;
  const ReplayResult result = replay(*trace, false);
  CHECK(result.first_difference == 1);
  CHECK(result.recorded_digest == recorder.core.digest());
  CHECK(result.digest != result.recorded_digest);
}

TEST_CASE("replay: a torn or cut trace replays as far as it goes, and says so") {
  io::FakeFiles files;
  Recorder recorder(files, kFile);
  recorder.run();
  const std::string content = *files.read(kFile);
  REQUIRE(files.replace(kFile, content.substr(0, content.size() - 3)).ok());
  const auto trace = io::read_trace(files, kFile);
  REQUIRE(trace.ok());
  const ReplayResult result = replay(*trace, true);
  CHECK_FALSE(result.complete);
  CHECK(result.events == recorder.events);
  CHECK(result.schedules == recorder.schedules);
  CHECK(result.first_difference == 0);
  CHECK(result.digest == recorder.core.digest());
}

TEST_CASE("replay: a file is read, a missing one is told") {
  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "trace.bin";
  CHECK(replay_trace(file, true).error().message.find("trace.bin") != std::string::npos);
  Recorder recorder(io::real_files(), file);
  recorder.run();
  const auto result = replay_trace(file, true);
  REQUIRE(result.ok());
  CHECK(result->digest == recorder.core.digest());
}

}  // namespace sluice::engine
