// Messages between ranks: whole, ordered per pair and channel, never blocking. Control messages are
// never behind bulk data. Implementations: transport_mpi (ranks), transport_local (one process, the
// simulator). A message to a dead peer is lost without an error: only heartbeats and guards tell of
// deaths (facts: MPI never does). One thread (the control thread) uses a transport. Contract test
// for all: tests/io/transport_contract.h
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "scheduler/types.h"

namespace sluice::io {

enum class Channel : uint8_t { kControl, kBulk };
using Bytes = std::vector<std::byte>;

class Transport {
 public:
  virtual ~Transport() = default;
  // mpi_rank of this end, and how many ends there are.
  [[nodiscard]] virtual scheduler::WorkerId self() const = 0;
  [[nodiscard]] virtual size_t size() const = 0;
  // Queues the message; the bytes are owned by the transport from here on. Sending to oneself is
  // allowed.
  virtual void send(scheduler::WorkerId to, Channel channel, Bytes message) = 0;
  // Makes progress and hands over what has arrived, control first, at most `max` messages. Returns
  // how many.
  using Handler =
      std::function<void(scheduler::WorkerId from, Channel channel, std::span<const std::byte>)>;
  virtual size_t poll(const Handler& handler, size_t max) = 0;
  // The next poll hands something over for certain: what was sent to oneself does so, of others
  // only poll knows. Who waits must not wait then.
  [[nodiscard]] virtual bool ready() const = 0;
  // Sends of which the bytes have not left yet. To a peer given up with `forget` nothing counts.
  [[nodiscard]] virtual size_t pending() const = 0;
  [[nodiscard]] virtual size_t pending_bytes(scheduler::WorkerId to) const = 0;
  // The peer is dead: its pending sends are abandoned (buffers kept alive for MPI's sake), later
  // ones dropped.
  virtual void forget(scheduler::WorkerId peer) = 0;
};

}  // namespace sluice::io
