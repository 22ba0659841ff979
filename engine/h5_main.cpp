// sluice-h5: opens user files for a worker, so that a hostile one ends this process and not a rank.
// The protocol is io/checker.h. For people: sluice-h5 --describe FILE. For sluice shell: --view.
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/checker.h"
#include "io/fault.h"
#include "io/files.h"
#include "io/hdf5.h"

namespace {

using namespace sluice;

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;
constexpr int kEnvironment = 3;

io::CheckReply failed(uint64_t id, std::string error) {
  io::CheckReply reply;
  reply.id = id;
  reply.error = std::move(error);
  return reply;
}

io::CheckReply make_view(const io::CheckRequest& request, const std::function<void()>& progress) {
  const Expected<std::string> list = io::real_files().read(request.sources);
  if (!list) return failed(request.id, list.error().message);
  const auto sources = io::decode_sources(*list);
  if (!sources) return failed(request.id, sources.error().message);
  const auto bytes = io::make_h5_view(*sources, request.view, request.path, progress);
  if (!bytes) return failed(request.id, bytes.error().message);
  io::CheckReply reply;
  reply.id = request.id;
  reply.ok = true;
  reply.bytes = *bytes;
  return reply;
}

io::CheckReply check(const io::CheckRequest& request, const std::function<void()>& progress) {
  if (!request.sources.empty()) return make_view(request, progress);
  io::CheckReply reply = io::check_plain(request, progress);
  if (!reply.ok || request.kind != scheduler::OutputKind::kH5) return reply;
  const Expected<std::string> description = io::describe_h5(request.path);
  if (!description) return failed(request.id, description.error().message);
  reply.description = *description;
  return reply;
}

io::CheckReply check_or_say_why(const io::CheckRequest& request,
                                const std::function<void()>& progress) {
  try {
    return check(request, progress);
  } catch (const std::exception& error) {  // memory, most likely asked for by a damaged size
    return failed(request.id, std::string("the file could not be read: ") + error.what());
  }
}

// Tells the worker once a second that it is at work on something large, not that it hangs.
class Busy {
 public:
  explicit Busy(uint64_t id) { reply_.id = id, reply_.busy = true; }
  void operator()() {
    const auto now = std::chrono::steady_clock::now();
    if (now < last_ + std::chrono::seconds(1)) return;
    last_ = now;
    const std::string text = io::encode(reply_);
    (void)::send(STDIN_FILENO, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

 private:
  io::CheckReply reply_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

io::CheckReply answer(std::string_view text) {
  const Expected<io::CheckRequest> request = io::decode_check_request(text);
  if (!request) return failed(0, request.error().message);
  return check_or_say_why(*request, Busy(request->id));
}

bool send_reply(const io::CheckReply& reply) {
  const std::string text = io::encode(reply);
  while (true) {
    const ssize_t sent = ::send(STDIN_FILENO, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent >= 0) return true;
    if (errno == EINTR) continue;
    if (errno != EMSGSIZE || !reply.ok) return false;
    return send_reply(failed(reply.id,
                             "the value has too many control characters to be passed on"
                             "; declare the output as a file"));
  }
}

int serve() {
  // A crash is expected now and then: it leaves no core file.
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const int bytes = static_cast<int>(io::kCheckMessageBytesMax);
  ::setsockopt(STDIN_FILENO, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
  std::vector<char> buffer(io::kCheckMessageBytesMax);
  while (true) {
    const ssize_t count = ::recv(STDIN_FILENO, buffer.data(), buffer.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) return kDone;
    if (count < 0) {
      std::fprintf(stderr,
                   "sluice-h5: error: descriptor 0 is not the socket of a worker (%s); for people: "
                   "sluice-h5 --describe FILE\n",
                   std::strerror(errno));
      return kEnvironment;
    }
    SLUICE_FAULT_POINT("h5.asked");
    if (!send_reply(answer({buffer.data(), static_cast<size_t>(count)}))) return kEnvironment;
    SLUICE_FAULT_POINT("h5.answered");
  }
}

// People name inputs of an attempt, which are links.
int describe(const char* file) {
  std::array<char, PATH_MAX> target{};
  const char* path = ::realpath(file, target.data()) == nullptr ? file : target.data();
  const io::CheckReply reply =
      check_or_say_why({1, path, scheduler::OutputKind::kH5, io::ValueType::kString}, {});
  if (!reply.ok) {
    std::fprintf(stderr, "sluice-h5: error: %s\n", reply.error.c_str());
    return kFailed;
  }
  std::printf("%s\n", reply.description.c_str());
  return kDone;
}

// As a worker asks, but once and on the command line.
int view(const char* text) {
  const io::CheckReply reply = answer(text);
  if (reply.ok) return kDone;
  std::fprintf(stderr, "sluice-h5: error: %s\n", reply.error.c_str());
  return kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) return serve();
  if (argc == 3 && std::string_view(argv[1]) == "--describe") return describe(argv[2]);
  if (argc == 3 && std::string_view(argv[1]) == "--view") return view(argv[2]);
  const bool help = argc == 2 && std::string_view(argv[1]) == "--help";
  std::fprintf(help ? stdout : stderr,
               "usage: sluice-h5 --describe FILE   check an HDF5 file and say what it holds\n"
               "       sluice-h5                   serve a worker of sluice on descriptor 0\n");
  return help ? kDone : kUsage;
}
