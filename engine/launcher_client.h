// One end of the socket between a rank and its launcher: whole messages in and out, never
// blocking. What the socket does not take at once is kept and written later, so a caller that
// waits with poll asks for POLLOUT while wants_write(). LauncherClient is the rank's end: give it
// kLauncherFd. Owns the descriptor. One thread. Test: tests/engine/launch_protocol_test.cpp
#pragma once

#include <cstddef>
#include <vector>

#include "engine/launch_protocol.h"
#include "io/file_descriptor.h"

namespace sluice::engine {

class LaunchChannel {
 public:
  explicit LaunchChannel(int fd);

  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] bool wants_write() const { return !dead_ && written_ < unsent_.size(); }
  // Queues the message and writes what the socket takes. Nothing happens if the peer is dead:
  // read() tells.
  void send(const LaunchMessage& message);
  void flush();
  // Flushes, then appends every message that has arrived. False: the peer is dead (end of file),
  // or sent bytes that make no sense, which only a broken process does; nothing more will come.
  [[nodiscard]] bool read(std::vector<LaunchMessage>& messages);

 private:
  [[nodiscard]] bool take_messages(std::vector<LaunchMessage>& messages);

  io::FileDescriptor socket_;
  FrameReader reader_;
  std::vector<std::byte> unsent_;
  size_t written_ = 0;  // of unsent_
  bool dead_ = false;
};

using LauncherClient = LaunchChannel;

}  // namespace sluice::engine
