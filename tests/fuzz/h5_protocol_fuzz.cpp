// Fuzzes the protocol between a worker and its `sluice-h5`, in both directions. The first byte says
// which:
//
//   'q'  the helper's end: request NUL content. The request is decoded; what it names is looked at
//        in a folder of the fuzzer, as an output with that content; the reply decodes to the same.
//   'v'  a value file's content, as each type: what is accepted is of its type, and one line of
//        JSON comes of it.
//   else the worker's end: datagrams of a length byte and so many bytes arrive while requests are
//        made and deadlines pass. Each request gets one reply, whatever came, and a sound helper
//        serves what is left.
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "io/checker.h"
#include "io/checker_client.h"
#include "io/numbers.h"
#include "tests/support/fuzz.h"

namespace {

using namespace sluice;
using scheduler::Instant;
using scheduler::OutputKind;
using sluice::test::must;

// Of this process, removed when it ends.
struct Folder {
  std::filesystem::path path;
  Folder() {
    const char* base = std::getenv("TMPDIR");
    std::string name = std::string(base == nullptr ? "/tmp" : base) + "/fuzz_h5.XXXXXX";
    must(::mkdtemp(name.data()) != nullptr, "a folder can be made");
    path = name;
    std::filesystem::create_directory(path / "d");
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }
};

const std::filesystem::path& folder() {
  static const Folder kFolder;
  return kFolder.path;
}

void write_content(std::string_view content) {
  std::ofstream(folder() / "x", std::ios::binary) << content;
  std::ofstream(folder() / "d" / "x", std::ios::binary) << content;
}

// -- the helper's end

void check_same(const io::CheckReply& sent, const io::CheckReply& got) {
  must(got.id == sent.id && got.ok == sent.ok, "a reply arrives for its request");
  must(sent.ok || (!sent.error.empty() && !got.error.empty()), "a refusal says why");
  must(!sent.ok || (got.bytes == sent.bytes && got.content == sent.content &&
                    got.value == sent.value && got.mode == sent.mode),
       "a reply arrives as it was sent");
}

void serve(std::string_view text) {
  const size_t end = std::min(text.find('\0'), text.size());
  const auto request = io::decode_check_request(text.substr(0, end));
  if (!request.ok()) {
    must(!request.error().message.empty(), "a refused request is told");
    return;
  }
  must(!request->path.empty() && request->path.find('\0') == std::string::npos,
       "a path is one that the system can be asked for");
  const auto again = io::decode_check_request(io::encode(*request));
  must(again.ok() && again->id == request->id && again->path == request->path &&
           again->kind == request->kind && again->value_type == request->value_type,
       "a request is encoded and decoded to the same");
  write_content(text.substr(std::min(end + 1, text.size())));
  io::CheckRequest moved = *request;
  moved.path = folder() / (request->kind == OutputKind::kDir ? "d" : "x");
  if (request->path.size() % 7 == 0) moved.path += "missing";
  const io::CheckReply reply = io::check_plain(moved);
  const std::string encoded = io::encode(reply);
  must(encoded.size() <= io::kCheckMessageBytesMax, "a reply of a small file fits a datagram");
  const auto back = io::decode_check_reply(encoded);
  must(back.ok(), "a reply is understood");
  check_same(reply, *back);
}

// -- values

void check_value(std::string_view content, io::ValueType type) {
  const auto value = io::check_value_text(content, type);
  if (!value.ok()) {
    must(!value.error().message.empty(), "a refused value is told");
    return;
  }
  const std::string line = io::value_to_json(*value, type);
  must(line.find('\n') == std::string::npos, "a value is one line of a list file");
  const bool pythons = line == "NaN" || line == "Infinity" || line == "-Infinity";
  if (type == io::ValueType::kFloat && pythons) return;
  const auto json = nlohmann::json::parse(line, nullptr, false);
  switch (type) {
    case io::ValueType::kInt:
      must(json.is_number_integer() && io::parse_int(*value) == json.get<int64_t>(),
           "an int keeps its value");
      break;
    case io::ValueType::kFloat:
      must(json.is_number(), "a float is a number");
      break;
    case io::ValueType::kBool:
      must(json.is_boolean(), "a bool is true or false");
      break;
    case io::ValueType::kString:
      must(json.is_string() && json.get<std::string>() == *value, "a text keeps its bytes");
      break;
    case io::ValueType::kList:
      must(json.is_array(), "a list is an array");
      break;
  }
}

void check_values(std::string_view content) {
  for (const auto type : {io::ValueType::kInt, io::ValueType::kFloat, io::ValueType::kBool,
                          io::ValueType::kString, io::ValueType::kList}) {
    check_value(content, type);
  }
}

// -- the worker's end

class Worker {
 public:
  Worker() : client_(make_pair(ends_)) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() {
    for (const int fd : ends_) ::close(fd);
  }

  void step(uint8_t length, std::string_view datagram) {
    now_ = now_ + scheduler::seconds(length);
    if (length % 3 == 0 && asked_.size() < 8) {
      const std::string path = "/no/such/folder/" + std::to_string(length);
      asked_.insert(client_.request(now_, {0, path, OutputKind::kFile, io::ValueType::kInt}));
    }
    if (client_.expired(now_)) send(R"({"id":0,"crashed":9})");  // as the launcher does
    if (!datagram.empty()) send(datagram);
    read();
  }
  // From here on the helper is sound: it answers whatever is in the socket.
  void finish() {
    for (int round = 0; client_.pending() > 0; ++round) {
      must(round < 64, "a sound helper ends all requests");
      if (!answer_one()) send(R"({"id":0,"crashed":11})");
      read();
    }
    must(asked_.empty(), "each request got its reply");
  }

 private:
  static int make_pair(std::array<int, 2>& ends) {
    must(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0, "a socket");
    return ends[0];
  }
  void send(std::string_view text) {
    (void)::send(ends_[1], text.data(), text.size(), MSG_DONTWAIT);
  }
  void read() {
    std::vector<io::CheckReply> replies;
    (void)client_.read(now_, replies);
    for (const io::CheckReply& reply : replies) {
      must(asked_.erase(reply.id) == 1, "a reply answers a request, once");
      must(reply.ok || !reply.error.empty(), "a failed check says why");
      must(reply.bytes >= 0 && reply.mode <= 07777, "sizes and modes are possible ones");
    }
  }
  bool answer_one() {
    std::array<char, 4096> text{};
    const ssize_t count = ::recv(ends_[1], text.data(), text.size(), MSG_DONTWAIT);
    if (count <= 0) return false;
    const auto request = io::decode_check_request({text.data(), static_cast<size_t>(count)});
    must(request.ok(), "what a worker asks is understood");
    io::CheckReply reply;
    reply.id = request->id;
    reply.ok = true;
    send(io::encode(reply));
    return true;
  }

  std::array<int, 2> ends_{};
  io::CheckerClient client_;
  Instant now_ = Instant{} + scheduler::seconds(1);
  std::set<uint64_t> asked_;
};

void talk(std::string_view script) {
  Worker worker;
  for (int steps = 0; !script.empty() && steps < 100; ++steps) {
    const auto length = static_cast<uint8_t>(script.front());
    const std::string_view datagram = script.substr(1, length);
    worker.step(length, datagram);
    script.remove_prefix(1 + datagram.size());
  }
  worker.finish();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return -1;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'q':
      serve(text);
      break;
    case 'v':
      check_values(text);
      break;
    default:
      talk(text);
  }
  return 0;
}
