// Messages between ranks over MPI (io/transport.h says what a transport promises).
//
// Promise: no call ever blocks. Bounds: of the sends to one peer only a few are given to MPI at a
// time (kPosted… in the .cpp), the rest wait in our queue, so that a control message finds at most
// 8 MiB of bulk data before it; receives in progress are at most 256 messages and about 128 MiB for
// a channel, more waits unmatched in MPI. A message has at most 2^31 - 1 bytes.
//
// One owner, the control thread. Contract test: tests/mpi/ (under mpirun)
#pragma once

#include <memory>

#include "io/mpi_session.h"
#include "io/transport.h"
#include "scheduler/types.h"

namespace sluice::io {

class MpiTransport final : public Transport {
 public:
  // The session must live longer.
  explicit MpiTransport(MpiSession& session);
  // Buffers of unfinished requests are leaked on purpose: MPI may still write to them.
  ~MpiTransport() override;
  MpiTransport(const MpiTransport&) = delete;
  MpiTransport& operator=(const MpiTransport&) = delete;

  [[nodiscard]] scheduler::WorkerId self() const override;
  [[nodiscard]] size_t size() const override;
  void send(scheduler::WorkerId to, Channel channel, Bytes message) override;
  size_t poll(const Handler& handler, size_t max) override;
  [[nodiscard]] bool ready() const override;
  [[nodiscard]] size_t pending() const override;
  [[nodiscard]] size_t pending_bytes(scheduler::WorkerId to) const override;
  // Also: nothing from that peer is handed over any more.
  void forget(scheduler::WorkerId peer) override;

  // Sends to `peer` that MPI refused: those messages are lost, and the peer is probably dead.
  [[nodiscard]] size_t refused(scheduler::WorkerId peer) const;

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace sluice::io
