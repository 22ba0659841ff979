#include "engine/worker_fetch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "io/fault.h"

namespace sluice::engine {

using scheduler::Instant;
using scheduler::ObjectId;
using scheduler::WorkerId;

WorkerFetch::WorkerFetch(std::shared_ptr<io::Store> store, io::Transport& transport, IoThread& io,
                         Finished finished)
    : store_(std::move(store)), transport_(transport), io_(io), finished_(std::move(finished)) {}

void WorkerFetch::start(Instant now, ObjectId object, WorkerId source, ObjectId there) {
  now_ = now;
  const Waiting wanted{object, source, there.valid() ? there : object};
  if (transfers_.size() >= kObjects) {
    waiting_.push_back(wanted);
  } else {
    begin(now, wanted);
  }
}

void WorkerFetch::begin(Instant now, const Waiting& wanted) {
  Transfer& transfer = transfers_[wanted.object];
  transfer.source = wanted.source;
  transfer.there = wanted.there;
  transfer.progress = now;
  ask(transfer);  // one chunk: its answer tells the size
}

// Of a few.
WorkerFetch::Transfers::iterator WorkerFetch::find(WorkerId source, ObjectId there) {
  return std::find_if(transfers_.begin(), transfers_.end(), [=](const auto& entry) {
    return entry.second.source == source && entry.second.there == there;
  });
}

// Before the size is known one chunk is asked for, then as many as may be in flight. A directory's
// files are asked for when all of its manifest is written.
void WorkerFetch::ask(Transfer& transfer) {
  const int64_t end = transfer.written_bytes < transfer.manifest_bytes ? transfer.manifest_bytes
                                                                       : transfer.total_bytes;
  const auto more = [&transfer, end] {
    if (transfer.total_bytes < 0) return transfer.in_flight == 0;
    return transfer.asked_bytes < end && transfer.in_flight < kInFlight;
  };
  while (more()) {
    transport_.send(
        transfer.source, io::Channel::kControl,
        io::encode(io::message::FetchRequest{transfer.there, transfer.asked_bytes, kChunkBytes}));
    SLUICE_FAULT_POINT("fetch.asked");
    transfer.asked_bytes += kChunkBytes;
    ++transfer.in_flight;
  }
}

void WorkerFetch::on_request(WorkerId from, const io::message::FetchRequest& request) {
  io_.post([this, store = store_, from, request]() -> IoThread::Completion {
    SLUICE_FAULT_POINT("fetch.serve");
    io::message::FetchChunk chunk{request.object, request.offset, -1, 0, 0, {}};
    const int64_t length = std::min(request.length, kChunkBytes);
    io::ObjectForm form;
    auto bytes = store->read_piece(request.object, request.offset, length, form);
    if (bytes) {
      chunk.data = std::move(*bytes);
      chunk.total_bytes = form.total_bytes;
      chunk.manifest_bytes = form.manifest_bytes;
      chunk.mode = form.mode;
    }
    auto message = std::make_shared<io::Bytes>(io::encode(chunk));
    return [this, from, message] {
      transport_.send(from, io::Channel::kBulk, std::move(*message));
      SLUICE_FAULT_POINT("fetch.served");
    };
  });
}

void WorkerFetch::on_chunk(Instant now, WorkerId from, io::message::FetchChunk chunk) {
  now_ = now;
  const auto found = find(from, chunk.object);
  if (found == transfers_.end()) return;  // given up meanwhile
  const ObjectId object = found->first;
  Transfer& transfer = found->second;
  if (chunk.total_bytes < 0) {
    fail(object, "the source does not hold it any more");
    return;
  }
  const bool first = transfer.total_bytes < 0;
  transfer.total_bytes = chunk.total_bytes;
  transfer.manifest_bytes = chunk.manifest_bytes;
  transfer.progress = now;
  const int64_t asked = std::min<int64_t>(kChunkBytes, transfer.total_bytes - chunk.offset);
  if (static_cast<int64_t>(chunk.data.size()) != asked) {
    fail(object, "the source sent " + std::to_string(chunk.data.size()) + " bytes where " +
                     std::to_string(asked) + " were asked for");
    return;
  }
  bytes_received_ += asked;
  ++transfer.unwritten;
  write_chunk(object, std::move(chunk), first);
}

void WorkerFetch::write_chunk(ObjectId object, io::message::FetchChunk chunk, bool first) {
  auto shared = std::make_shared<io::message::FetchChunk>(std::move(chunk));
  io_.post([this, store = store_, object, shared, first]() -> IoThread::Completion {
    SLUICE_FAULT_POINT("fetch.chunk");
    Status status = Done{};
    if (first) {
      status =
          store->begin_receive(object, {shared->total_bytes, shared->manifest_bytes, shared->mode});
    }
    if (status) status = store->write_piece(object, shared->offset, shared->data);
    if (!status) {
      return [this, object, error = status.error().message] { fail(object, error); };
    }
    SLUICE_FAULT_POINT("fetch.chunk.written");
    return [this, object, bytes = static_cast<int64_t>(shared->data.size())] {
      written(object, bytes);
    };
  });
}

void WorkerFetch::written(ObjectId object, int64_t bytes) {
  const auto found = transfers_.find(object);
  if (found == transfers_.end()) return;
  Transfer& transfer = found->second;
  transfer.written_bytes += bytes;
  transfer.progress = now_;
  --transfer.unwritten;
  --transfer.in_flight;
  if (transfer.written_bytes < transfer.total_bytes) {
    ask(transfer);
    return;
  }
  io_.post([this, store = store_, object]() -> IoThread::Completion {
    SLUICE_FAULT_POINT("fetch.last");
    const Status status = store->finish_receive(object);
    SLUICE_FAULT_POINT("fetch.sealed");
    return [this, object, error = status.ok() ? std::string() : status.error().message] {
      if (!error.empty()) return fail(object, error);
      transfers_.erase(object);
      ++objects_received_;
      finished_(object, "");
      start_waiting();
    };
  });
}

void WorkerFetch::fail(ObjectId object, const std::string& error) {
  if (transfers_.erase(object) == 0) return;
  io_.post([store = store_, object]() -> IoThread::Completion {
    store->abandon_receive(object);
    return {};
  });
  finished_(object, error);
  start_waiting();
}

void WorkerFetch::start_waiting() {
  while (!waiting_.empty() && transfers_.size() < kObjects) {
    const Waiting next = waiting_.front();
    waiting_.pop_front();
    begin(now_, next);
  }
}

void WorkerFetch::peer_lost(WorkerId peer) {
  std::vector<ObjectId> gone;
  for (const auto& [object, transfer] : transfers_) {
    if (transfer.source == peer) gone.push_back(object);
  }
  for (const ObjectId object : gone)
    fail(object, "its source, worker " + std::to_string(peer.value) + ", is lost");
}

void WorkerFetch::tick(Instant now) {
  now_ = now;
  std::vector<ObjectId> stalled;
  for (const auto& [object, transfer] : transfers_) {
    if (transfer.unwritten == 0 && now >= transfer.progress + kStalledAfter)
      stalled.push_back(object);
  }
  const std::string error =
      "its source sent nothing for " + std::to_string(kStalledAfter.ns / 1'000'000'000) + " s";
  for (const ObjectId object : stalled) fail(object, error);
}

Instant WorkerFetch::next_deadline() const {
  Instant next = Instant::never();
  for (const auto& [object, transfer] : transfers_) {
    if (transfer.unwritten == 0) next = std::min(next, transfer.progress + kStalledAfter);
  }
  return next;
}

}  // namespace sluice::engine
