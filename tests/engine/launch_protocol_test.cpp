#include "engine/launch_protocol.h"

#include <doctest/doctest.h>
#include <sys/socket.h>

#include <array>
#include <random>

#include "engine/launcher_client.h"

namespace sluice::engine {
namespace {

launch::Start some_start() {
  launch::Start start;
  start.attempt = scheduler::AttemptId::make(3, 17);
  start.argv = {"/bin/echo", "", "two words", std::string("nul\0inside", 10)};
  start.environment = {{"A", "1"}, {"EMPTY", ""}};
  start.working_directory = "/tmp/somewhere";
  start.stdin_path = "in put";
  start.cpus = {0, 5, 4095};
  start.stream_directory = "/tmp/streams";
  return start;
}

launch::Exited some_exited() {
  launch::Exited exited;
  exited.attempt = scheduler::AttemptId::make(3, 18);
  exited.start_error = "no program";
  exited.exit_code = -1;
  exited.signal = 11;
  exited.usage = {scheduler::seconds(3), scheduler::milliseconds(5), 1LL << 40U};
  exited.out = {"head", "/path", 1LL << 35U, 12, "tail"};
  exited.err = {"", "", 0, 0, ""};
  exited.leftover_killed = 2;
  return exited;
}

}  // namespace

TEST_CASE("launch protocol: every member of every message survives the way") {
  FrameReader reader;
  for (const LaunchMessage& message :
       {LaunchMessage{some_start()}, LaunchMessage{launch::Signal{{9}, true}},
        LaunchMessage{launch::KillChecker{}}, LaunchMessage{launch::Quit{}},
        LaunchMessage{launch::Started{{5}, 4194304}}, LaunchMessage{some_exited()}}) {
    reader.push(encode_frame(message));
  }
  LaunchMessage message;
  REQUIRE(reader.next(message).value());
  const auto start = std::get<launch::Start>(message);
  CHECK(start.attempt == some_start().attempt);
  CHECK(start.argv == some_start().argv);
  CHECK(start.environment == some_start().environment);
  CHECK(start.working_directory == some_start().working_directory);
  CHECK(start.stdin_path == some_start().stdin_path);
  CHECK(start.cpus == some_start().cpus);
  CHECK(start.stream_directory == some_start().stream_directory);
  REQUIRE(reader.next(message).value());
  CHECK(std::get<launch::Signal>(message).attempt.value == 9);
  CHECK(std::get<launch::Signal>(message).kill);
  REQUIRE(reader.next(message).value());
  CHECK(std::holds_alternative<launch::KillChecker>(message));
  REQUIRE(reader.next(message).value());
  CHECK(std::holds_alternative<launch::Quit>(message));
  REQUIRE(reader.next(message).value());
  CHECK(std::get<launch::Started>(message).pid == 4194304);
  REQUIRE(reader.next(message).value());
  const auto exited = std::get<launch::Exited>(message);
  CHECK(exited.start_error == "no program");
  CHECK(exited.exit_code == -1);
  CHECK(exited.signal == 11);
  CHECK(exited.usage.wall == scheduler::seconds(3));
  CHECK(exited.usage.cpu == scheduler::milliseconds(5));
  CHECK(exited.usage.memory_peak_bytes == 1LL << 40U);
  CHECK(exited.out.head == "head");
  CHECK(exited.out.path == "/path");
  CHECK(exited.out.bytes == 1LL << 35U);
  CHECK(exited.out.dropped_bytes == 12);
  CHECK(exited.out.tail == "tail");
  CHECK(exited.leftover_killed == 2);
  CHECK_FALSE(reader.next(message).value());
}

TEST_CASE("launch protocol: frames arrive in pieces of any size") {
  const std::vector<std::byte> frame = encode_frame(some_start());
  FrameReader reader;
  LaunchMessage message;
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < frame.size(); ++i) {
      CHECK_FALSE(reader.next(message).value());
      reader.push(std::span(frame).subspan(i, 1));
    }
    REQUIRE(reader.next(message).value());
    CHECK(std::get<launch::Start>(message).argv == some_start().argv);
  }
}

TEST_CASE("launch protocol: a command of megabytes passes") {
  launch::Start start;
  start.argv = {std::string(5U << 20U, 'x')};
  FrameReader reader;
  reader.push(encode_frame(start));
  LaunchMessage message;
  REQUIRE(reader.next(message).value());
  CHECK(std::get<launch::Start>(message).argv.at(0).size() == 5U << 20U);
}

TEST_CASE("launch protocol: damaged bytes are an error or another message, never a crash") {
  const unsigned seed = 7;
  MESSAGE("seed ", seed);
  std::mt19937 random(seed);
  const std::vector<std::byte> good = encode_frame(some_exited());
  int errors = 0;
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::byte> bad = good;
    const size_t place = 4 + random() % (bad.size() - 4);  // the length stays
    bad[place] = static_cast<std::byte>(random());
    FrameReader reader;
    reader.push(bad);
    LaunchMessage message;
    if (!reader.next(message)) ++errors;
  }
  CHECK(errors > 100);
}

TEST_CASE("launch protocol: an impossible length is an error, not a wait for ever") {
  const std::vector<std::byte> bytes(8, std::byte{0xFF});
  FrameReader reader;
  reader.push(bytes);
  LaunchMessage message;
  const Expected<bool> result = reader.next(message);
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().message.find("4294967295") != std::string::npos);
}

TEST_CASE("launcher client: what the socket does not take is kept, and the end is noticed") {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  LaunchChannel left(ends[0]);
  std::vector<LaunchMessage> messages;
  {
    LaunchChannel right(ends[1]);
    launch::Start big;
    big.argv = {std::string(4U << 20U, 'x')};
    left.send(big);
    left.send(launch::Signal{{1}, false});
    CHECK(left.wants_write());  // a socket holds some hundred KB
    for (int i = 0; i < 1000 && messages.size() < 2; ++i) {
      left.flush();
      REQUIRE(right.read(messages));
    }
    REQUIRE(messages.size() == 2);
    CHECK(std::get<launch::Start>(messages[0]).argv == big.argv);
    CHECK_FALSE(left.wants_write());
    right.send(launch::Started{{1}, 2});
  }
  messages.clear();
  CHECK(left.read(messages));
  REQUIRE(messages.size() == 1);  // sent before the end
  CHECK_FALSE(left.read(messages));
  CHECK(std::get<launch::Started>(messages[0]).pid == 2);
  left.send(launch::Quit{});  // to nobody: harmless
  CHECK_FALSE(left.wants_write());
}

}  // namespace sluice::engine
