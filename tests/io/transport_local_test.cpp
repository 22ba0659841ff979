#include "io/transport_local.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/io/transport_contract.h"

namespace sluice::io {
namespace {

using scheduler::Instant;
using scheduler::microseconds;
using scheduler::WorkerId;

Bytes bytes(const std::string& text) {
  Bytes result(text.size());
  std::transform(text.begin(), text.end(), result.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  return result;
}

std::vector<std::string> poll_all(Transport& transport, size_t max = 100) {
  std::vector<std::string> texts;
  const size_t count = transport.poll(
      [&](WorkerId from, Channel channel, std::span<const std::byte> message) {
        std::string text = std::to_string(from.value) + (channel == Channel::kBulk ? "b:" : "c:");
        for (const std::byte byte : message) text += static_cast<char>(byte);
        texts.push_back(text);
      },
      max);
  CHECK(count == texts.size());
  return texts;
}

using Texts = std::vector<std::string>;

contract::Problems run_contract(LocalNetwork& network, size_t ends,
                                const std::function<std::unique_ptr<contract::End>()>& make_end) {
  std::vector<Transport*> transports;
  for (size_t i = 0; i < ends; ++i) transports.push_back(&network.end(WorkerId(i)));
  Instant now;
  size_t rounds = 0;
  return contract::run(transports, make_end, [&] {
    now = now + microseconds(10);
    network.advance(now);
    return ++rounds > 100'000;
  });
}

TEST_CASE("local transport: the contract holds without and with latency") {
  const LocalNetworkOptions at_once;
  const LocalNetworkOptions slow{microseconds(5), microseconds(300), 7};
  for (const LocalNetworkOptions& options : {at_once, slow}) {
    for (const auto& make_end :
         {contract::make<contract::OrderedEnd>, contract::make<contract::ForgetEnd>}) {
      LocalNetwork network(3, options);
      CHECK(run_contract(network, 3, make_end) == contract::Problems{});
    }
  }
}

TEST_CASE("local transport: a control message does not wait for bulk data") {
  LocalNetwork network(2);
  CHECK(run_contract(network, 2, contract::make<contract::UrgentEnd>) == contract::Problems{});
}

TEST_CASE("local transport: control messages that have arrived come before bulk ones") {
  LocalNetwork network(2);
  network.end(WorkerId(0)).send(WorkerId(1), Channel::kBulk, bytes("data"));
  network.end(WorkerId(1)).send(WorkerId(1), Channel::kControl, bytes("to myself"));
  network.end(WorkerId(0)).send(WorkerId(1), Channel::kControl, bytes("urgent"));
  CHECK(network.end(WorkerId(1)).ready());
  CHECK(poll_all(network.end(WorkerId(1)), 2) == Texts{"1c:to myself", "0c:urgent"});
  CHECK(poll_all(network.end(WorkerId(1))) == Texts{"0b:data"});
}

TEST_CASE("local transport: a message arrives when its latency has passed, not before") {
  LocalNetwork network(2, {microseconds(10), microseconds(10), 1});
  std::vector<Instant> arrivals;
  network.arrivals = [&](WorkerId to, Instant at) {
    CHECK(to == WorkerId(1));
    arrivals.push_back(at);
  };
  network.advance({microseconds(5).ns});
  network.end(WorkerId(0)).send(WorkerId(1), Channel::kControl, bytes("a"));
  CHECK(arrivals == std::vector<Instant>{{microseconds(15).ns}});
  CHECK(network.end(WorkerId(0)).pending() == 1);
  CHECK(network.end(WorkerId(0)).pending_bytes(WorkerId(1)) == 1);
  network.advance({microseconds(15).ns - 1});
  CHECK(poll_all(network.end(WorkerId(1))) == Texts{});
  network.advance({microseconds(15).ns});
  CHECK(poll_all(network.end(WorkerId(1))) == Texts{"0c:a"});
  CHECK(network.end(WorkerId(0)).pending() == 0);
  CHECK(network.end(WorkerId(0)).pending_bytes(WorkerId(1)) == 0);
  CHECK(network.messages() == 1);
}

TEST_CASE("local transport: the same seed gives the same latencies, another seed others") {
  const auto arrivals_of = [](uint64_t seed) {
    LocalNetwork network(2, {microseconds(1), microseconds(1000), seed});
    std::vector<int64_t> arrivals;
    network.arrivals = [&](WorkerId, Instant at) { arrivals.push_back(at.ns); };
    for (int i = 0; i < 20; ++i) {
      network.end(WorkerId(0)).send(WorkerId(1), Channel::kControl, {});
    }
    CHECK(std::is_sorted(arrivals.begin(), arrivals.end()));
    CHECK(arrivals.back() <= microseconds(1000).ns);
    return arrivals;
  };
  CHECK(arrivals_of(1) == arrivals_of(1));
  CHECK(arrivals_of(1) != arrivals_of(2));
}

TEST_CASE("local transport: what a cut holds up arrives at its end, in order, either way") {
  LocalNetworkOptions options{microseconds(10), microseconds(10), 1};
  options.cuts = {{WorkerId(1), {microseconds(100).ns}, {microseconds(500).ns}},
                  {WorkerId(0), {microseconds(450).ns}, {microseconds(700).ns}}};
  LocalNetwork network(3, options);
  std::vector<int64_t> arrivals;
  network.arrivals = [&](WorkerId, Instant at) { arrivals.push_back(at.ns / 1000); };
  const auto send = [&](int64_t at, uint32_t from, uint32_t to, const char* text) {
    network.advance({microseconds(at).ns});
    network.end(WorkerId(from)).send(WorkerId(to), Channel::kControl, bytes(text));
  };
  send(80, 0, 1, "before");
  send(95, 0, 1, "on its way");  // the second cut begins before the first one ends
  send(200, 2, 1, "to it");
  send(200, 1, 2, "from it");
  send(200, 0, 2, "of others");
  send(480, 0, 1, "last");
  CHECK(arrivals == std::vector<int64_t>{90, 700, 500, 500, 210, 700});
  network.advance({microseconds(700).ns});
  CHECK(poll_all(network.end(WorkerId(1))) ==
        Texts{"0c:before", "2c:to it", "0c:on its way", "0c:last"});
}

TEST_CASE("local transport: slow messages are as many as asked for and overtake none of theirs") {
  LocalNetworkOptions options{microseconds(1), microseconds(1), 5};
  options.slow_permille = 200;
  options.slow_max = microseconds(1000);
  LocalNetwork network(3, options);
  std::vector<int64_t> arrivals;
  network.arrivals = [&](WorkerId, Instant at) { arrivals.push_back(at.ns); };
  const auto send_to = [&](uint32_t end) {
    network.end(WorkerId(0)).send(WorkerId(end), Channel::kControl, {});
  };
  // Sent much apart, so that none waits for one before it.
  size_t slow = 0;
  for (int i = 1; i <= 1000; ++i) {
    const Instant sent{microseconds(2000).ns * i};
    network.advance(sent);
    send_to(1);
    CHECK(arrivals.back() <= sent.ns + microseconds(1001).ns);
    if (arrivals.back() > sent.ns + microseconds(1).ns) ++slow;
  }
  CHECK(slow > 140);
  CHECK(slow < 260);
  arrivals.clear();
  for (int i = 0; i < 100; ++i) send_to(2);
  CHECK(std::is_sorted(arrivals.begin(), arrivals.end()));
}

TEST_CASE("local transport: a dead end gets and sends nothing, what it had sent arrives") {
  LocalNetwork network(3);
  network.end(WorkerId(0)).send(WorkerId(1), Channel::kControl, bytes("lost"));
  network.end(WorkerId(1)).send(WorkerId(2), Channel::kControl, bytes("last words"));
  network.kill(WorkerId(1));
  CHECK(network.end(WorkerId(0)).pending() == 0);
  network.end(WorkerId(0)).send(WorkerId(1), Channel::kControl, bytes("lost too"));
  network.end(WorkerId(1)).send(WorkerId(2), Channel::kControl, bytes("from the dead"));
  CHECK(poll_all(network.end(WorkerId(1))) == Texts{});
  CHECK(poll_all(network.end(WorkerId(2))) == Texts{"1c:last words"});
  CHECK(network.end(WorkerId(0)).pending() == 0);
}

TEST_CASE("local transport: a message sent while another is handled is handled in the same poll") {
  LocalNetwork network(1);
  Transport& transport = network.end(WorkerId(0));
  transport.send(WorkerId(0), Channel::kControl, bytes("first"));
  size_t count = 0;
  transport.poll(
      [&](WorkerId, Channel, std::span<const std::byte>) {
        if (++count == 1) transport.send(WorkerId(0), Channel::kControl, bytes("second"));
      },
      10);
  CHECK(count == 2);
}

}  // namespace
}  // namespace sluice::io
