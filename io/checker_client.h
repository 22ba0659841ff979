// The worker's end of the socket to sluice-h5: requests wait in a queue, one is in flight, replies
// come when they come. Nothing blocks and nothing reads a clock.
//
// A helper that hangs is found by its deadline: expired() says so once for a request, the driver
// has the launcher kill the helper, and the launcher's crashed message then becomes the request's
// failed reply. A helper that was killed by someone else (out of memory, most likely because of a
// neighbour) is asked once more. One whose answer makes no sense has failed the request: what it
// says may be the file's doing. A helper that says that it is busy gets more time. Replies to
// requests that are not in flight are ignored.
//
// Owner: the control thread. The descriptor is borrowed. Test: tests/io/checker_client_test.cpp
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "io/checker.h"
#include "scheduler/expected.h"
#include "scheduler/types.h"

namespace sluice::io {

class CheckerClient {
 public:
  // `limit`: how long one request may take, beside the time that reading its file takes at 20 MiB a
  // second.
  explicit CheckerClient(int fd, scheduler::Duration limit = scheduler::seconds(120));

  [[nodiscard]] int fd() const { return fd_; }
  // An id of 0 is replaced by a new one. Returns the id that the reply will carry.
  uint64_t request(scheduler::Instant now, CheckRequest request);
  // Appends the replies that have arrived. An Error: the socket is closed or broken, nothing more
  // will come.
  Status read(scheduler::Instant now, std::vector<CheckReply>& replies);

  // never() while nothing is in flight, or once expired() has said so.
  [[nodiscard]] scheduler::Instant deadline() const { return deadline_; }
  // True once when the request in flight is overdue: kill the helper.
  [[nodiscard]] bool expired(scheduler::Instant now);
  [[nodiscard]] size_t pending() const { return waiting_.size(); }  // in flight included

 private:
  Status send_next(scheduler::Instant now);
  Status take(scheduler::Instant now, const CheckReply& reply, std::vector<CheckReply>& replies);
  Status give_up(scheduler::Instant now, const Error& error, std::vector<CheckReply>& replies);
  [[nodiscard]] CheckReply failed(int signal) const;
  [[nodiscard]] std::string name_in_flight() const;

  int fd_;
  scheduler::Duration limit_;
  uint64_t next_id_ = 1;
  std::deque<CheckRequest> waiting_;  // the front one is in flight if in_flight_
  bool in_flight_ = false;
  bool asked_twice_ = false;
  bool overdue_ = false;
  scheduler::Instant deadline_ = scheduler::Instant::never();
  std::vector<char> buffer_;
};

}  // namespace sluice::io
