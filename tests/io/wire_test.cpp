#include "io/wire.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "io/codec.h"

namespace sluice::io {
namespace {

namespace s = scheduler;
namespace e = scheduler::event;
namespace m = message;

uint64_t seed() {
  const char* text = std::getenv("SLUICE_SEED");
  return text == nullptr ? 20240611 : std::strtoull(text, nullptr, 10);
}

std::string hex(const Bytes& bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const std::byte b : bytes) {
    out += kDigits[static_cast<unsigned>(b) >> 4U];
    out += kDigits[static_cast<unsigned>(b) & 15U];
  }
  return out;
}

const s::Usage kUsage{s::seconds(3), s::milliseconds(2500), 1LL << 33U};
const std::vector<s::OutputReport> kReports{{{0x0123456789abcdefULL, 42}, 1LL << 40U, ""},
                                            {{7, 8}, 3, "1.5"}};

std::vector<s::Event> all_events() {
  const s::WorkerId w(3);
  const auto attempt = s::AttemptId::make(2, 77);
  return {
      e::WorkerJoined{w, s::NodeId(1), {64, 1LL << 38U}},
      e::WorkerLost{w},
      e::Restored{s::InstanceId(5), {1, 2}, kReports, {true, false}},
      e::Begin{},
      e::Tick{},
      e::StopRequested{},
      e::ObjectCommitted{s::ObjectId(9)},
      e::ObjectCommitFailed{s::ObjectId(9), "no space"},
      e::RecordsSynced{1ULL << 40U},
      e::Heartbeat{w},
      e::AttemptStarted{w, attempt},
      e::AttemptFinished{w, attempt, kReports, kUsage},
      e::AttemptFailed{w, attempt, s::Cause::kDisk, -1, 9, "a line", "two\nlines", kUsage},
      e::AttemptReturned{w, attempt, s::ObjectId{}, w},
      e::AttemptStopped{w, attempt, kUsage},
      e::ReplicaAdded{w, s::ObjectId(4)},
      e::ReplicaLost{w, s::ObjectId(4)},
      e::ObjectSaved{w, s::ObjectId(4), attempt},
      e::ObjectSaveFailed{w, s::ObjectId(4), attempt, "quota"},
      e::Selected{{true, false, true}},
  };
}

AttemptSpec attempt_spec() {
  AttemptSpec spec;
  spec.label = "simulate[grid=64,alpha=0.1]";
  spec.words = {{{Piece::Kind::kText, 0, "solve"}},
                {{Piece::Kind::kText, 0, "--out="}, {Piece::Kind::kOutput, 1, ""}},
                {{Piece::Kind::kInputPaths, 2, ""}}};
  spec.script = std::string("echo \0 hidden", 13);
  spec.environment = {{"PARAM_tol", "1e-4"}, {"ITEM_grid", "64"}};
  spec.inputs = {{"mesh",
                  s::OutputKind::kH5,
                  true,
                  ValueType::kList,
                  {{s::ObjectId(6), "", "mesh.h5", "grid=64", ""},
                   {s::ObjectId{}, "/data/obs.h5", "obs.h5", "", "2.5"}},
                  "mesh.h5",
                  {"grid"},
                  {"/u", 10, 20, 3, 16, H5View::Gather::kStack}}};
  spec.outputs = {
      {"score", s::OutputKind::kValue, ValueType::kFloat, "score", s::ObjectId(8), true}};
  spec.pipeline_folder = "/home/user/plate";
  spec.cpus = 4;
  spec.stdin_input = 0;
  spec.stdout_output = 300;
  spec.setup = "module load gcc";
  spec.in_pipeline_folder = true;
  spec.keep_environment = {"SLURM_*"};
  return spec;
}

std::vector<Message> all_messages() {
  const auto attempt = s::AttemptId::make(1, 5);
  std::vector<Message> all{
      m::Hello{"node17", "boot:1a", "/dev/shm/x", {16, 1 << 30}, -1},
      m::Welcome{"uuid", "/scratch/run", 4, {{s::WorkerId(1), "key", "/dev/shm/y"}}},
      m::Peer{s::WorkerId(2), "key", "/dev/shm/z"},
      m::Start{{s::WorkerId(2),
                attempt,
                s::InstanceId(1),
                s::RequestId(0),
                {{2, 5}, s::seconds(60)},
                {{s::ObjectId(3), s::WorkerId(1)}, {s::ObjectId(4), s::WorkerId{}}},
                true,
                -3},
               s::seconds(10),
               attempt_spec(),
               {"", "results/a/b.h5"}},
      m::TakeBack{attempt},
      m::Stop{attempt},
      m::Save{s::ObjectId(3), attempt, "results/.tmp/1"},
      m::Drop{s::ObjectId(3)},
      m::Leave{},
      m::PeerLost{s::WorkerId(9)},
      m::PartRequest{7, s::ObjectId(3), {"/u", 0, H5View::kAllRows, 1, 4, {}}},
      m::PartReady{7, s::ObjectId(1U << 31U), "no such dataset"},
      m::PartDone{s::ObjectId(1U << 31U)},
      m::Left{},
      m::Ping{},
      m::Log{2, "the disk is full"},
      m::FetchRequest{s::ObjectId(3), 1LL << 35U, 4096},
      m::FetchChunk{s::ObjectId(3), 0, -1, 77, 0755, Bytes(300, std::byte{0xab})},
  };
  for (const s::Event& event : all_events()) all.emplace_back(m::Report{event});
  return all;
}

}  // namespace

TEST_CASE("wire: every message comes back as it was sent") {
  std::vector<bool> seen(std::variant_size_v<Message>);
  for (const Message& message : all_messages()) {
    CAPTURE(message.index());
    seen[message.index()] = true;
    const Bytes bytes = encode(message);
    const auto back = decode(bytes);
    REQUIRE(back.ok());
    CHECK(back->index() == message.index());
    CHECK(encode(*back) == bytes);
  }
  for (size_t kind = 0; kind < seen.size(); ++kind) {
    CAPTURE(kind);
    CHECK(seen[kind]);
  }
}

TEST_CASE("wire: every event comes back as it was made") {
  std::vector<bool> seen(std::variant_size_v<s::Event>);
  for (const s::Event& event : all_events()) {
    CAPTURE(event.index());
    seen[event.index()] = true;
    const Bytes bytes = encode_event(event);
    const auto back = decode_event(bytes);
    REQUIRE(back.ok());
    CHECK(back->index() == event.index());
    CHECK(encode_event(*back) == bytes);
  }
  for (size_t kind = 0; kind < seen.size(); ++kind) {
    CAPTURE(kind);
    CHECK(seen[kind]);
  }
}

TEST_CASE("wire: the members of a failed attempt keep their places and their signs") {
  const auto back = decode_event(encode_event(all_events()[12]));
  REQUIRE(back.ok());
  const auto& failed = std::get<e::AttemptFailed>(*back);
  CHECK(failed.worker == s::WorkerId(3));
  CHECK(failed.attempt == s::AttemptId::make(2, 77));
  CHECK(failed.cause == s::Cause::kDisk);
  CHECK(failed.exit_code == -1);
  CHECK(failed.signal == 9);
  CHECK(failed.detail == "a line");
  CHECK(failed.stderr_tail == "two\nlines");
  CHECK(failed.usage.wall == s::seconds(3));
  CHECK(failed.usage.cpu == s::milliseconds(2500));
  CHECK(failed.usage.memory_peak_bytes == 8589934592);
}

TEST_CASE("wire: an attempt's command, script and inputs keep their text") {
  const auto back = decode(encode(all_messages()[3]));
  REQUIRE(back.ok());
  const auto& start = std::get<m::Start>(*back);
  CHECK(start.decision.ahead);
  CHECK(start.decision.priority == -3);
  CHECK(start.decision.grant == s::Grant{{2, 5}, s::seconds(60)});
  REQUIRE(start.decision.inputs.size() == 2);
  CHECK(start.decision.inputs[0].source == s::WorkerId(1));
  CHECK_FALSE(start.decision.inputs[1].source.valid());
  REQUIRE(start.spec.words.size() == 3);
  CHECK(start.spec.words[1][1].kind == Piece::Kind::kOutput);
  CHECK(start.spec.script.size() == 13);
  CHECK(start.spec.environment[1] == std::pair<std::string, std::string>{"ITEM_grid", "64"});
  CHECK(start.spec.inputs[0].files[1].source_path == "/data/obs.h5");
  CHECK(start.spec.outputs[0].value_type == ValueType::kFloat);
  CHECK(start.durable_paths[1] == "results/a/b.h5");
}

// Golden bytes: a change here is a change of the format (of the trace, too).
TEST_CASE("wire: the bytes of a save request are fixed") {
  const Message message = m::Save{s::ObjectId(300), s::AttemptId::make(1, 5), "ab"};
  //     kind  object 300  save 2^32 + 5  length, text
  CHECK(hex(encode(message)) ==
        "06"
        "ac02"
        "8580808010"
        "026162");
}

TEST_CASE("wire: the bytes of a reported success are fixed") {
  const Message message = m::Report{e::AttemptFinished{
      s::WorkerId(1), s::AttemptId{9}, {{{1, 0x0a00}, -2, "x"}}, {s::nanoseconds(64), {}, 1}}};
  CHECK(hex(encode(message)) ==
        "09"
        "0a"
        "01"
        "09"  // report, finished, worker, attempt
        "01"
        "0100000000000000"
        "000a000000000000"  // one output: content, high then low
        "03"
        "0178"  // bytes -2, value "x"
        "8001"
        "00"
        "02");  // wall 64 ns, cpu 0, peak 1
}

TEST_CASE("wire: integers at their bounds come back") {
  for (const int64_t v : {INT64_MIN, INT64_MIN + 1, int64_t{-1}, int64_t{0}, INT64_MAX}) {
    Bytes bytes;
    Writer(bytes).signed_integer(v);
    Reader reader(bytes);
    CHECK(reader.signed_integer() == v);
    CHECK(reader.finish("a number").ok());
  }
  for (const uint64_t v : {uint64_t{0}, uint64_t{127}, uint64_t{128}, UINT64_MAX}) {
    Bytes bytes;
    Writer(bytes).unsigned_integer(v);
    Reader reader(bytes);
    CHECK(reader.unsigned_integer() == v);
    CHECK(reader.finish("a number").ok());
  }
}

TEST_CASE("wire: a message cut at any length is an error") {
  for (const Message& message : all_messages()) {
    const Bytes bytes = encode(message);
    for (size_t length = 0; length < bytes.size(); ++length) {
      CAPTURE(message.index());
      CAPTURE(length);
      CHECK_FALSE(decode(std::span(bytes).first(length)).ok());
    }
  }
}

TEST_CASE("wire: bytes behind a message, unknown kinds and impossible members are errors") {
  Bytes longer = encode(m::Ping{});
  longer.push_back(std::byte{0});
  const auto left_over = decode(longer);
  REQUIRE_FALSE(left_over.ok());
  CHECK(left_over.error().message.find("1 bytes are left over, at byte 1 of 2") !=
        std::string::npos);

  constexpr auto kUnknownKind = static_cast<std::byte>(std::variant_size_v<Message>);
  const auto unknown = decode(Bytes{kUnknownKind});
  REQUIRE_FALSE(unknown.ok());
  CHECK(unknown.error().message.find("is not known") != std::string::npos);
  CHECK_FALSE(decode(Bytes(11, std::byte{0xff})).ok());  // a number of 70 bits
  CHECK_FALSE(decode(Bytes{std::byte{7}, std::byte{0xff}, std::byte{0xff}, std::byte{0xff},
                           std::byte{0xff}, std::byte{0x1f}})
                  .ok());                   // an id of 33 bits
  Bytes huge{std::byte{12}, std::byte{1}};  // a log line that claims 2^62 bytes
  Writer(huge).unsigned_integer(uint64_t{1} << 62U);
  const auto bounded = decode(huge);
  REQUIRE_FALSE(bounded.ok());
  CHECK(bounded.error().message.find("0 bytes found") != std::string::npos);
}

TEST_CASE("wire: 20 000 random damages never crash the reader") {
  MESSAGE("SLUICE_SEED=" << seed());
  std::mt19937_64 random(seed());
  std::vector<Bytes> originals;
  for (const Message& message : all_messages()) originals.push_back(encode(message));
  size_t readable = 0;
  for (int round = 0; round < 20'000; ++round) {
    Bytes bytes = originals[random() % originals.size()];
    for (uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
      const size_t place = random() % bytes.size();
      switch (random() % 3) {
        case 0:
          bytes[place] = static_cast<std::byte>(random());
          break;
        case 1:
          bytes.insert(bytes.begin() + static_cast<ptrdiff_t>(place),
                       static_cast<std::byte>(random()));
          break;
        default:
          if (bytes.size() > 1) bytes.erase(bytes.begin() + static_cast<ptrdiff_t>(place));
      }
    }
    const auto message = decode(bytes);
    // What is readable is a message: it can be written and read again.
    if (message.ok()) {
      ++readable;
      REQUIRE(decode(encode(*message)).ok());
    } else {
      REQUIRE_FALSE(message.error().message.empty());
    }
  }
  CHECK(readable > 100);
  CHECK(readable < 19'900);
}

}  // namespace sluice::io
