#include "io/trace.h"

#include <string_view>
#include <utility>

#include "io/codec_scheduler.h"
#include "io/wire.h"

namespace sluice::io {

namespace {

constexpr std::string_view kMagic = "SLTRACE3";
constexpr size_t kHeadBytes = 5;  // length and kind

Bytes block_of(char kind, const Bytes& payload) {
  Bytes out;
  out.reserve(kHeadBytes + payload.size());
  Writer writer(out);
  writer.fixed32(static_cast<uint32_t>(payload.size()));
  writer.byte(static_cast<uint8_t>(kind));
  writer.raw(payload.data(), payload.size());
  return out;
}

Bytes fixed(uint64_t v) {
  Bytes out;
  Writer(out).fixed64(v);
  return out;
}

std::string_view text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Error damaged(const std::filesystem::path& file, size_t byte, const std::string& why) {
  return {"the trace '" + file.string() + "' is damaged: the block at byte " +
          std::to_string(byte) + " cannot be used: " + why +
          "; the run itself is not affected, only its replay"};
}

class TraceReader {
 public:
  TraceReader(const std::filesystem::path& file, std::span<const std::byte> bytes)
      : file_(file), bytes_(bytes), position_(kMagic.size()) {}

  Expected<Trace> read() {
    bool cut = false;
    while (!cut && position_ < bytes_.size()) {
      Reader head(bytes_.subspan(position_));
      const uint32_t length = head.fixed32();
      const char kind = static_cast<char>(head.byte());
      const auto payload = head.raw(length);
      if (!head.ok()) {
        trace_.torn = true;
        break;
      }
      const Status taken = take(kind, payload);
      if (!taken) return damaged(file_, position_, taken.error().message);
      position_ += kHeadBytes + length;
      cut = kind == 'Z';
    }
    if (!has_graph_ || !has_options_) {
      return damaged(file_, position_, "the graph and the options were expected before it");
    }
    return std::move(trace_);
  }

 private:
  Status take(char kind, std::span<const std::byte> payload) {
    if (kind == 'G') return take_graph(payload);
    if (kind == 'O') return take_options(payload);
    TraceBlock block;
    Reader reader(payload);
    switch (kind) {
      case 'E':
        return take_event(payload);
      case 'S':
        block.kind = TraceBlock::Kind::kSchedule;
        block.now.ns = static_cast<int64_t>(reader.fixed64());
        break;
      case 'D':
        block.kind = TraceBlock::Kind::kDigest;
        block.digest = reader.fixed64();
        break;
      case 'Z':
        block.kind = TraceBlock::Kind::kCut;
        break;
      default:
        return Error{"its kind is " + std::to_string(static_cast<unsigned char>(kind)) +
                     ", expected one of G O E S D Z"};
    }
    trace_.blocks.push_back(std::move(block));
    return reader.finish("its payload");
  }
  Status take_event(std::span<const std::byte> payload) {
    Reader reader(payload);
    TraceBlock block;
    block.now.ns = static_cast<int64_t>(reader.fixed64());
    if (!reader.ok()) return reader.finish("its time");
    auto event = decode_event(payload.subspan(reader.position()));
    if (!event) return event.error();
    block.event = std::move(*event);
    trace_.blocks.push_back(std::move(block));
    return Done{};
  }
  Status take_graph(std::span<const std::byte> payload) {
    auto graph = decode_graph(payload);
    if (!graph) return graph.error();
    trace_.graph = std::move(*graph);
    has_graph_ = true;
    return Done{};
  }
  Status take_options(std::span<const std::byte> payload) {
    Reader reader(payload);
    reader.value(trace_.options);
    has_options_ = true;
    return reader.finish("its options");
  }

  const std::filesystem::path& file_;
  std::span<const std::byte> bytes_;
  size_t position_;
  Trace trace_;
  bool has_graph_ = false;
  bool has_options_ = false;
};

}  // namespace

Expected<TraceWriter> TraceWriter::create(Files& files, const std::filesystem::path& file,
                                          const scheduler::Graph& graph,
                                          const scheduler::CoreOptions& options,
                                          uint64_t bytes_max) {
  // A trace is of one submission: an older one gives way.
  const Status removed = files.remove(file);
  if (!removed) return removed.error();
  auto opened = files.open(file, Files::Open::kCreateNew);
  if (!opened) return opened.error();
  TraceWriter writer(std::move(*opened), bytes_max);
  std::string head(kMagic);
  head += text_of(block_of('G', encode_graph(graph)));
  Bytes encoded_options;
  Writer(encoded_options).value(options);
  head += text_of(block_of('O', encoded_options));
  const Status written = writer.file_->append(head);
  if (!written) return written.error();
  writer.bytes_ = head.size();
  return writer;
}

Bytes TraceWriter::event_block(scheduler::Instant now, const scheduler::Event& event) {
  Bytes payload = fixed(static_cast<uint64_t>(now.ns));
  const Bytes encoded = encode_event(event);
  payload.insert(payload.end(), encoded.begin(), encoded.end());
  return block_of('E', payload);
}

Bytes TraceWriter::schedule_block(scheduler::Instant now, uint64_t digest) {
  Bytes out = block_of('S', fixed(static_cast<uint64_t>(now.ns)));
  const Bytes after = block_of('D', fixed(digest));
  out.insert(out.end(), after.begin(), after.end());
  return out;
}

Status TraceWriter::append(const Bytes& block) {
  if (cut_) return Done{};
  cut_ = bytes_ + block.size() + kHeadBytes > bytes_max_;
  const Bytes written = cut_ ? block_of('Z', {}) : block;
  const Status appended = file_->append(text_of(written));
  if (appended) {
    bytes_ += written.size();
    return appended;
  }
  cut_ = true;
  // What is torn now is the end; where even that cannot be cut off, readers leave it out.
  const Status truncated = file_->truncate(bytes_);
  if (truncated) (void)file_->append(text_of(block_of('Z', {}))).ok();
  return appended;
}

Expected<Trace> read_trace(Files& files, const std::filesystem::path& file) {
  const auto content = files.read(file);
  if (!content) return content.error();
  if (!content->starts_with(kMagic)) {
    return Error{"'" + file.string() + "' is not a trace: it does not begin with '" +
                 std::string(kMagic) + "'; give the trace.bin of a run directory"};
  }
  return TraceReader(file, std::as_bytes(std::span(*content))).read();
}

Expected<Trace> read_trace(const std::filesystem::path& file) {
  return read_trace(real_files(), file);
}

}  // namespace sluice::io
