// The trace: every input of the core, for replay at a desk. `trace.bin`: the magic "SLTRACE3", then
// blocks [u32 length of the payload, little-endian] [u8 kind] [payload]:
//
//   G graph (io/wire)        O options (io/codec_scheduler.h)      both first, once
//   E i64 now, event         S i64 now: a schedule call            D u64 digest, after each S
//   Z the trace was cut here because it reached its bound or the disk was full; nothing follows
//
// now and digest are eight bytes, little-endian. Never synced: the end may be torn. Writer: the I/O
// thread; event_block and schedule_block: any thread. Test: tests/io/trace_test.cpp
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/files.h"
#include "io/transport.h"
#include "scheduler/event.h"
#include "scheduler/expected.h"
#include "scheduler/options.h"

namespace sluice::io {

class TraceWriter {
 public:
  [[nodiscard]] static Expected<TraceWriter> create(Files& files, const std::filesystem::path& file,
                                                    const scheduler::Graph& graph,
                                                    const scheduler::CoreOptions& options,
                                                    uint64_t bytes_max);
  // Encoded on the control thread (cheap), appended on the I/O thread.
  [[nodiscard]] static Bytes event_block(scheduler::Instant now, const scheduler::Event& event);
  [[nodiscard]] static Bytes schedule_block(scheduler::Instant now, uint64_t digest);
  // At its bound, and after a failed append (told once), the trace ends: later blocks are dropped.
  Status append(const Bytes& block);

 private:
  explicit TraceWriter(std::unique_ptr<File> file, uint64_t bytes_max)
      : file_(std::move(file)), bytes_max_(bytes_max) {}
  std::unique_ptr<File> file_;
  uint64_t bytes_max_;
  uint64_t bytes_ = 0;
  bool cut_ = false;
};

// A trace read back, block by block.
struct TraceBlock {
  enum class Kind : uint8_t { kEvent, kSchedule, kDigest, kCut } kind = Kind::kEvent;
  scheduler::Instant now;
  scheduler::Event event;
  uint64_t digest = 0;
};
struct Trace {
  scheduler::Graph graph;
  scheduler::CoreOptions options;
  std::vector<TraceBlock> blocks;
  bool torn = false;  // the last block was incomplete: it is left out
};
[[nodiscard]] Expected<Trace> read_trace(const std::filesystem::path& file);
[[nodiscard]] Expected<Trace> read_trace(Files& files, const std::filesystem::path& file);

}  // namespace sluice::io
