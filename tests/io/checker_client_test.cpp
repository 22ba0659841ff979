#include "io/checker_client.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <optional>

using namespace sluice;
using scheduler::Instant;
using scheduler::OutputKind;
using scheduler::seconds;

namespace {

// The client, and the helper's end of its socket in the test's hand.
struct Fixture {
  std::array<int, 2> ends{};
  io::CheckerClient client;
  std::vector<io::CheckReply> replies;
  Instant now;

  Fixture() : client(make_pair(ends), seconds(60)) {}
  ~Fixture() {
    for (const int fd : ends) {
      if (fd >= 0) ::close(fd);
    }
  }
  static int make_pair(std::array<int, 2>& ends) {
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
    return ends[0];
  }
  uint64_t request(const std::string& path) {
    return client.request(now, {0, path, OutputKind::kH5, io::ValueType::kString});
  }
  // What the helper was asked, if anything.
  std::optional<io::CheckRequest> asked() const {
    std::array<char, 4096> buffer{};
    const ssize_t count = ::recv(ends[1], buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count <= 0) return {};
    return *io::decode_check_request({buffer.data(), static_cast<size_t>(count)});
  }
  void say(const std::string& text) const {
    REQUIRE(::send(ends[1], text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  }
  void answer(uint64_t id) const {
    io::CheckReply reply;
    reply.id = id;
    reply.ok = true;
    say(io::encode(reply));
  }
  void read() { REQUIRE(client.read(now, replies)); }
};

}  // namespace

TEST_CASE("checker client: one request is in flight, the others wait their turn") {
  Fixture f;
  const uint64_t first = f.request("/a");
  const uint64_t second = f.request("/b");
  CHECK(first != second);
  CHECK(f.asked()->path == "/a");
  CHECK_FALSE(f.asked());
  f.answer(first);
  f.read();
  REQUIRE(f.replies.size() == 1);
  CHECK(f.replies[0].id == first);
  CHECK(f.replies[0].ok);
  CHECK(f.asked()->path == "/b");
  CHECK(f.client.pending() == 1);
}

TEST_CASE("checker client: a crash fails the request in flight and the next one goes on") {
  Fixture f;
  const uint64_t first = f.request("/dir/a.h5");
  const uint64_t second = f.request("/b");
  f.asked();
  f.say(R"({"id":0,"crashed":11})");
  f.read();
  REQUIRE(f.replies.size() == 1);
  CHECK(f.replies[0].id == first);
  CHECK_FALSE(f.replies[0].ok);
  CHECK(f.replies[0].crashed_signal == 11);
  CHECK(f.replies[0].error.starts_with("the program that checks 'a.h5' crashed with signal 11"));
  CHECK(f.asked()->id == second);
}

TEST_CASE(
    "checker client: a helper that ends by itself or never starts is told apart from a crash") {
  Fixture f;
  f.request("/dir/a.h5");
  SUBCASE("ended") {
    f.say(R"({"id":0,"crashed":131})");
    f.read();
    CHECK(f.replies.at(0).error.starts_with(
        "the program that checks 'a.h5' ended with code 3 before it had answered"));
  }
  SUBCASE("not started") {
    f.say(R"({"id":0,"crashed":255})");
    f.read();
    CHECK(f.replies.at(0).error ==
          "'a.h5' cannot be checked: sluice-h5 does not start; install it beside sluice");
  }
}

TEST_CASE("checker client: a helper that others killed is asked once more") {
  Fixture f;
  const uint64_t first = f.request("/a");
  f.asked();
  f.say(R"({"id":0,"crashed":9})");
  f.read();
  CHECK(f.replies.empty());
  CHECK(f.asked()->id == first);
  SUBCASE("and answers") {
    f.answer(first);
    f.read();
    CHECK(f.replies.at(0).ok);
  }
  SUBCASE("and is killed again") {
    f.say(R"({"id":0,"crashed":9})");
    f.read();
    CHECK_FALSE(f.replies.at(0).ok);
  }
}

TEST_CASE("checker client: a helper that says that it is busy gets more time, but no overdue one") {
  Fixture f;
  const uint64_t first = f.request("/dir/tree");
  const auto busy = [&](Instant when) {
    f.now = when;
    f.say(R"({"id":)" + std::to_string(first) + R"(,"busy":true})");
    f.read();
  };
  busy(Instant{} + seconds(50));
  CHECK(f.replies.empty());
  CHECK(f.client.deadline() == Instant{} + seconds(110));
  CHECK_FALSE(f.client.expired(Instant{} + seconds(109)));
  CHECK(f.client.expired(Instant{} + seconds(110)));
  busy(Instant{} + seconds(111));
  CHECK(f.client.deadline() == Instant::never());
  f.answer(first);
  f.read();
  CHECK(f.replies.at(0).ok);
}

TEST_CASE("checker client: an overdue request is told once, then fails by the crash that follows") {
  Fixture f;
  f.now = Instant{} + seconds(5);
  const uint64_t first = f.request("/dir/a.h5");
  CHECK(f.client.deadline() == f.now + seconds(60));
  CHECK_FALSE(f.client.expired(f.now + seconds(59)));
  CHECK(f.client.expired(f.now + seconds(60)));
  CHECK_FALSE(f.client.expired(f.now + seconds(61)));
  CHECK(f.client.deadline() == Instant::never());
  f.say(R"({"id":0,"crashed":9})");
  f.read();
  REQUIRE(f.replies.size() == 1);
  CHECK(f.replies[0].id == first);
  CHECK(f.replies[0].error.starts_with("checking 'a.h5' took longer than 60 s"));
}

TEST_CASE(
    "checker client: the deadline counts from when a request is sent, not from its queueing") {
  Fixture f;
  const uint64_t first = f.request("/a");
  f.request("/b");
  f.now = f.now + seconds(50);
  f.answer(first);
  f.read();
  CHECK(f.client.deadline() == f.now + seconds(60));
}

TEST_CASE("checker client: stale replies and crashes of an idle helper are ignored") {
  Fixture f;
  f.answer(99);
  f.say(R"({"id":0,"crashed":11})");
  f.read();
  const uint64_t first = f.request("/a");
  f.answer(first + 1);
  f.read();
  CHECK(f.replies.empty());
  CHECK(f.client.pending() == 1);
}

TEST_CASE("checker client: a closed socket is an error") {
  Fixture f;
  f.request("/a");
  ::close(f.ends[1]);
  f.ends[1] = -1;
  CHECK_FALSE(f.client.read(f.now, f.replies));
}

TEST_CASE("checker client: an answer without sense fails its request at once, the next goes on") {
  Fixture f;
  f.say("nobody asked");
  f.read();
  CHECK(f.replies.empty());
  const uint64_t first = f.request("/dir/a.h5");
  const uint64_t second = f.request("/b");
  f.asked();
  SUBCASE("no JSON") { f.say("what?"); }
  SUBCASE("a number that is none of ours") {
    f.say(R"({"id":1,"ok":true,"bytes":-1,"content":"","value":"","mode":0,"description":""})");
  }
  SUBCASE("what a helper says that was asked nonsense") {
    f.say(R"({"id":0,"ok":false,"error":"the request of a check makes no sense"})");
  }
  f.read();
  REQUIRE(f.replies.size() == 1);
  CHECK(f.replies[0].id == first);
  CHECK_FALSE(f.replies[0].ok);
  CHECK(f.replies[0].error.starts_with(
      "the program that checks 'a.h5' does not answer as it should: "));
  CHECK(f.asked()->path == "/b");
  f.answer(second);
  f.read();
  REQUIRE(f.replies.size() == 2);
  CHECK(f.replies[1].ok);
}

TEST_CASE("checker client: nothing in flight has no deadline") {
  Fixture f;
  CHECK(f.client.deadline() == Instant::never());
  CHECK_FALSE(f.client.expired(Instant{} + seconds(1000)));
}
