#include "engine/stream_capture.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace sluice::engine {
namespace {

constexpr int64_t kHeadBytes = kStreamKeptBytes / 2;
constexpr int64_t kRingBytes = kStreamKeptBytes - kHeadBytes;
constexpr int64_t kTailBytes = 2048;

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

bool write_all_at(int fd, std::string_view bytes, int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += written;
  }
  return true;
}

// Where byte `position` of the stream is in the memory file.
int64_t place_of(int64_t position) {
  return position < kHeadBytes ? position : kHeadBytes + (position - kHeadBytes) % kRingBytes;
}

// How many bytes from `position` on lie contiguously.
int64_t run_at(int64_t position) {
  return position < kHeadBytes ? kHeadBytes - position : kStreamKeptBytes - place_of(position);
}

// The end of `text`, from the start of a line if there is one in it.
std::string last_lines(std::string text, bool is_whole) {
  if (is_whole) return text;
  const size_t end_of_line = text.find('\n');
  if (end_of_line + 1 < text.size() && end_of_line != std::string::npos) {
    text.erase(0, end_of_line + 1);
  }
  return text;
}

}  // namespace

void StreamCapture::append(std::string_view bytes) {
  if (bytes.empty()) return;
  const auto start_room = static_cast<size_t>(kInlineStreamBytes) - start_.size();
  start_.append(bytes.substr(0, std::min(bytes.size(), start_room)));
  if (!kept_.open() && !broken_) {
    kept_ = io::FileDescriptor(::memfd_create(name_.c_str(), MFD_CLOEXEC));
    broken_ = !kept_.open();
  }
  if (!broken_) broken_ = !write_kept(bytes);
  bytes_ += static_cast<int64_t>(bytes.size());
}

bool StreamCapture::write_kept(std::string_view bytes) {
  int64_t position = bytes_;
  while (!bytes.empty()) {
    const auto piece =
        static_cast<size_t>(std::min(run_at(position), static_cast<int64_t>(bytes.size())));
    if (!write_all_at(kept_.get(), bytes.substr(0, piece), place_of(position))) return false;
    bytes.remove_prefix(piece);
    position += static_cast<int64_t>(piece);
  }
  return true;
}

bool StreamCapture::copy_range(int64_t offset, int64_t length, int to) const {
  constexpr int64_t kPiece = 64LL << 10U;
  std::array<char, static_cast<size_t>(kPiece)> buffer;  // not initialised: pread fills it
  while (length > 0) {
    const ssize_t got =
        ::pread(kept_.get(), buffer.data(), static_cast<size_t>(std::min(kPiece, length)), offset);
    if (got <= 0 || !write_all(to, {buffer.data(), static_cast<size_t>(got)})) return false;
    offset += got;
    length -= got;
  }
  return true;
}

bool StreamCapture::write_file(const std::filesystem::path& file) const {
  const io::FileDescriptor to(::open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!to.open()) return false;
  if (bytes_ <= kStreamKeptBytes) return copy_range(0, bytes_, to.get());
  const int64_t ring_begin = place_of(bytes_);  // the oldest byte is the next to be overwritten
  const std::string gap = "\n[sluice: " + std::to_string(bytes_ - kStreamKeptBytes) +
                          " bytes are not kept here, between the first and the last " +
                          std::to_string(kHeadBytes >> 20U) + " MiB]\n";
  return copy_range(0, kHeadBytes, to.get()) && write_all(to.get(), gap) &&
         copy_range(ring_begin, kStreamKeptBytes - ring_begin, to.get()) &&
         copy_range(kHeadBytes, ring_begin - kHeadBytes, to.get());
}

std::string StreamCapture::last_bytes(int64_t count) const {
  if (bytes_ <= kInlineStreamBytes || !kept_.open() || broken_) {
    return start_.substr(start_.size() - std::min(start_.size(), static_cast<size_t>(count)));
  }
  std::string result;
  int64_t position = bytes_ - std::min(bytes_, count);
  while (position < bytes_) {
    const int64_t piece = std::min(run_at(position), bytes_ - position);
    std::string part(static_cast<size_t>(piece), '\0');
    const ssize_t got = ::pread(kept_.get(), part.data(), part.size(), place_of(position));
    if (got != piece) break;
    result += part;
    position += piece;
  }
  return result;
}

launch::Stream StreamCapture::finish(const std::filesystem::path& file) const {
  launch::Stream stream;
  stream.bytes = bytes_;
  stream.tail = last_lines(last_bytes(kTailBytes), bytes_ <= kTailBytes);
  if (bytes_ > kInlineStreamBytes && kept_.open() && !broken_ && write_file(file)) {
    stream.path = file.string();
    stream.dropped_bytes = std::max<int64_t>(0, bytes_ - kStreamKeptBytes);
  } else {
    stream.head = start_;
    stream.dropped_bytes = bytes_ - static_cast<int64_t>(start_.size());
  }
  return stream;
}

}  // namespace sluice::engine
