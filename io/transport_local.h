// A Transport within one process: N ends joined by queues. Two uses:
//
//   - at once (the default): a message has arrived as soon as it is sent. For a run of one process,
//     whose rank 0 is also its only worker.
//   - in virtual time: each message takes a seeded latency between two bounds; the order per pair
//     and channel is kept. `advance` sets the clock, `arrivals` tells the simulator when to poll.
//     Some messages may take longer, and an end may be cut off for a while: what would arrive at it
//     or from it then arrives when the cut is over.
//
// `kill` makes an end dead: what was on its way to it vanishes, it sends nothing more; what it had
// sent before still arrives. `pending` counts what the peers have not polled yet. One owner, one
// thread; the network must outlive its ends. Test: tests/io/transport_local_test.cpp
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "io/transport.h"

namespace sluice::io {

struct NetworkCut {
  scheduler::WorkerId end;
  scheduler::Instant from;
  scheduler::Instant until;
};

struct LocalNetworkOptions {
  scheduler::Duration latency_min;
  scheduler::Duration latency_max;
  uint64_t seed = 1;
  uint32_t slow_permille = 0;  // so many messages take up to slow_max longer
  scheduler::Duration slow_max = {};
  std::vector<NetworkCut> cuts = {};
};

class LocalNetwork {
 public:
  explicit LocalNetwork(size_t ends, const LocalNetworkOptions& options = {});
  ~LocalNetwork();
  LocalNetwork(const LocalNetwork&) = delete;
  LocalNetwork& operator=(const LocalNetwork&) = delete;

  [[nodiscard]] Transport& end(scheduler::WorkerId id);
  // Never backwards.
  void advance(scheduler::Instant now);
  void kill(scheduler::WorkerId id);
  // Called for every message that is sent: who should poll, and when.
  std::function<void(scheduler::WorkerId to, scheduler::Instant at)> arrivals;
  [[nodiscard]] uint64_t messages() const { return sequence_; }  // sent so far
  // When what would pass between two ends at this time does, for all cuts.
  [[nodiscard]] scheduler::Instant passes(scheduler::WorkerId one, scheduler::WorkerId other,
                                          scheduler::Instant at) const;

 private:
  class End;
  scheduler::Instant arrival(End& from, size_t to, Channel channel);
  [[nodiscard]] scheduler::Duration slowness() const;

  LocalNetworkOptions options_;
  scheduler::Instant now_;
  uint64_t sequence_ = 0;
  std::vector<std::unique_ptr<End>> ends_;
};

}  // namespace sluice::io
