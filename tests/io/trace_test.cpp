#include "io/trace.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <string>

#include "tests/support/graph_dsl.h"

namespace sluice::io {
namespace {

using scheduler::Instant;
namespace event = scheduler::event;

const std::filesystem::path kFile = "/run/trace.bin";
constexpr uint64_t kNoBound = 1 << 20;

scheduler::Graph sample() {
  tests::GraphDsl dsl;
  const auto a = dsl.task("a", {.count = 2});
  const auto b = dsl.task("b", {.result = true});
  dsl.gather(a, b);
  return dsl.build();
}

TraceWriter writer(FakeFiles& files, uint64_t bytes_max = kNoBound) {
  scheduler::CoreOptions options;
  options.epoch = 7;
  options.dispatch_ahead = false;
  options.ahead_per_slot_max = 3;
  auto created = TraceWriter::create(files, kFile, sample(), options, bytes_max);
  REQUIRE(created.ok());
  return std::move(*created);
}

Bytes lost(uint32_t worker, int64_t now) {
  return TraceWriter::event_block(Instant{now}, event::WorkerLost{scheduler::WorkerId(worker)});
}

}  // namespace

TEST_CASE("trace: what was written comes back in order") {
  FakeFiles files;
  TraceWriter trace = writer(files);
  REQUIRE(trace.append(lost(3, 50)).ok());
  REQUIRE(trace.append(TraceWriter::schedule_block(Instant{-60}, 0xfedc)).ok());
  REQUIRE(trace.append(lost(4, 70)).ok());
  const auto read = read_trace(files, kFile);
  REQUIRE(read.ok());
  CHECK_FALSE(read->torn);
  CHECK(read->options.epoch == 7);
  CHECK_FALSE(read->options.dispatch_ahead);
  CHECK(read->options.ahead_per_slot_max == 3);
  CHECK(read->graph.instance_count() == 3);
  REQUIRE(read->blocks.size() == 4);
  CHECK(read->blocks[0].kind == TraceBlock::Kind::kEvent);
  CHECK(read->blocks[0].now == Instant{50});
  CHECK(std::get<event::WorkerLost>(read->blocks[0].event).worker == scheduler::WorkerId(3));
  CHECK(read->blocks[1].kind == TraceBlock::Kind::kSchedule);
  CHECK(read->blocks[1].now == Instant{-60});
  CHECK(read->blocks[2].kind == TraceBlock::Kind::kDigest);
  CHECK(read->blocks[2].digest == 0xfedc);
  CHECK(read->blocks[3].now == Instant{70});
}

TEST_CASE("trace: a torn end is left out and said") {
  FakeFiles files;
  TraceWriter trace = writer(files);
  const size_t head = files.read(kFile)->size();
  REQUIRE(trace.append(lost(3, 50)).ok());
  const std::string content = *files.read(kFile);
  for (size_t length = head; length < content.size(); ++length) {
    CAPTURE(length);
    REQUIRE(files.replace(kFile, content.substr(0, length)).ok());
    const auto read = read_trace(files, kFile);
    REQUIRE(read.ok());
    CHECK(read->blocks.empty());
    CHECK(read->torn == (length > head));
  }
  for (size_t length = 0; length < head; ++length) {
    CAPTURE(length);
    REQUIRE(files.replace(kFile, content.substr(0, length)).ok());
    CHECK_FALSE(read_trace(files, kFile).ok());
  }
}

TEST_CASE("trace: at its bound it ends with a mark and stays below it") {
  FakeFiles files;
  const uint64_t head = [&] {
    FakeFiles other;
    writer(other);
    return other.read(kFile)->size();
  }();
  const size_t block = lost(3, 50).size();
  TraceWriter trace = writer(files, head + 2 * block + 5);
  for (int i = 0; i < 5; ++i) REQUIRE(trace.append(lost(3, i)).ok());
  CHECK(files.read(kFile)->size() == head + 2 * block + 5);
  const auto read = read_trace(files, kFile);
  REQUIRE(read.ok());
  REQUIRE(read->blocks.size() == 3);
  CHECK(read->blocks[2].kind == TraceBlock::Kind::kCut);
}

TEST_CASE("trace: a failed append is told once, and what was whole stays readable") {
  FakeFiles files;
  TraceWriter trace = writer(files);
  REQUIRE(trace.append(lost(3, 50)).ok());
  files.fail_call(1);
  CHECK(trace.append(lost(4, 60)).error().code == EIO);
  CHECK(trace.append(lost(5, 70)).ok());
  const auto read = read_trace(files, kFile);
  REQUIRE(read.ok());
  REQUIRE(read->blocks.size() == 2);
  CHECK(read->blocks[0].now == Instant{50});
  CHECK(read->blocks[1].kind == TraceBlock::Kind::kCut);
}

TEST_CASE("trace: a new submission replaces the trace of the one before") {
  FakeFiles files;
  REQUIRE(writer(files).append(lost(3, 50)).ok());
  writer(files);
  CHECK(read_trace(files, kFile)->blocks.empty());
}

TEST_CASE("trace: other files and damaged blocks are told with their place") {
  FakeFiles files;
  REQUIRE(files.replace(kFile, "GIF89a..").ok());
  CHECK(read_trace(files, kFile).error().message.find("is not a trace") != std::string::npos);
  REQUIRE(files.remove(kFile).ok());
  TraceWriter trace = writer(files);
  const size_t head = files.read(kFile)->size();
  REQUIRE(trace.append(lost(3, 50)).ok());
  std::string content = *files.read(kFile);
  content[head + 4] = 'X';
  REQUIRE(files.replace(kFile, content).ok());
  const auto damaged = read_trace(files, kFile);
  REQUIRE_FALSE(damaged.ok());
  CHECK(damaged.error().message.find("the block at byte " + std::to_string(head)) !=
        std::string::npos);
  CHECK(damaged.error().message.find("expected one of G O E S D Z") != std::string::npos);
}

}  // namespace sluice::io
