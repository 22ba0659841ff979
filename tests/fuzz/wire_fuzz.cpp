// Fuzzes what processes say to each other: messages, events, graphs, the launcher's frames, the
// checker's requests and replies. The first byte says which. What decodes is encoded again, and
// that decodes to the same.
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/launch_protocol.h"
#include "io/checker.h"
#include "io/wire.h"
#include "tests/support/fuzz.h"

namespace {

using namespace sluice;

template <class Decoded, class Encode, class Decode>
void check_again(const Decoded& decoded, const Encode& encode, const Decode& decode) {
  if (!decoded.ok()) return;
  const auto bytes = encode(*decoded);
  const auto again = decode(bytes);
  test::must(again.ok(), "what was encoded decodes");
  test::must(encode(*again) == bytes, "and to the same");
}

void read_frames(std::span<const std::byte> bytes) {
  engine::FrameReader reader;
  // In two pushes, as a stream may come.
  reader.push(bytes.first(bytes.size() / 2));
  reader.push(bytes.subspan(bytes.size() / 2));
  engine::LaunchMessage message;
  for (size_t count = 0;; ++count) {
    const auto more = reader.next(message);
    if (!more.ok() || !*more) return;
    test::must(count <= bytes.size(), "each frame uses bytes");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return -1;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 6) {
    case 0:
      check_again(
          io::decode(bytes), [](const io::Message& message) { return io::encode(message); },
          [](std::span<const std::byte> encoded) { return io::decode(encoded); });
      break;
    case 1:
      check_again(io::decode_event(bytes), io::encode_event, io::decode_event);
      break;
    case 2:
      check_again(io::decode_graph(bytes), io::encode_graph, io::decode_graph);
      break;
    case 3:
      read_frames(bytes);
      break;
    case 4:
      (void)io::decode_check_request(text);
      break;
    default:
      (void)io::decode_check_reply(text);
  }
  return 0;
}
