#include "io/checker_client.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <filesystem>

#include "io/tier.h"

namespace sluice::io {

using scheduler::Duration;
using scheduler::Instant;

namespace {

// Slower than any disk that is worth waiting for: what a request may take grows with its file.
constexpr int64_t kBytesPerSecondMin = 20LL << 20U;

// "crashed" beyond any signal: the helper ended by itself, or there is none.
constexpr int kExitCodeBase = 128;
constexpr int kNotStarted = kExitCodeBase + 127;

constexpr const char* kLook = "; look at it with sluice-h5 --describe";

Duration reading_time(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  return scheduler::seconds(info.st_size / kBytesPerSecondMin);
}

}  // namespace

CheckerClient::CheckerClient(int fd, Duration limit)
    : fd_(fd), limit_(limit), buffer_(kCheckMessageBytesMax) {}

uint64_t CheckerClient::request(Instant now, CheckRequest request) {
  if (request.id == 0) request.id = next_id_;
  next_id_ = std::max(next_id_, request.id) + 1;
  const uint64_t id = request.id;
  waiting_.push_back(std::move(request));
  // A broken socket shows at the next read, which can say so.
  if (!in_flight_) (void)send_next(now);
  return id;
}

Status CheckerClient::send_next(Instant now) {
  in_flight_ = false;
  overdue_ = false;
  deadline_ = Instant::never();
  if (waiting_.empty()) return Done{};
  const std::string text = encode(waiting_.front());
  ssize_t sent = -1;
  do {
    sent = ::send(fd_, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0) return system_error("ask", "sluice-h5", errno);
  in_flight_ = true;
  deadline_ = now + limit_ + reading_time(waiting_.front().path);
  return Done{};
}

Status CheckerClient::read(Instant now, std::vector<CheckReply>& replies) {
  if (!in_flight_ && !waiting_.empty()) {
    const Status sent = send_next(now);
    if (!sent) return sent;
  }
  while (true) {
    const ssize_t count = ::recv(fd_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Done{};
    if (count < 0) return system_error("read from", "sluice-h5", errno);
    if (count == 0) return Error{"sluice-h5 is gone: its socket was closed"};
    const auto reply = decode_check_reply({buffer_.data(), static_cast<size_t>(count)});
    const Status taken = reply ? take(now, *reply, replies) : give_up(now, reply.error(), replies);
    if (!taken) return taken;
  }
}

Status CheckerClient::take(Instant now, const CheckReply& reply, std::vector<CheckReply>& replies) {
  if (!in_flight_) return Done{};
  // What the helper could not read has no number that it could answer with.
  if (reply.id == 0 && reply.crashed_signal == 0 && !reply.busy) {
    return give_up(now, Error{reply.error}, replies);
  }
  const bool crashed = reply.id == 0 && reply.crashed_signal != 0;
  if (!crashed && reply.id != waiting_.front().id) return Done{};  // stale
  if (reply.busy) {
    if (!overdue_) deadline_ = std::max(deadline_, now + limit_);
    return Done{};
  }
  if (crashed && reply.crashed_signal == SIGKILL && !overdue_ && !asked_twice_) {
    asked_twice_ = true;
    return send_next(now);
  }
  replies.push_back(crashed ? failed(reply.crashed_signal) : reply);
  waiting_.pop_front();
  asked_twice_ = false;
  return send_next(now);
}

// A file that gets the better of its helper may have it say anything: that is an answer about this
// file. To wait for a better one would be to wait for the deadline.
Status CheckerClient::give_up(Instant now, const Error& error, std::vector<CheckReply>& replies) {
  if (!in_flight_) return Done{};
  replies.push_back(failed(0));
  replies.back().error = "the program that checks " + name_in_flight() +
                         " does not answer as it should: " + error.message + kLook;
  waiting_.pop_front();
  asked_twice_ = false;
  return send_next(now);
}

std::string CheckerClient::name_in_flight() const {
  return "'" + std::filesystem::path(waiting_.front().path).filename().string() + "'";
}

CheckReply CheckerClient::failed(int signal) const {
  const CheckRequest& request = waiting_.front();
  CheckReply reply;
  reply.id = request.id;
  reply.crashed_signal = signal;
  const std::string name = name_in_flight();
  const std::string look = kLook;
  if (overdue_) {
    reply.error = "checking " + name + " took longer than " +
                  std::to_string(limit_.ns / scheduler::seconds(1).ns) +
                  " s and was ended: the file may be damaged, its file system slow" + look;
  } else if (signal == kNotStarted) {
    reply.error = name + " cannot be checked: sluice-h5 does not start; install it beside sluice";
  } else if (signal >= kExitCodeBase) {
    reply.error = "the program that checks " + name + " ended with code " +
                  std::to_string(signal - kExitCodeBase) + " before it had answered" + look;
  } else {
    reply.error = "the program that checks " + name + " crashed with signal " +
                  std::to_string(signal) +
                  ": the file is damaged in a way that HDF5 does not survive" + look;
  }
  return reply;
}

bool CheckerClient::expired(Instant now) {
  if (now < deadline_) return false;
  deadline_ = Instant::never();
  overdue_ = true;
  return true;
}

}  // namespace sluice::io
