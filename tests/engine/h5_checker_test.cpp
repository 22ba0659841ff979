// The real sluice-h5 over a real socket, this test being worker and launcher.
#include <doctest/doctest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>

#include "io/checker_client.h"
#include "io/sources.h"
#include "tests/support/h5_programs.h"
#include "tests/support/temporary_folder.h"

using namespace sluice;
using io::ValueType;
using scheduler::Instant;
using scheduler::OutputKind;
using sluice::test::read_text;
using sluice::test::spawn;
using sluice::test::TemporaryFolder;
using sluice::test::wait_for;
using sluice::test::write_text;
namespace fs = std::filesystem;

namespace {

const std::string kChecker = SLUICE_H5;

void make_h5(const std::string& kind, const fs::path& file) {
  test::make_h5(SLUICE_MAKE_H5, kind, file);
}

// A worker with its helper. As the launcher does, it holds the helper's end of the socket, starts
// the helper, says when it died and starts the next.
class Helper {
 public:
  Helper() : client_(make_pair(ends_)) { start(); }
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;
  ~Helper() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    for (const int fd : {pid_fd_, ends_[0], ends_[1]}) ::close(fd);
  }

  io::CheckReply check(const fs::path& file, OutputKind kind = OutputKind::kH5,
                       ValueType type = ValueType::kString) {
    client_.request(Instant{}, {0, file, kind, type});
    return wait();
  }

  // The helper dies before it has answered; its request is still in the socket when the next
  // starts.
  io::CheckReply check_and_crash(const fs::path& file) {
    ::kill(pid_, SIGSTOP);
    client_.request(Instant{}, {0, file, OutputKind::kH5, ValueType::kString});
    ::kill(pid_, SIGSEGV);
    ::kill(pid_, SIGCONT);
    return wait();
  }

 private:
  io::CheckReply wait() {
    std::vector<io::CheckReply> replies;
    while (replies.empty()) {
      std::array<pollfd, 2> wait = {pollfd{client_.fd(), POLLIN, 0}, pollfd{pid_fd_, POLLIN, 0}};
      constexpr int kHangsMs = 5000;
      if (::poll(wait.data(), wait.size(), kHangsMs) == 0) {
        CHECK(client_.expired(Instant::never()));
        ::kill(pid_, SIGKILL);
      }
      REQUIRE(client_.read(Instant{}, replies));
      if (replies.empty() && wait[1].revents != 0) restart();
    }
    return replies[0];
  }
  static int make_pair(std::array<int, 2>& ends) {
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
    return ends[0];
  }
  void start() {
    pid_ = spawn({kChecker}, ends_[1]);
    pid_fd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
    REQUIRE(pid_fd_ >= 0);
  }
  void restart() {
    const int status = wait_for(pid_);
    const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    ::close(pid_fd_);
    const std::string text = "{\"id\":0,\"crashed\":" + std::to_string(signal) + "}";
    REQUIRE(::send(ends_[1], text.data(), text.size(), 0) > 0);
    start();
  }

  std::array<int, 2> ends_{};
  pid_t pid_ = -1;
  int pid_fd_ = -1;
  io::CheckerClient client_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

uint64_t seed() {
  const char* given = std::getenv("SLUICE_SEED");
  return given == nullptr ? 20240611 : std::strtoull(given, nullptr, 10);
}

}  // namespace

TEST_CASE("sluice-h5: a good file is described and hashed") {
  const TemporaryFolder folder;
  make_h5("plain", folder / "field.h5");
  const io::CheckReply reply = Helper().check(folder / "field.h5");
  REQUIRE_MESSAGE(reply.ok, reply.error);
  CHECK(reply.description == "2 datasets: g/v f64[10], u f64[64,64]");
  CHECK(reply.bytes == static_cast<int64_t>(fs::file_size(folder / "field.h5")));
  CHECK(reply.content == io::hash_text(read_text(folder / "field.h5")));
}

TEST_CASE("sluice-h5: chunks, filters, strings, sparse and empty files are read") {
  const TemporaryFolder folder;
  Helper helper;
  const auto description = [&](const std::string& kind) {
    make_h5(kind, folder / kind);
    const io::CheckReply reply = helper.check(folder / kind);
    return reply.ok ? reply.description : "error: " + reply.error;
  };
  CHECK(description("compressed") == "1 dataset: u f64[1000,70]");
  CHECK(description("strings") == "1 dataset: names string[2]");
  CHECK(description("sparse") == "1 dataset: s f64[1000000,1000000]");
  CHECK(description("nothing") == "0 datasets");
  const std::string many = description("many");
  CHECK(many.starts_with("200 datasets: dataset_1000 f64[3], dataset_1001 f64[3]"));
  CHECK(many.ends_with(", …"));
  CHECK(many.size() <= 500);
}

TEST_CASE("sluice-h5: a file cut to 60 % is said to be cut") {
  const TemporaryFolder folder;
  make_h5("compressed", folder / "field.h5");
  fs::resize_file(folder / "field.h5", fs::file_size(folder / "field.h5") * 6 / 10);
  const io::CheckReply reply = Helper().check(folder / "field.h5");
  CHECK_FALSE(reply.ok);
  CHECK(contains(reply.error, "'field.h5' cannot be opened: truncated file"));
}

TEST_CASE("sluice-h5: a file whose writer died is said to be open for writing") {
  const TemporaryFolder folder;
  make_h5("unclosed", folder / "field.h5");
  const io::CheckReply reply = Helper().check(folder / "field.h5");
  CHECK_FALSE(reply.ok);
  CHECK(contains(reply.error, "already open for write"));
}

TEST_CASE("sluice-h5: one damaged chunk is found and its dataset named") {
  const TemporaryFolder folder;
  make_h5("compressed", folder / "field.h5");
  std::string bytes = read_text(folder / "field.h5");
  bytes[bytes.size() - 100] ^= 1;  // in a chunk: they come last
  write_text(folder / "field.h5", bytes);
  const io::CheckReply reply = Helper().check(folder / "field.h5");
  CHECK_FALSE(reply.ok);
  CHECK(contains(reply.error, "'field.h5': dataset 'u' cannot be read: "));
}

TEST_CASE("sluice-h5: what is not HDF5 is shown by its first bytes") {
  const TemporaryFolder folder;
  Helper helper;
  write_text(folder / "text.h5", "a,b,c\n1,2,3\n");
  CHECK(helper.check(folder / "text.h5").error ==
        "'text.h5' is not an HDF5 file: it starts with 'a,b,c\\n1,2,3\\n'");
  write_text(folder / "empty.h5", "");
  CHECK(helper.check(folder / "empty.h5").error == "'empty.h5' is empty; expected an HDF5 file");
  std::mt19937_64 random(seed());
  std::string bytes(10'000, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  write_text(folder / "random.h5", bytes);
  CHECK(contains(helper.check(folder / "random.h5").error, "'random.h5' is not an HDF5 file"));
  fs::create_directory(folder / "folder.h5");
  CHECK(contains(helper.check(folder / "folder.h5").error, "is a directory; expected a regular"));
  CHECK(contains(helper.check(folder / "none.h5").error,
                 "no file 'none.h5' in the directory; it holds: empty.h5"));
}

TEST_CASE("sluice-h5: data in other files must be where every reader finds them") {
  const TemporaryFolder folder;
  Helper helper;
  const auto error = [&](const std::string& kind) {
    make_h5(kind, folder / kind);
    return helper.check(folder / kind).error;
  };
  CHECK(error("relative_link") ==
        "'relative_link': link 'x' points into 'other.h5', a relative path that breaks when this "
        "file is moved: write the data into this file, or make the other one an output of its own");
  CHECK(contains(error("missing_link"),
                 "link 'x' points into '/does/not/exist.h5', which cannot "
                 "be read: No such file"));
  CHECK(contains(error("missing_source"),
                 "dataset 'virtual' is virtual and takes its data from '/does/not/exist.h5'"));
}

TEST_CASE("sluice-h5: values and plain files are checked too") {
  const TemporaryFolder folder;
  Helper helper;
  write_text(folder / "score", "0.25\n");
  CHECK(helper.check(folder / "score", OutputKind::kValue, ValueType::kFloat).value == "0.25");
  CHECK(helper.check(folder / "score", OutputKind::kFile).bytes == 5);
  CHECK_FALSE(helper.check(folder / "score", OutputKind::kValue, ValueType::kBool).ok);
  write_text(folder / "text", std::string(65'000, 'x'));
  CHECK(helper.check(folder / "text", OutputKind::kValue).value.size() == 65'000);
  // Six bytes a character once encoded: more than a datagram may be long.
  write_text(folder / "control", std::string(65'000, '\x01'));
  const io::CheckReply control = helper.check(folder / "control", OutputKind::kValue);
  CHECK((control.ok || contains(control.error, "control characters")));
}

TEST_CASE("sluice-h5: a crash fails one check, and its late answer is not taken for the next") {
  const TemporaryFolder folder;
  make_h5("plain", folder / "a.h5");
  make_h5("nothing", folder / "b.h5");
  Helper helper;
  const io::CheckReply crashed = helper.check_and_crash(folder / "a.h5");
  CHECK_FALSE(crashed.ok);
  CHECK(crashed.crashed_signal == SIGSEGV);
  CHECK(contains(crashed.error, "the program that checks 'a.h5' crashed with signal 11"));
  CHECK(helper.check(folder / "b.h5").description == "0 datasets");
}

TEST_CASE("sluice-h5: files with changed bytes end in a reply, and the next good one passes") {
  const TemporaryFolder folder;
  make_h5("plain", folder / "good.h5");
  const std::string good = read_text(folder / "good.h5");
  Helper helper;
  std::mt19937_64 random(seed());
  INFO("SLUICE_SEED=" << seed());
  int accepted = 0;
  int rejected = 0;
  int crashed = 0;
  for (int round = 0; round < 100; ++round) {
    std::string bytes = good;
    // The first 2 KiB hold most of what steers the library.
    const size_t range = round % 2 == 0 ? std::min<size_t>(2048, bytes.size()) : bytes.size();
    for (uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
      bytes[random() % range] = static_cast<char>(random());
    }
    write_text(folder / "mutant.h5", bytes);
    const io::CheckReply reply = helper.check(folder / "mutant.h5");
    ++(reply.ok ? accepted : reply.crashed_signal != 0 ? crashed : rejected);
    CHECK(reply.ok == reply.error.empty());
  }
  MESSAGE("accepted " << accepted << ", rejected " << rejected << ", crashed " << crashed);
  CHECK(accepted + rejected + crashed == 100);
  CHECK(rejected > 0);
  CHECK(helper.check(folder / "good.h5").ok);
}

TEST_CASE("sluice-h5: files of other programs end in a reply") {
  const fs::path samples = fs::path(SLUICE_SOURCE_DIR) / "../shared/data/hdf5";
  if (!fs::is_directory(samples)) {
    MESSAGE("skipped: there is no folder with sample files beside the checkout");
    return;
  }
  Helper helper;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(samples)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    const io::CheckReply reply = helper.check(file);
    CAPTURE(file.filename());
    MESSAGE(file.filename().string() << ": " << (reply.ok ? reply.description : reply.error));
    CHECK(reply.crashed_signal == 0);
  }
  CHECK_FALSE(helper.check(samples / "notahdf5file.h5").ok);
}
