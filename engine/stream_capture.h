// What one stream of an attempt wrote: its first and last bytes, in bounded space, in a memory
// file, so that the launcher itself stays small (a child's reported peak memory starts at that of
// the process it was forked from) and that others may read it meanwhile (engine/live_stream.h). Up
// to kInlineStreamBytes are kept here too, to be handed over without a file. Owned by an
// AttemptProcess; one thread. Test: tests/engine/launcher_test.cpp
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "engine/launch_protocol.h"
#include "io/file_descriptor.h"

namespace sluice::engine {

class StreamCapture {
 public:
  // The memory file's, for those who look for it.
  void set_name(std::string name) { name_ = std::move(name); }
  void append(std::string_view bytes);
  // All that was written, inline if short, else in `file`. If `file` cannot be written, the first
  // bytes inline and the rest counted as dropped.
  [[nodiscard]] launch::Stream finish(const std::filesystem::path& file) const;

 private:
  [[nodiscard]] bool write_kept(std::string_view bytes);
  [[nodiscard]] bool write_file(const std::filesystem::path& file) const;
  [[nodiscard]] bool copy_range(int64_t offset, int64_t length, int to) const;
  [[nodiscard]] std::string last_bytes(int64_t count) const;

  std::string name_ = "sluice-stream";
  std::string start_;        // the first kInlineStreamBytes
  io::FileDescriptor kept_;  // open once there is a byte: head at its place, then the ring
  bool broken_ = false;      // no memory file: only start_ is kept
  int64_t bytes_ = 0;
};

}  // namespace sluice::engine
