// Parts of HDF5 objects between nodes: what an attempt reads of an object that another node holds
// is made there, by that worker's `sluice-h5`, and only that travels.
//
//   asker                                   source
//     PartRequest {number, object, view} -->  makes the file, an object of its own store
//     <-- PartReady {number, part}
//     fetches the part (worker_fetch.h)
//     PartDone {part} ----------------------> removes it
//
// The id of a part means something to one worker only: both ends number theirs from kOwnObjects on,
// beyond all ids of the graph. A part that cannot be made is an error to the asker, who fetches all
// of the object instead: then the attempt's own view says what is wrong. A source that does not
// answer for kStalledAfter counts as lost. What was made for a peer that died is removed.
//
// Control thread only; files are made and removed on the I/O thread. Test:
// tests/engine/worker_parts_test.cpp, tests/cluster/parts.sh
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/io_thread.h"
#include "engine/worker_fetch.h"
#include "io/attempt_spec.h"
#include "io/checker_client.h"
#include "io/store.h"
#include "io/transport.h"
#include "io/wire.h"
#include "scheduler/types.h"

namespace sluice::engine {

constexpr uint32_t kOwnObjects = 1U << 31U;

// What has to come of an input's files when not all of them is read: of a gather the dataset, so
// that files which are here already can be treated alike. None: all of each file is needed.
[[nodiscard]] std::optional<io::H5View> part_of(const io::InputSpec& input);
// The objects of which the attempt needs all.
[[nodiscard]] std::set<scheduler::ObjectId> read_whole(const io::AttemptSpec& spec);

class WorkerParts {
 public:
  static constexpr scheduler::Duration kStalledAfter = WorkerFetch::kStalledAfter;
  // All parts that the attempt reads of the object are in the store, or `error` says why not.
  struct Outcome {
    scheduler::AttemptId attempt;
    scheduler::ObjectId object;
    std::string error;
    bool source_lost = false;
  };
  using Finished = std::function<void(const Outcome&)>;
  WorkerParts(std::shared_ptr<io::Store> store, io::Transport& transport,
              io::CheckerClient& checker, WorkerFetch& fetch, IoThread& io, Finished finished);

  // -- the asker
  void start(scheduler::Instant now, scheduler::AttemptId attempt, const io::AttemptSpec& spec,
             scheduler::ObjectId object, scheduler::WorkerId source);
  void on_ready(scheduler::Instant now, scheduler::WorkerId from,
                const io::message::PartReady& ready);
  // Of WorkerFetch, for ids from kOwnObjects on.
  void on_fetched(scheduler::ObjectId part, const std::string& error);
  // In the attempt, each file of which a part has come becomes that part.
  void use(scheduler::AttemptId attempt, io::AttemptSpec& spec) const;
  // The attempt is over: its parts go.
  void forget(scheduler::AttemptId attempt);

  // -- the source
  void on_request(scheduler::Instant now, scheduler::WorkerId from,
                  const io::message::PartRequest& request);
  bool on_made(const io::CheckReply& reply);  // false: it is no part
  void on_done(scheduler::WorkerId from, const io::message::PartDone& done);

  // -- both
  void peer_lost(scheduler::WorkerId peer);
  void tick(scheduler::Instant now);
  [[nodiscard]] scheduler::Instant next_deadline() const;
  [[nodiscard]] bool active() const { return !wanted_.empty(); }

 private:
  // One file of one input of an attempt.
  struct Wanted {
    scheduler::AttemptId attempt;
    scheduler::ObjectId object;
    scheduler::WorkerId source;
    size_t input = 0;
    size_t file = 0;
    scheduler::ObjectId here;   // once it is fetched: what it is called here
    scheduler::ObjectId there;  // and at the source
    scheduler::Instant since;
  };
  struct Arrived {
    size_t input = 0;
    size_t file = 0;
    scheduler::ObjectId part;
  };
  // What an attempt has asked for.
  struct Asker {
    std::multimap<scheduler::ObjectId, std::pair<size_t, size_t>> places;  // input and file
    std::map<scheduler::ObjectId, std::set<uint64_t>> open;  // numbers of what is wanted of each
    std::vector<Arrived> arrived;
  };
  // Made here for others.
  struct Made {
    scheduler::WorkerId asker;
    uint64_t number = 0;
  };
  // What the helper was asked for.
  struct Request {
    scheduler::ObjectId part;
    io::Store::NewFile file;
  };
  void send(scheduler::WorkerId to, const io::Message& message);
  void fail(scheduler::AttemptId attempt, scheduler::ObjectId object, const std::string& error,
            bool source_lost);
  void drop_wanted(uint64_t number);
  void remove(scheduler::ObjectId part);
  void answer(scheduler::ObjectId part, const std::string& error);

  std::shared_ptr<io::Store> store_;
  io::Transport& transport_;
  io::CheckerClient& checker_;
  WorkerFetch& fetch_;
  IoThread& io_;
  Finished finished_;
  uint64_t next_number_ = 1;
  uint32_t next_part_ = kOwnObjects;
  std::map<uint64_t, Wanted> wanted_;                 // by number
  std::map<scheduler::ObjectId, uint64_t> fetching_;  // by what it is called here
  std::map<scheduler::AttemptId, Asker> askers_;
  std::map<scheduler::ObjectId, Made> made_;  // being made included
  std::map<uint64_t, Request> requests_;      // by the helper's number
  scheduler::Instant now_;
};

}  // namespace sluice::engine
