// A whole process tree for a test: guard, launcher, a fake rank (programs/fake_rank.cpp) that
// relays what the test says to the launcher, a fake sluice-h5. Waits are for conditions, with a
// bound. The destructor kills the guard, and with it everything. One thread.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "engine/descendants.h"
#include "engine/launcher.h"
#include "engine/launcher_client.h"
#include "io/file_descriptor.h"
#include "tests/support/temporary_folder.h"

namespace sluice::engine::test {

constexpr std::chrono::seconds kWaitBound{20};
constexpr int kHighDescriptor = 50;

inline bool wait_until(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kWaitBound;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    ::poll(nullptr, 0, 1);
  }
  return true;
}

inline std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::string name_of(pid_t pid) {
  std::string name = content_of("/proc/" + std::to_string(pid) + "/comm");
  if (!name.empty()) name.pop_back();
  return name;
}

inline bool is_alive(pid_t pid) {
  const char state = read_stat(pid).state;
  return state != '?' && state != 'Z';
}

inline pid_t child_named(pid_t parent, const std::string& name) {
  for (const pid_t child : children_of(parent)) {
    if (name_of(child) == name) return child;
  }
  return 0;
}

class Tree {
 public:
  // `mpi_variable`: set for the guard, as an MPI launcher would; not for this process.
  explicit Tree(int mpi_rank = 0, const std::string& mpi_variable = "")
      : rank_name_(std::to_string(mpi_rank)) {
    place_ = {folder / "memory", folder / "disk"};
    for (const auto& tier : {place_.memory, place_.disk}) {
      std::filesystem::create_directory(tier);
      std::ofstream(tier / "object") << "data";
    }
    std::filesystem::create_directory(folder / "run");
    std::array<int, 2> control{};
    std::array<int, 2> checks{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, control.data()) == 0);
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, checks.data()) == 0);
    // Away from the descriptors that the rank gets from the launcher.
    for (int* end : {&control[1], &checks[1]}) {
      const int low = std::exchange(*end, ::fcntl(*end, F_DUPFD, kHighDescriptor));
      ::close(low);
    }
    guard_ = ::fork();
    REQUIRE(guard_ >= 0);
    if (guard_ == 0) become_guard(mpi_rank, mpi_variable, control, checks);
    ::close(control[1]);
    ::close(checks[1]);
    channel_ = std::make_unique<LaunchChannel>(control[0]);
    checks_ = io::FileDescriptor(checks[0]);
    REQUIRE(wait_until([&] { return (launcher_ = child_named(guard_, "sluice-launch")) != 0; }));
    REQUIRE(wait_until([&] { return (rank_ = child_named(launcher_, "sluice-rank")) != 0; }));
  }
  ~Tree() {
    if (guard_ == 0) return;
    ::kill(guard_, SIGKILL);
    ::waitpid(guard_, nullptr, 0);
    (void)wait_until([&] { return !is_alive(launcher_); });
  }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  [[nodiscard]] pid_t guard() const { return guard_; }
  [[nodiscard]] pid_t launcher() const { return launcher_; }
  [[nodiscard]] pid_t rank() const { return rank_; }
  [[nodiscard]] bool store_exists() const {
    return std::filesystem::exists(place_.memory) || std::filesystem::exists(place_.disk);
  }
  // As it is while the rank is in MPI_Init.
  void remove_store() const {
    for (const auto& tier : {place_.memory, place_.disk}) std::filesystem::remove_all(tier);
  }
  [[nodiscard]] std::filesystem::path lost_file() const {
    return folder / "run" / "lost" / rank_name_;
  }

  scheduler::AttemptId start(launch::Start start) {
    start.attempt = scheduler::AttemptId::make(1, ++attempts_);
    if (start.working_directory.empty()) start.working_directory = folder.path().string();
    start.stream_directory = folder.path().string();
    channel_->send(start);
    return start.attempt;
  }
  scheduler::AttemptId start_shell(const std::string& script) {
    launch::Start command;
    command.argv = {"/bin/bash", "-c", script};
    return start(std::move(command));
  }
  void send(const LaunchMessage& message) { channel_->send(message); }

  launch::Exited exited(scheduler::AttemptId attempt) {
    launch::Exited result;
    const bool came = wait_for<launch::Exited>(attempt, result);
    REQUIRE(came);
    return result;
  }
  pid_t started(scheduler::AttemptId attempt) {
    launch::Started result;
    const bool came = wait_for<launch::Started>(attempt, result);
    REQUIRE(came);
    return static_cast<pid_t>(result.pid);
  }
  launch::Exited run_shell(const std::string& script) { return exited(start_shell(script)); }

  void ask_checker(const std::string& request) {
    REQUIRE(::send(checks_.get(), request.data(), request.size(), 0) > 0);
  }
  std::string checker_reply() {
    std::array<char, 4096> reply{};
    pollfd wait{checks_.get(), POLLIN, 0};
    const auto bound = std::chrono::milliseconds(kWaitBound).count();
    REQUIRE(::poll(&wait, 1, static_cast<int>(bound)) == 1);
    const ssize_t got = ::recv(checks_.get(), reply.data(), reply.size(), 0);
    return {reply.data(), got > 0 ? static_cast<size_t>(got) : 0};
  }

  // The rank leaves; what main would return.
  int leave(bool in_order) {
    if (in_order) channel_->send(launch::Quit{});
    channel_->flush();
    channel_.reset();
    return guard_exit_code();
  }
  int guard_exit_code() {
    int status = 0;
    const bool ended = wait_until([&] { return ::waitpid(guard_, &status, WNOHANG) == guard_; });
    REQUIRE(ended);
    guard_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  sluice::test::TemporaryFolder folder;

 private:
  [[noreturn]] void become_guard(int mpi_rank, const std::string& mpi_variable,
                                 std::array<int, 2> control, std::array<int, 2> checks) {
    ::close(control[0]);
    ::close(checks[0]);
    if (!mpi_variable.empty()) ::setenv(mpi_variable.c_str(), "1", 1);
    ProcessTree tree;
    tree.mpi_rank = mpi_rank;
    tree.store = place_;
    tree.lost_folder = folder / "run" / "lost";
    tree.rank_argv = {SLUICE_FAKE_RANK, std::to_string(control[1]), std::to_string(checks[1])};
    tree.checker_program = SLUICE_FAKE_RANK;
    const int code = run_guarded(tree);
    ::_exit(code);
  }

  template <class Wanted>
  bool wait_for(scheduler::AttemptId attempt, Wanted& result) {
    return wait_until([&] {
      (void)channel_->read(messages_);
      for (auto it = messages_.begin(); it != messages_.end(); ++it) {
        const auto* message = std::get_if<Wanted>(&*it);
        if (message == nullptr || message->attempt != attempt) continue;
        result = *message;
        messages_.erase(it);
        return true;
      }
      return false;
    });
  }

  std::string rank_name_;
  io::StorePlace place_;
  pid_t guard_ = 0;
  pid_t launcher_ = 0;
  pid_t rank_ = 0;
  uint32_t attempts_ = 0;
  std::unique_ptr<LaunchChannel> channel_;
  io::FileDescriptor checks_;
  std::vector<LaunchMessage> messages_;
};

}  // namespace sluice::engine::test
