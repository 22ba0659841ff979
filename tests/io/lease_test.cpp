#include "io/lease.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

namespace sluice::io {
namespace {

using scheduler::Duration;
using scheduler::seconds;

const std::filesystem::path kRun = "/run";

// One process on one host of a small invented world. Sleeping moves its clock only.
class FakeHost final : public LeaseHost {
 public:
  FakeHost(std::string host, int64_t pid) {
    self_.host = std::move(host);
    self_.boot_id = "boot-1";
    self_.pid = pid;
    self_.start_time = 1000 + static_cast<uint64_t>(pid);
  }
  LeaseOwner self() override { return self_; }
  std::optional<uint64_t> start_time_of(int64_t pid) override {
    const auto found = processes.find(pid);
    return found == processes.end() ? std::nullopt : std::optional(found->second);
  }
  int64_t unix_time_ms() override { return 1'700'000'000'000 + now_.ns / 1'000'000; }
  scheduler::Instant now() override { return now_; }
  void sleep(Duration duration) override {
    CHECK(duration.ns > 0);
    now_ = now_ + duration;
    if (on_sleep) on_sleep();
  }

  LeaseOwner self_;
  std::map<int64_t, uint64_t> processes;  // on this host: pid -> start time
  std::function<void()> on_sleep;
  scheduler::Instant now_;
};

// Files of which link() does its work and then says EEXIST, as NFS does when an answer got lost.
class RepeatingLink final : public Files {
 public:
  explicit RepeatingLink(FakeFiles& files) : files_(files) {}
  Expected<std::unique_ptr<File>> open(const std::filesystem::path& path, Open how) override {
    return files_.open(path, how);
  }
  Expected<std::string> read(const std::filesystem::path& path) override {
    return files_.read(path);
  }
  Status replace(const std::filesystem::path& path, std::string_view content) override {
    return files_.replace(path, content);
  }
  Status rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    return files_.rename(from, to);
  }
  Status remove(const std::filesystem::path& path) override { return files_.remove(path); }
  Status link(const std::filesystem::path& from, const std::filesystem::path& to) override {
    (void)files_.link(from, to).ok();
    return Error{"File exists", EEXIST};
  }
  Expected<uint64_t> size(const std::filesystem::path& path) override { return files_.size(path); }
  Expected<std::vector<std::string>> list(const std::filesystem::path& folder) override {
    return files_.list(folder);
  }

 private:
  FakeFiles& files_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("lease: the first taker gets epoch 1, the next after a release gets 2, without a note") {
  FakeFiles files;
  FakeHost host("n1", 10);
  auto first = Lease::take(files, host, kRun, seconds(0));
  REQUIRE(first.ok());
  CHECK(first->epoch() == 1);
  CHECK(first->takeover_note().empty());
  REQUIRE(first->beat().ok());
  REQUIRE(first->release().ok());
  FakeHost other("n2", 77);
  const auto second = Lease::take(files, other, kRun, seconds(0));
  REQUIRE(second.ok());
  CHECK(second->epoch() == 2);
  CHECK(second->takeover_note().empty());
  // Only the current claim is left.
  CHECK(*files.list(kRun) == std::vector<std::string>{"lease.2", "lease.json"});
}

TEST_CASE("lease: a living owner on this host is named, with what to do") {
  FakeFiles files;
  FakeHost owner("n1", 10);
  owner.self_.batch_job = "4711";
  REQUIRE(Lease::take(files, owner, kRun, seconds(0)).ok());
  FakeHost taker("n1", 11);
  taker.processes[10] = 1010;
  const auto refused = Lease::take(files, taker, kRun, seconds(120));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == EBUSY);
  const std::string& message = refused.error().message;
  CHECK(contains(message, "'/run' is in use by process 10 on host 'n1'"));
  CHECK(contains(message, "(batch job 4711)"));
  CHECK(contains(message, ", since 2023-11-1"));
  CHECK(contains(message, "sluice stop '/run'"));
  CHECK(taker.now_.ns == 0);  // no need to wait
}

TEST_CASE("lease: an owner whose process is gone is followed at once, with a note") {
  FakeFiles files;
  FakeHost owner("n1", 10);
  REQUIRE(Lease::take(files, owner, kRun, seconds(0)).ok());
  FakeHost taker("n1", 11);
  SUBCASE("no such process") {}
  SUBCASE("its number belongs to another process") { taker.processes[10] = 5; }
  SUBCASE("the host was restarted") {
    taker.processes[10] = 1010;
    taker.self_.boot_id = "boot-2";
  }
  const auto lease = Lease::take(files, taker, kRun, seconds(0));
  REQUIRE(lease.ok());
  CHECK(lease->epoch() == 2);
  CHECK(contains(lease->takeover_note(), "took over from process 10 on host 'n1'"));
  CHECK(taker.now_.ns == 0);
}

TEST_CASE("lease: an owner on another host is gone when its counter stands still long enough") {
  FakeFiles files;
  FakeHost owner("n1", 10);
  REQUIRE(Lease::take(files, owner, kRun, seconds(0)).ok());
  FakeHost taker("n2", 10);
  taker.processes[10] = 1010;  // a process of that number here says nothing
  const auto refused = Lease::take(files, taker, kRun, seconds(0));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == EBUSY);
  CHECK(contains(refused.error().message, "cannot be seen whether"));
  const auto lease = Lease::take(files, taker, kRun, seconds(120));
  REQUIRE(lease.ok());
  CHECK(taker.now_.ns == seconds(120).ns);
  CHECK(contains(lease->takeover_note(), "no heartbeat for 120 s"));
}

TEST_CASE("lease: an owner on another host that beats while we wait lives") {
  FakeFiles files;
  FakeHost owner("n1", 10);
  auto lease = Lease::take(files, owner, kRun, seconds(0));
  FakeHost taker("n2", 20);
  int looks = 0;
  taker.on_sleep = [&] {
    if (++looks == 5) REQUIRE(lease->beat().ok());
  };
  const auto refused = Lease::take(files, taker, kRun, seconds(120));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == EBUSY);
  CHECK(looks == 5);
}

TEST_CASE("lease: an owner on another host that releases while we wait is followed at once") {
  FakeFiles files;
  FakeHost owner("n1", 10);
  auto lease = Lease::take(files, owner, kRun, seconds(0));
  FakeHost taker("n2", 20);
  taker.on_sleep = [&] { REQUIRE(lease->release().ok()); };
  const auto taken = Lease::take(files, taker, kRun, seconds(120));
  REQUIRE(taken.ok());
  CHECK(taker.now_ < scheduler::Instant{} + seconds(10));
}

TEST_CASE("lease: of two takers that wait for the same owner exactly one wins") {
  FakeFiles files;
  FakeHost owner("n1", 10);
  REQUIRE(Lease::take(files, owner, kRun, seconds(0)).ok());
  FakeHost slow("n2", 20);
  FakeHost fast("n3", 30);
  uint32_t fast_epoch = 0;
  // At the end of the slow one's wait the fast one has already taken.
  slow.on_sleep = [&] {
    if (slow.now_ < scheduler::Instant{} + seconds(120)) return;
    const auto lease = Lease::take(files, fast, kRun, seconds(60));
    REQUIRE(lease.ok());
    fast_epoch = lease->epoch();
  };
  const auto refused = Lease::take(files, slow, kRun, seconds(120));
  CHECK(fast_epoch == 2);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == EBUSY);
  CHECK(contains(refused.error().message, "process 30 on host 'n3'"));
}

TEST_CASE("lease: two processes that take at the same moment: exactly one wins") {
  // Real files and processes, started together by a closing pipe.
  std::string folder = (std::filesystem::temp_directory_path() / "lease_test.XXXXXX").string();
  REQUIRE(mkdtemp(folder.data()) != nullptr);
  int gate[2];
  REQUIRE(pipe(gate) == 0);
  constexpr int kTakers = 6;
  pid_t children[kTakers];
  for (pid_t& child : children) {
    child = fork();
    if (child != 0) continue;
    close(gate[1]);
    char byte = 0;
    (void)!read(gate[0], &byte, 1);
    const auto lease = Lease::take(folder, seconds(0));
    const int code = lease.ok() ? 1 : (lease.error().code == EBUSY ? 0 : 2);
    // The winner stays alive until all have tried: they end when the parent has waited for them.
    alarm(20);  // should two have won, the test must end
    if (code == 1) pause();
    _exit(code);
  }
  close(gate[0]);
  close(gate[1]);
  int losers = 0;
  for (int i = 0; i < kTakers - 1; ++i) {
    int status = 0;
    REQUIRE(wait(&status) > 0);
    CHECK(WIFEXITED(status));
    losers += WEXITSTATUS(status) == 0 ? 1 : 0;
  }
  CHECK(losers == kTakers - 1);
  for (const pid_t child : children) kill(child, SIGKILL);
  CHECK(wait(nullptr) > 0);
  CHECK(view_lease(folder)->alive == LeaseView::Alive::kNo);
  std::filesystem::remove_all(folder);
}

TEST_CASE("lease: a claim that is ours is won, whatever link said") {
  FakeFiles files;
  RepeatingLink repeating(files);
  FakeHost host("n1", 10);
  CHECK(Lease::take(repeating, host, kRun, seconds(0)).ok());
}

TEST_CASE("lease: an owner that was taken over learns it at its next beat") {
  FakeFiles files;
  FakeHost stalled("n1", 10);
  auto old_lease = Lease::take(files, stalled, kRun, seconds(0));
  FakeHost taker("n2", 20);
  auto lease = Lease::take(files, taker, kRun, seconds(120));
  REQUIRE(lease.ok());
  const auto beat = old_lease->beat();
  REQUIRE_FALSE(beat.ok());
  CHECK(beat.error().code == ESTALE);
  CHECK(contains(beat.error().message, "taken over by process 20 on host 'n2'"));
  CHECK(old_lease->release().error().code == ESTALE);
  CHECK(lease->beat().ok());
}

TEST_CASE("lease: a stalled owner's last write does not make it the owner again") {
  FakeFiles files;
  FakeHost stalled("n1", 10);
  REQUIRE(Lease::take(files, stalled, kRun, seconds(0)).ok());
  const std::string its_beat = *files.read(kRun / "lease.json");
  FakeHost taker("n2", 20);
  auto lease = Lease::take(files, taker, kRun, seconds(120));
  REQUIRE(files.replace(kRun / "lease.json", its_beat).ok());
  CHECK(view_lease(files, taker, kRun)->owner.host == "n2");
  CHECK(lease->beat().ok());
}

TEST_CASE("lease: a taker that died right after its claim is followed") {
  FakeFiles files;
  FakeHost owner("n1", 10);
  REQUIRE(Lease::take(files, owner, kRun, seconds(0)).ok());
  REQUIRE(files.remove(kRun / "lease.json").ok());
  FakeHost taker("n1", 11);
  const auto lease = Lease::take(files, taker, kRun, seconds(0));
  REQUIRE(lease.ok());
  CHECK(lease->epoch() == 2);
}

TEST_CASE("lease: a damaged claim counts as an owner that nobody knows") {
  FakeFiles files;
  REQUIRE(files.replace(kRun / "lease.3", "\0\0").ok());
  FakeHost taker("n1", 11);
  CHECK(Lease::take(files, taker, kRun, seconds(0)).error().code == EBUSY);
  const auto lease = Lease::take(files, taker, kRun, seconds(120));
  REQUIRE(lease.ok());
  CHECK(lease->epoch() == 4);
}

TEST_CASE("lease: an epoch that has a journal is never given again") {
  FakeFiles files;
  REQUIRE(files.replace(kRun / "journal.7.jsonl", "").ok());
  FakeHost host("n1", 10);
  CHECK(Lease::take(files, host, kRun, seconds(0))->epoch() == 8);
}

TEST_CASE("lease: status sees who owns it, and how long ago it beat") {
  FakeFiles files;
  FakeHost host("n1", 10);
  CHECK(view_lease(files, host, kRun).error().code == ENOENT);
  auto lease = Lease::take(files, host, kRun, seconds(0));
  FakeHost same_host("n1", 11);
  same_host.processes[10] = 1010;
  same_host.now_ = scheduler::Instant{} + seconds(4);
  auto view = view_lease(files, same_host, kRun);
  REQUIRE(view.ok());
  CHECK(view->alive == LeaseView::Alive::kYes);
  CHECK(view->beat_age_ms == 4000);
  CHECK(view->owner.pid == 10);
  FakeHost elsewhere("n2", 11);
  CHECK(view_lease(files, elsewhere, kRun)->alive == LeaseView::Alive::kUnknown);
  // UC-103: killed with its node; nobody there to ask.
  elsewhere.now_ = scheduler::Instant{} + seconds(121);
  CHECK(view_lease(files, elsewhere, kRun)->alive == LeaseView::Alive::kSilent);
  CHECK_FALSE(view_lease(files, elsewhere, kRun)->may_run());
  REQUIRE(lease->release().ok());
  CHECK(view_lease(files, elsewhere, kRun)->alive == LeaseView::Alive::kNo);
}

TEST_CASE("lease: a full disk is an error, and leaves no claim that blocks the next one") {
  FakeFiles files;
  FakeHost host("n1", 10);
  files.set_capacity(10);
  CHECK(Lease::take(files, host, kRun, seconds(0)).error().code == ENOSPC);
  files.set_capacity(1 << 20);
  CHECK(Lease::take(files, host, kRun, seconds(0)).ok());
}

TEST_CASE("lease: the real host knows its own process, and that no other has its start time") {
  LeaseHost& host = real_lease_host();
  const LeaseOwner self = host.self();
  CHECK(self.pid == getpid());
  CHECK(self.start_time > 0);
  CHECK_FALSE(self.host.empty());
  CHECK(host.start_time_of(self.pid) == self.start_time);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  siginfo_t information{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(child), &information, WEXITED | WNOWAIT) == 0);
  CHECK_FALSE(host.start_time_of(child).has_value());  // a zombie is gone
  REQUIRE(waitpid(child, nullptr, 0) == child);
  CHECK_FALSE(host.start_time_of(child).has_value());
}

}  // namespace sluice::io
