#include "engine/live_stream.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>

#include "engine/launch_protocol.h"
#include "engine/stream_capture.h"
#include "io/file_descriptor.h"
#include "tests/support/temporary_folder.h"

using namespace sluice;
using engine::find_live_streams;
using engine::live_stream_name;
using engine::LiveStream;
using engine::read_live_stream;
using scheduler::AttemptId;

namespace {

// This process is a launcher, as far as its name goes.
class LauncherName {
 public:
  LauncherName() {
    ::prctl(PR_GET_NAME, before_.data());
    ::prctl(PR_SET_NAME, "sluice-launch");
  }
  ~LauncherName() { ::prctl(PR_SET_NAME, before_.data()); }
  LauncherName(const LauncherName&) = delete;
  LauncherName& operator=(const LauncherName&) = delete;

 private:
  std::array<char, 16> before_{};
};

engine::StreamCapture capture(const std::string& run, AttemptId attempt, bool err,
                              const std::string& bytes) {
  engine::StreamCapture stream;
  stream.set_name(live_stream_name(engine::live_stream_prefix(run), attempt, err));
  stream.append(bytes);
  return stream;
}

}  // namespace

TEST_CASE(
    "live streams: what attempts of a run have written is found by name, and by nobody else") {
  const test::TemporaryFolder folder;
  const std::string run = folder / "p.run";
  const std::string other = folder / "q.run";
  const auto out = capture(run, AttemptId::make(1, 7), false, "one\n");
  const auto err = capture(run, AttemptId::make(1, 7), true, "two\n");
  const auto later = capture(run, AttemptId::make(2, 1), false, "three\n");
  const auto foreign = capture(other, AttemptId::make(1, 7), false, "four\n");
  CHECK(find_live_streams(run).empty());
  const LauncherName name;
  const auto streams = find_live_streams(run + "/");
  REQUIRE(streams.size() == 3);
  CHECK(streams[0].attempt == AttemptId::make(1, 7));
  CHECK_FALSE(streams[0].err);
  CHECK(streams[1].err);
  CHECK(streams[2].attempt == AttemptId::make(2, 1));
  CHECK(read_live_stream(streams[0], 0) == "one\n");
  CHECK(read_live_stream(streams[1], 0) == "two\n");
  CHECK(read_live_stream(streams[1], 2) == "o\n");
  CHECK(read_live_stream(streams[1], 4).empty());
}

TEST_CASE("live streams: of a flood only the part that stays in its place is read") {
  const test::TemporaryFolder folder;
  const std::string run = folder / "p.run";
  const LauncherName name;
  const std::string piece(1U << 20U, 'x');
  auto stream = capture(run, AttemptId::make(1, 1), false, "begin ");
  const auto pieces = static_cast<size_t>(engine::kStreamKeptBytes) / piece.size() + 1;
  for (size_t i = 0; i < pieces; ++i) stream.append(piece);
  const auto streams = find_live_streams(run);
  REQUIRE(streams.size() == 1);
  const std::string text = read_live_stream(streams[0], 0);
  CHECK(text.size() == static_cast<size_t>(engine::kStreamKeptBytes / 2));
  CHECK(text.substr(0, 8) == "begin xx");
}

TEST_CASE("live streams: a stream whose process is gone reads as nothing") {
  const LiveStream stream{AttemptId::make(1, 1), false, "/proc/self/fd/1000000"};
  CHECK(read_live_stream(stream, 0).empty());
}
