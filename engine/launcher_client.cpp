#include "engine/launcher_client.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstdint>

namespace sluice::engine {

LaunchChannel::LaunchChannel(int fd) : socket_(fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

void LaunchChannel::send(const LaunchMessage& message) {
  if (dead_) return;
  const std::vector<std::byte> frame = encode_frame(message);
  unsent_.insert(unsent_.end(), frame.begin(), frame.end());
  flush();
}

void LaunchChannel::flush() {
  while (wants_write()) {
    const ssize_t sent = ::send(socket_.get(), unsent_.data() + written_, unsent_.size() - written_,
                                MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      written_ += static_cast<size_t>(sent);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno != EINTR) {
      dead_ = true;  // what it sent before it died can still be read
    }
  }
  unsent_.clear();
  written_ = 0;
}

bool LaunchChannel::read(std::vector<LaunchMessage>& messages) {
  flush();
  constexpr size_t kReadBytes = 64U << 10U;
  std::array<std::byte, kReadBytes> buffer;  // not initialised: recv fills what is used
  for (;;) {
    const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got > 0) {
      reader_.push(std::span(buffer).first(static_cast<size_t>(got)));
      if (!take_messages(messages)) return false;
      if (static_cast<size_t>(got) < buffer.size()) return true;
    } else if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return true;
    } else if (got == 0 || errno != EINTR) {
      dead_ = true;
      return false;
    }
  }
}

bool LaunchChannel::take_messages(std::vector<LaunchMessage>& messages) {
  for (;;) {
    LaunchMessage message;
    const Expected<bool> whole = reader_.next(message);
    if (!whole) {
      dead_ = true;
      return false;
    }
    if (!whole.value()) return true;
    messages.push_back(std::move(message));
  }
}

}  // namespace sluice::engine
