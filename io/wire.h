// The codec of messages and of the trace, little-endian, version 1:
//
//   integer    unsigned LEB128, at most 64 bits; a signed one zigzag first (0, -1, 1, -2 -> 0 1 2
//   3) id         its integer (none = 2^32 - 1); AttemptId, Duration, Instant: their integer string
//   length, bytes; a vector of bytes likewise bool       one byte, 0 or 1 enum       its integer
//   Hash128    16 bytes: high then low, each little-endian
//   vector     length, elements; a pair or an array: its elements
//   struct     its members in declared order
//   variant    index of the alternative (integer), then the alternative
//
// A message is its variant: one byte of kind, then its members. The bytes of an object that a
// FetchChunk brings are those of the file; of a directory they are its manifest (a vector of
// TreeEntry, io/manifest.h: path, kind, executable, bytes, target) and then the bytes of its files
// in that order (io/tree_stream.h). The graph (of the trace): limits, requests, tasks with the
// static keys of their instances, groups with their objects and consumers, gates with their
// predecessors and successors.
//
// Decoding never trusts the bytes: a short or impossible message gives an Error, not a crash (tried
// with truncations and random damage). Both ends are the same program, so there is no version in a
// message. Pure functions, any thread. Test: tests/io/wire_test.cpp
#pragma once

#include <span>
#include <string>
#include <variant>
#include <vector>

#include "io/attempt_spec.h"
#include "io/transport.h"
#include "scheduler/decision.h"
#include "scheduler/event.h"
#include "scheduler/expected.h"
#include "scheduler/graph.h"

namespace sluice::io {

namespace message {

// worker -> rank 0, first message
struct Hello {
  std::string host;        // host name
  std::string node_key;    // equal for workers that share node memory (boot id + /dev/shm device)
  std::string store_path;  // where its objects are, for hard links on one node
  scheduler::Resources resources;
  int64_t store_budget_bytes = 0;
};
// rank 0 -> worker, answer to Hello, and again when a peer joins
struct Peer {
  scheduler::WorkerId worker;
  std::string node_key;
  std::string store_path;
};
struct Welcome {
  std::string run_uuid;
  std::string run_directory;  // absolute
  uint32_t epoch = 0;
  std::vector<Peer> peers;
};
// rank 0 -> worker
struct Start {
  scheduler::decision::StartAttempt decision;
  scheduler::Duration grace;
  AttemptSpec spec;
  std::vector<std::string>
      durable_paths;  // per decision.inputs: path relative to the run directory if source is none
};
struct TakeBack {
  scheduler::AttemptId attempt;
};
struct Stop {
  scheduler::AttemptId attempt;
};
struct Save {
  scheduler::ObjectId object;
  scheduler::AttemptId save;
  std::string temporary_path;  // relative to the run directory
};
struct Drop {
  scheduler::ObjectId object;
};
struct Leave {};
// worker -> rank 0
struct Report {
  scheduler::Event event;
};
struct Left {};
struct Ping {};  // either way: I am alive
// worker -> rank 0: something went wrong here that people should read (once per cause, not per
// task)
struct Log {
  uint8_t level = 0;  // 0 info, 1 warn, 2 error
  std::string text;
};
// worker -> worker: send me bytes [offset, offset + length) of this object
struct FetchRequest {
  scheduler::ObjectId object;
  int64_t offset = 0;
  int64_t length = 0;
};
// worker -> worker, on Channel::kBulk. total_bytes < 0: I do not have it.
struct FetchChunk {
  scheduler::ObjectId object;
  int64_t offset = 0;
  int64_t total_bytes = 0;
  int64_t manifest_bytes = 0;  // of a directory: how many of them are its manifest; 0: a file
  uint32_t mode = 0;           // permission bits of the file
  std::vector<std::byte> data;
};

// worker -> worker: make this part of an HDF5 object for me. `number` is the asker's.
struct PartRequest {
  uint64_t number = 0;
  scheduler::ObjectId object;
  H5View view;
};
// The answer: under which id it can be fetched, until PartDone; or why it cannot be made.
struct PartReady {
  uint64_t number = 0;
  scheduler::ObjectId part;
  std::string error;
};
struct PartDone {
  scheduler::ObjectId part;
};

// rank 0 -> workers: that worker is gone for good; nothing it still says counts
struct PeerLost {
  scheduler::WorkerId worker;
};

}  // namespace message

using Message =
    std::variant<message::Hello, message::Welcome, message::Peer, message::Start, message::TakeBack,
                 message::Stop, message::Save, message::Drop, message::Leave, message::Report,
                 message::Left, message::Ping, message::Log, message::FetchRequest,
                 message::FetchChunk, message::PeerLost, message::PartRequest, message::PartReady,
                 message::PartDone>;

[[nodiscard]] Bytes encode(const Message& message);
[[nodiscard]] Expected<Message> decode(std::span<const std::byte> bytes);

// For the trace and the journal's readers.
[[nodiscard]] Bytes encode_event(const scheduler::Event& event);
[[nodiscard]] Expected<scheduler::Event> decode_event(std::span<const std::byte> bytes);
[[nodiscard]] Bytes encode_graph(const scheduler::Graph& graph);
[[nodiscard]] Expected<scheduler::Graph> decode_graph(std::span<const std::byte> bytes);

}  // namespace sluice::io
