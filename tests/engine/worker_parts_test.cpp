// An asker or a source of parts, with this test as its peer and its helper.
#include "engine/worker_parts.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "io/transport_local.h"
#include "tests/support/temporary_folder.h"

using namespace sluice;
using engine::WorkerParts;
using scheduler::AttemptId;
using scheduler::Instant;
using scheduler::ObjectId;
using scheduler::WorkerId;
namespace fs = std::filesystem;
namespace message = io::message;

namespace {

constexpr WorkerId kPeer{0};
constexpr WorkerId kSelf{1};
const AttemptId kAttempt = AttemptId::make(1, 1);

std::shared_ptr<io::Store> make_store(const test::TemporaryFolder& folder) {
  auto store = io::Store::create({folder / "memory", folder / "disk"}, 1LL << 30U);
  REQUIRE(store.ok());
  return std::make_shared<io::Store>(std::move(*store));
}

class Bench {
 public:
  Bench() : checker_(make_pair(ends_)) {}
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  ~Bench() {
    for (const int end : ends_) ::close(end);
  }

  // Until the I/O thread has done what was posted so far.
  void settle() {
    bool done = false;
    io.post([&done]() -> engine::IoThread::Completion { return [&done] { done = true; }; });
    while (!done) {
      pollfd fd{io.fd(), POLLIN, 0};
      REQUIRE(::poll(&fd, 1, 5000) == 1);
      io.run_completions();
    }
  }
  // What the helper was asked to make.
  io::CheckRequest asked() {
    std::array<char, 65536> text{};
    const ssize_t count = ::recv(ends_[1], text.data(), text.size(), MSG_DONTWAIT);
    REQUIRE(count > 0);
    return *io::decode_check_request({text.data(), static_cast<size_t>(count)});
  }
  [[nodiscard]] size_t files_in_store() const {
    const fs::directory_iterator objects(folder / "memory" / "o");
    return static_cast<size_t>(std::distance(begin(objects), end(objects)));
  }

  test::TemporaryFolder folder;
  io::LocalNetwork network{2};
  engine::IoThread io{"test-io"};
  std::shared_ptr<io::Store> store = make_store(folder);
  std::vector<WorkerParts::Outcome> outcomes;

 private:
  static int make_pair(std::array<int, 2>& ends) {
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
    return ends[0];
  }
  std::array<int, 2> ends_{};
  io::CheckerClient checker_;
  engine::WorkerFetch fetch_{store, network.end(kSelf), io, [](ObjectId, const std::string&) {}};

 public:
  // As a worker does: an attempt that lost a source is over.
  WorkerParts parts{
      store, network.end(kSelf), checker_, fetch_, io, [this](const WorkerParts::Outcome& outcome) {
        outcomes.push_back(outcome);
        if (outcome.source_lost) parts.forget(outcome.attempt);
      }};
};

io::AttemptSpec two_parts() {
  io::AttemptSpec spec;
  for (const uint32_t object : {1U, 2U}) {
    io::InputSpec input;
    input.name = "u" + std::to_string(object);
    input.view.dataset = "/u";
    input.files = {{ObjectId(object), "", "f.h5", "", ""}};
    spec.inputs.push_back(std::move(input));
  }
  return spec;
}

}  // namespace

TEST_CASE("worker parts: the death of a source of two of its objects ends an attempt once") {
  Bench bench;
  const io::AttemptSpec spec = two_parts();
  bench.parts.start({0}, kAttempt, spec, ObjectId(1), kPeer);
  bench.parts.start({0}, kAttempt, spec, ObjectId(2), kPeer);
  bench.parts.peer_lost(kPeer);
  REQUIRE(bench.outcomes.size() == 1);
  CHECK(bench.outcomes[0].source_lost);
  CHECK_FALSE(bench.parts.active());
}

TEST_CASE("worker parts: what was made for a peer that died meanwhile does not stay") {
  Bench bench;
  const std::vector<std::byte> bytes(100);
  REQUIRE(bench.store->begin_receive(ObjectId(1), {100, 0, 0444}).ok());
  REQUIRE(bench.store->write_piece(ObjectId(1), 0, bytes).ok());
  REQUIRE(bench.store->finish_receive(ObjectId(1)).ok());
  bench.parts.on_request({0}, kPeer, {7, ObjectId(1), two_parts().inputs[0].view});
  bench.settle();
  const io::CheckRequest asked = bench.asked();
  test::write_text(asked.path, "made");
  bench.parts.peer_lost(kPeer);
  io::CheckReply reply;
  reply.id = asked.id;
  reply.ok = true;
  CHECK(bench.parts.on_made(reply));
  bench.settle();
  bench.settle();  // the removal was posted by the first one's completions
  CHECK(bench.files_in_store() == 1);
}
