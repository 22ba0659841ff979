// Two workers in one process: one holds an object, the other pulls it in chunks.
#include "engine/worker_fetch.h"

#include <doctest/doctest.h>
#include <poll.h>

#include <optional>
#include <string>
#include <vector>

#include "io/transport_local.h"
#include "tests/support/random_tree.h"
#include "tests/support/temporary_folder.h"

using namespace sluice;
using engine::IoThread;
using engine::WorkerFetch;
using scheduler::Instant;
using scheduler::ObjectId;
using scheduler::WorkerId;
namespace message = io::message;

namespace {

std::shared_ptr<io::Store> make_store(const test::TemporaryFolder& folder,
                                      const std::string& name) {
  auto store =
      io::Store::create({folder / (name + ".memory"), folder / (name + ".disk")}, 1LL << 30U);
  REQUIRE(store.ok());
  return std::make_shared<io::Store>(std::move(*store));
}

struct Side {
  IoThread io{"test-io"};
  std::shared_ptr<io::Store> store;
  io::Transport& transport;
  std::optional<std::string> outcome;  // error text, "" for success
  WorkerFetch fetch;

  Side(std::shared_ptr<io::Store> given, io::Transport& end)
      : store(std::move(given)),
        transport(end),
        fetch(store, transport, io,
              [this](ObjectId, const std::string& error) { outcome = error; }) {}

  void turn(Instant now) {
    transport.poll(
        [&](WorkerId from, io::Channel, std::span<const std::byte> bytes) {
          auto decoded = io::decode(bytes);
          REQUIRE(decoded.ok());
          if (auto* request = std::get_if<message::FetchRequest>(&*decoded))
            fetch.on_request(from, *request);
          if (auto* chunk = std::get_if<message::FetchChunk>(&*decoded))
            fetch.on_chunk(now, from, std::move(*chunk));
        },
        100);
    pollfd fd{io.fd(), POLLIN, 0};
    (void)poll(&fd, 1, 1);
    io.run_completions();
  }
};

void put(io::Store& store, ObjectId object, const std::vector<std::byte>& bytes) {
  REQUIRE(store.begin_receive(object, {static_cast<int64_t>(bytes.size()), 0, 0555}).ok());
  REQUIRE(store.write_piece(object, 0, bytes).ok());
  REQUIRE(store.finish_receive(object).ok());
}

// As an attempt's output.
void put_tree(io::Store& store, ObjectId object, const std::filesystem::path& tree) {
  const auto attempt = scheduler::AttemptId::make(1, 1);
  io::AttemptSpec spec;
  spec.words = {{{io::Piece::Kind::kText, 0, "/bin/true"}}};
  spec.outputs.resize(1);
  spec.outputs[0].kind = scheduler::OutputKind::kDir;
  spec.outputs[0].file_name = "tree";
  spec.outputs[0].object = object;
  const auto staged = store.stage(attempt, spec, {});
  REQUIRE(staged.ok());
  std::filesystem::rename(tree, staged->output_paths[0]);
  REQUIRE(store.seal(attempt, spec, 0).ok());
  REQUIRE(store.clean(attempt).ok());
}

std::vector<std::byte> pattern(size_t bytes) {
  std::vector<std::byte> out(bytes);
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>((i * 31U + i / 4096U) & 0xffU);
  return out;
}

void until_outcome(Side& puller, Side& source) {
  for (int i = 0; i < 20'000 && !puller.outcome; ++i) {
    puller.turn({i});
    source.turn({i});
  }
  REQUIRE(puller.outcome);
}

}  // namespace

TEST_CASE(
    "worker fetch: an object of several chunks, one byte, or none arrives as it was, mode "
    "included") {
  test::TemporaryFolder folder;
  io::LocalNetwork network(2);
  Side source(make_store(folder, "a"), network.end(WorkerId(0)));
  Side puller(make_store(folder, "b"), network.end(WorkerId(1)));
  uint32_t number = 1;
  for (const size_t bytes : {size_t{5'500'000}, size_t{1}, size_t{0}, size_t{2} << 20U}) {
    CAPTURE(bytes);
    const ObjectId object(number++);
    const auto content = pattern(bytes);
    put(*source.store, object, content);
    puller.outcome.reset();
    puller.fetch.start({0}, object, WorkerId(0));
    until_outcome(puller, source);
    CHECK(*puller.outcome == "");
    CHECK(!puller.fetch.active());
    io::ObjectForm form;
    const auto there = puller.store->read_piece(object, 0, static_cast<int64_t>(bytes), form);
    REQUIRE(there.ok());
    CHECK(form.total_bytes == static_cast<int64_t>(bytes));
    CHECK(form.manifest_bytes == 0);
    CHECK(*there == content);
    CHECK((form.mode & 0777U) == 0555U);
  }
}

TEST_CASE(
    "worker fetch: a source that does not hold the object, is lost or is silent is given up") {
  test::TemporaryFolder folder;
  io::LocalNetwork network(2);
  Side source(make_store(folder, "a"), network.end(WorkerId(0)));
  Side puller(make_store(folder, "b"), network.end(WorkerId(1)));

  puller.fetch.start({0}, ObjectId(7), WorkerId(0));
  until_outcome(puller, source);
  CHECK(*puller.outcome == "the source does not hold it any more");

  puller.outcome.reset();
  puller.fetch.start({0}, ObjectId(8), WorkerId(0));
  puller.fetch.peer_lost(WorkerId(0));
  REQUIRE(puller.outcome);
  CHECK(*puller.outcome == "its source, worker 0, is lost");

  puller.outcome.reset();
  puller.fetch.start({0}, ObjectId(9), WorkerId(0));
  CHECK(puller.fetch.next_deadline() == Instant{WorkerFetch::kStalledAfter.ns});
  puller.fetch.tick(Instant{WorkerFetch::kStalledAfter.ns});
  REQUIRE(puller.outcome);
  CHECK(*puller.outcome == "its source sent nothing for 120 s");
}

TEST_CASE("worker fetch: a directory arrives with all that is in it, small files packed") {
  test::TemporaryFolder folder;
  io::LocalNetwork network(2);
  Side source(make_store(folder, "a"), network.end(WorkerId(0)));
  Side puller(make_store(folder, "b"), network.end(WorkerId(1)));
  test::TreeModel model;
  SUBCASE("nothing in it") {}
  SUBCASE("links, empty files and directories, one file of several chunks") {
    const auto big = pattern(3'500'000);
    model = {{"empty", "d"},
             {"none", "f"},
             {"link", "lsub/run"},
             {"sub", "d"},
             {"sub/run", "x#!/bin/sh\n"},
             {"z", "f" + std::string(reinterpret_cast<const char*>(big.data()), big.size())}};
  }
  SUBCASE("a manifest of several chunks") {
    for (int i = 0; i < 5000; ++i) {
      model[std::string(240, 'n') + std::to_string(i)] = "f" + std::to_string(i);
    }
  }
  const ObjectId object(3);
  test::write_tree(folder / "tree", model);
  put_tree(*source.store, object, folder / "tree");
  puller.fetch.start({0}, object, WorkerId(0));
  until_outcome(puller, source);
  CHECK(*puller.outcome == "");
  CHECK(test::read_tree(puller.store->object_path(object)) == model);
}

TEST_CASE("worker fetch: more objects than may move at once wait their turn and all arrive") {
  test::TemporaryFolder folder;
  io::LocalNetwork network(2);
  Side source(make_store(folder, "a"), network.end(WorkerId(0)));
  Side puller(make_store(folder, "b"), network.end(WorkerId(1)));
  constexpr uint32_t kObjects = 11;
  for (uint32_t i = 0; i < kObjects; ++i) put(*source.store, ObjectId(i), pattern(100 + i));
  for (uint32_t i = 0; i < kObjects; ++i) puller.fetch.start({0}, ObjectId(i), WorkerId(0));
  for (int i = 0; i < 20'000 && puller.fetch.active(); ++i) {
    puller.turn({i});
    source.turn({i});
  }
  for (uint32_t i = 0; i < kObjects; ++i) CHECK(puller.store->holds(ObjectId(i)));
}
