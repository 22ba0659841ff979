// The transport between real ranks. Run by tests/mpi/run.sh:
//   contract         the contract test, for 3 ranks or more
//   death VICTIM FILE source|both   rank VICTIM dies by SIGKILL in the middle of the traffic, as a
//                    source of large messages, or also as their receiver; the others, who learn of
//                    it when FILE appears, go on
//   profile EXPECTED the session's profile is EXPECTED, and rank and size are those of the launcher
// Exit code 0 and "rank N: ok" when all holds.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "io/mpi_session.h"
#include "io/transport_mpi.h"
#include "tests/io/transport_contract.h"
#include "tests/mpi/stopwatch.h"

namespace {

using sluice::io::Bytes;
using sluice::io::Channel;
using sluice::io::MpiSession;
using sluice::io::MpiTransport;
using sluice::scheduler::WorkerId;
namespace contract = sluice::io::contract;
using sluice::test::Stopwatch;

constexpr double kDeadlineSeconds = 120;
constexpr auto kBarrierLimit = sluice::scheduler::seconds(120);

int report(const MpiSession& session, const contract::Problems& problems) {
  for (const std::string& problem : problems) {
    std::fprintf(stderr, "rank %d: %s\n", session.mpi_rank(), problem.c_str());
  }
  if (problems.empty()) std::printf("rank %d: ok\n", session.mpi_rank());
  return problems.empty() ? 0 : 1;
}

int run_contract(MpiSession& session) {
  MpiTransport transport(session);
  contract::Problems problems;
  for (const auto& make_end :
       {contract::make<contract::OrderedEnd>, contract::make<contract::UrgentEnd>,
        contract::make<contract::ForgetEnd>}) {
    const Stopwatch watch;
    const auto found =
        contract::run({&transport}, make_end, [&] { return watch.seconds() > kDeadlineSeconds; });
    problems.insert(problems.end(), found.begin(), found.end());
    if (!session.barrier(kBarrierLimit)) problems.push_back("a rank did not reach the barrier");
  }
  return report(session, problems);
}

// Every rank keeps a few requests (small, control) at every other; each is answered by 3 MiB of
// bulk. The victim dies in the middle of it; its guard then leaves a file.
class Traffic {
 public:
  Traffic(MpiTransport& transport, size_t victim, bool victim_asks, std::string death_file)
      : transport_(transport),
        victim_(victim),
        victim_asks_(victim_asks),
        death_file_(std::move(death_file)),
        asked_(transport.size(), 0),
        answers_(transport.size(), 0),
        wanted_(transport.size(), 0) {}

  void ask_all() {
    if (is_victim() && !victim_asks_) return;
    for (size_t peer = 0; peer < transport_.size(); ++peer) {
      for (int i = 0; peer != transport_.self().index() && i < kInFlight; ++i) ask(WorkerId(peer));
    }
  }
  [[nodiscard]] std::string describe() const {
    std::string text = std::string(forgotten_ ? "victim forgotten" : "victim not forgotten") +
                       (said_ ? ", goodbye said" : "") + ", " + std::to_string(goodbyes_) +
                       " goodbyes heard, " + std::to_string(transport_.pending()) +
                       " sends pending, answers had/asked:";
    for (size_t peer = 0; peer < answers_.size(); ++peer) {
      text += ' ' + std::to_string(answers_[peer]) + '/' + std::to_string(asked_[peer]);
    }
    return text;
  }
  // Until each survivor has answered enough after the victim's death.
  bool serve() {
    const Stopwatch whole;
    while (!finished() && whole.seconds() < kDeadlineSeconds) {
      const size_t received = transport_.poll(
          [&](WorkerId from, Channel channel, std::span<const std::byte> bytes) {
            handle(from, channel, bytes.size());
          },
          16);
      if (received == 0) std::this_thread::yield();
      if (!forgotten_ && ::access(death_file_.c_str(), F_OK) == 0) forget_victim();
    }
    return finished();
  }

 private:
  static constexpr int kInFlight = 3;
  static constexpr size_t kAnswersBeforeDeath = 60;
  static constexpr size_t kAnswersAfterDeath = 20;

  void ask(WorkerId peer) {
    ++asked_[peer.index()];
    transport_.send(peer, Channel::kControl, Bytes(8));
  }
  [[nodiscard]] bool is_victim() const { return transport_.self().index() == victim_; }
  void handle(WorkerId from, Channel channel, size_t size) {
    if (channel == Channel::kControl) {
      if (size == 1) ++goodbyes_;
      if (size == 8) answer(from);
      return;
    }
    ++answers_[from.index()];
    if (!enough(from.index())) ask(from);
    if (forgotten_) say_goodbye();
  }
  void answer(WorkerId from) {
    transport_.send(from, Channel::kBulk, Bytes(3U << 20U));
    if (is_victim() && ++answered_ == kAnswersBeforeDeath) std::raise(SIGKILL);
  }
  void forget_victim() {
    forgotten_ = true;
    transport_.forget(WorkerId(victim_));
    // From each peer so many more: a peer on this node has given far more by now than one behind a
    // network ever could.
    for (size_t peer = 0; peer < answers_.size(); ++peer) {
      wanted_[peer] = answers_[peer] + kAnswersAfterDeath;
    }
  }
  [[nodiscard]] bool is_survivor_peer(size_t peer) const {
    return peer != victim_ && peer != transport_.self().index();
  }
  [[nodiscard]] bool enough(size_t peer) const {
    return forgotten_ && asked_[peer] >= wanted_[peer];
  }
  // Only when nothing is on its way to this rank any more: who leaves earlier leaves half messages.
  void say_goodbye() {
    if (said_) return;
    for (size_t peer = 0; peer < answers_.size(); ++peer) {
      if (is_survivor_peer(peer) && (!enough(peer) || answers_[peer] != asked_[peer])) return;
    }
    said_ = true;
    for (size_t peer = 0; peer < answers_.size(); ++peer) {
      if (is_survivor_peer(peer)) transport_.send(WorkerId(peer), Channel::kControl, Bytes(1));
    }
  }
  [[nodiscard]] bool finished() const {
    return said_ && goodbyes_ == transport_.size() - 2 && transport_.pending() == 0;
  }

  MpiTransport& transport_;
  size_t victim_;
  bool victim_asks_;
  std::string death_file_;
  std::vector<size_t> asked_;
  std::vector<size_t> answers_;
  std::vector<size_t> wanted_;  // per peer; counts once the victim is forgotten
  size_t answered_ = 0;
  size_t goodbyes_ = 0;
  bool forgotten_ = false;
  bool said_ = false;
};

int run_death(MpiSession& session, size_t victim, bool victim_asks, const std::string& death_file) {
  MpiTransport transport(session);
  Traffic traffic(transport, victim, victim_asks, death_file);
  traffic.ask_all();
  contract::Problems problems;
  if (!traffic.serve()) problems.push_back("gave up; " + traffic.describe());
  return report(session, problems);
}

int check_profile(const MpiSession& session, std::string_view expected) {
  contract::Problems problems;
  if (session.profile() != expected) {
    problems.push_back("profile is '" + std::string(session.profile()) + "', expected '" +
                       std::string(expected) + "'; " + session.profile_problem());
  }
  if (session.mpi_rank() != MpiSession::environment_rank()) {
    problems.push_back("rank is not the launcher's");
  }
  if (session.node_rank() < 0 || session.node_size() > session.size()) {
    problems.push_back("place on the node makes no sense");
  }
  return report(session, problems);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) {
    std::fprintf(stderr, "usage: contract | death VICTIM FILE source|both | profile EXPECTED\n");
    return 2;
  }
  if (const auto world = MpiSession::check_world(MpiSession::launched_by_mpi() ? 2 : 1); !world) {
    std::fprintf(stderr, "%s\n", world.error().message.c_str());
    return 3;
  }
  auto session = MpiSession::start();
  if (!session) {
    std::fprintf(stderr, "%s\n", session.error().message.c_str());
    return 3;
  }
  int code = 2;
  if (words[0] == "contract") code = run_contract(**session);
  if (words[0] == "death" && words.size() == 4) {
    code = run_death(**session, std::stoul(words[1]), words[3] == "both", words[2]);
  }
  if (words[0] == "profile" && words.size() == 2) code = check_profile(**session, words[1]);
  (*session)->leave(code);
}
