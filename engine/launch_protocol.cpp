#include "engine/launch_protocol.h"

#include <tuple>

#include "io/codec_scheduler.h"

// The members of each message, in the order in which they travel.
namespace sluice::io {
namespace launch = engine::launch;

template <>
inline constexpr auto kMembers<launch::Start> =
    std::tuple{&launch::Start::attempt,           &launch::Start::argv,
               &launch::Start::environment,       &launch::Start::keep_environment,
               &launch::Start::working_directory, &launch::Start::stdin_path,
               &launch::Start::stdout_path,       &launch::Start::cpus,
               &launch::Start::stream_directory};
template <>
inline constexpr auto kMembers<launch::Signal> =
    std::tuple{&launch::Signal::attempt, &launch::Signal::kill};
template <>
inline constexpr auto kMembers<launch::KillChecker> = std::tuple<>{};
template <>
inline constexpr auto kMembers<launch::Quit> = std::tuple<>{};
template <>
inline constexpr auto kMembers<launch::Started> =
    std::tuple{&launch::Started::attempt, &launch::Started::pid};
template <>
inline constexpr auto kMembers<launch::Stream> =
    std::tuple{&launch::Stream::head, &launch::Stream::path, &launch::Stream::bytes,
               &launch::Stream::dropped_bytes, &launch::Stream::tail};
template <>
inline constexpr auto kMembers<launch::Exited> = std::tuple{
    &launch::Exited::attempt, &launch::Exited::start_error,    &launch::Exited::exit_code,
    &launch::Exited::signal,  &launch::Exited::usage,          &launch::Exited::out,
    &launch::Exited::err,     &launch::Exited::leftover_killed};
}  // namespace sluice::io

namespace sluice::engine {
namespace {

constexpr size_t kLengthBytes = 4;
constexpr uint32_t kFrameBytesMax = 1U << 30U;  // more than any command: the bytes are not ours

}  // namespace

std::vector<std::byte> encode_frame(const LaunchMessage& message) {
  std::vector<std::byte> frame(kLengthBytes);
  io::Writer writer(frame);
  writer.value(message);
  const auto length = static_cast<uint32_t>(frame.size() - kLengthBytes);
  for (size_t i = 0; i < kLengthBytes; ++i) {
    frame[i] = static_cast<std::byte>(length >> (8U * i));
  }
  return frame;
}

void FrameReader::push(std::span<const std::byte> bytes) {
  if (begin_ == buffer_.size()) {
    buffer_.clear();
    begin_ = 0;
  } else if (begin_ > buffer_.size() / 2) {
    buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(begin_));
    begin_ = 0;
  }
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

Expected<bool> FrameReader::next(LaunchMessage& message) {
  const auto rest = std::span<const std::byte>(buffer_).subspan(begin_);
  if (rest.size() < kLengthBytes) return false;
  const uint32_t length = io::Reader(rest).fixed32();
  if (length > kFrameBytesMax) {
    return Error{"a frame of " + std::to_string(length) + " bytes between rank and launcher; at " +
                 "most " + std::to_string(kFrameBytesMax) + " were expected"};
  }
  if (rest.size() < kLengthBytes + length) return false;
  io::Reader reader(rest.subspan(kLengthBytes, length));
  reader.value(message);
  begin_ += kLengthBytes + length;
  if (Status status = reader.finish("a message between rank and launcher"); !status) {
    return status.error();
  }
  return true;
}

}  // namespace sluice::engine
