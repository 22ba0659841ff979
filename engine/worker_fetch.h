// Moving objects between nodes: a fetch pulls an object from a peer in chunks, a few in flight at
// once, so that memory in flight is bounded by the puller and control messages are never behind
// bulk data; the serving side reads each chunk on its I/O thread. A directory comes as its manifest
// and then its files, packed (io/tree_stream.h). A source that sends nothing for kStalledAfter is
// given up; that is long, because its I/O thread may be busy with a large result, and its death is
// told by others (peer_lost).
//
// Objects that only a worker knows (engine/worker_parts.h) travel the same way, under ids from
// kOwnObjects on: then the two ends may call them differently.
//
// Control thread only; file access is posted to the I/O thread. Test:
// tests/engine/worker_fetch_test.cpp, tests/e2e/
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "engine/io_thread.h"
#include "io/store.h"
#include "io/transport.h"
#include "io/wire.h"
#include "scheduler/types.h"

namespace sluice::engine {

class WorkerFetch {
 public:
  static constexpr int64_t kChunkBytes = 1LL << 20U;
  static constexpr int kInFlight = 4;    // chunks asked for and not yet written, per object
  static constexpr size_t kObjects = 4;  // objects at once; the rest wait in order
  static constexpr scheduler::Duration kStalledAfter = scheduler::seconds(120);

  // `finished(object, error)`: error is empty when the object is complete in the store.
  using Finished = std::function<void(scheduler::ObjectId, std::string error)>;
  WorkerFetch(std::shared_ptr<io::Store> store, io::Transport& transport, IoThread& io,
              Finished finished);

  // `there`: what the source calls it, if not by the same id.
  void start(scheduler::Instant now, scheduler::ObjectId object, scheduler::WorkerId source,
             scheduler::ObjectId there = {});
  void on_request(scheduler::WorkerId from, const io::message::FetchRequest& request);
  void on_chunk(scheduler::Instant now, scheduler::WorkerId from, io::message::FetchChunk chunk);
  void peer_lost(scheduler::WorkerId peer);
  void tick(scheduler::Instant now);
  [[nodiscard]] scheduler::Instant next_deadline() const;
  [[nodiscard]] bool active() const { return !transfers_.empty(); }
  // Since the start, of whatever came of it.
  [[nodiscard]] int64_t bytes_received() const { return bytes_received_; }
  [[nodiscard]] int64_t objects_received() const { return objects_received_; }

 private:
  struct Transfer {
    scheduler::WorkerId source;
    scheduler::ObjectId there;   // what the source calls it
    int64_t total_bytes = -1;    // unknown before the first chunk
    int64_t manifest_bytes = 0;  // of a directory: the first part of them
    int64_t asked_bytes = 0;     // requested so far
    int64_t written_bytes = 0;   // safely in the store
    int in_flight = 0;           // chunks asked for and not yet written,
    int unwritten = 0;  // of these, that have come: nothing is wanted from the source for them
    scheduler::Instant progress;
  };
  struct Waiting {
    scheduler::ObjectId object;
    scheduler::WorkerId source;
    scheduler::ObjectId there;
  };
  using Transfers = std::map<scheduler::ObjectId, Transfer>;
  void begin(scheduler::Instant now, const Waiting& wanted);
  [[nodiscard]] Transfers::iterator find(scheduler::WorkerId source, scheduler::ObjectId there);
  void ask(Transfer& transfer);
  void write_chunk(scheduler::ObjectId object, io::message::FetchChunk chunk, bool first);
  void written(scheduler::ObjectId object, int64_t bytes);
  void fail(scheduler::ObjectId object, const std::string& error);
  void start_waiting();

  std::shared_ptr<io::Store> store_;
  io::Transport& transport_;
  IoThread& io_;
  Finished finished_;
  Transfers transfers_;
  std::deque<Waiting> waiting_;
  int64_t bytes_received_ = 0;
  int64_t objects_received_ = 0;  // whole
  scheduler::Instant now_;
};

}  // namespace sluice::engine
