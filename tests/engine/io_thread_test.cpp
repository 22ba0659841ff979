#include "engine/io_thread.h"

#include <doctest/doctest.h>
#include <poll.h>

#include <future>
#include <string>
#include <thread>
#include <vector>

using sluice::engine::IoThread;

TEST_CASE("io thread: jobs run there, in order, and their completions here, in order") {
  IoThread io("test-io");
  std::vector<int> order;
  std::vector<int> expected;
  std::vector<std::thread::id> job_threads;
  for (int i = 0; i < 100; ++i) {
    expected.push_back(i);
    io.post([&, i]() -> IoThread::Completion {
      job_threads.push_back(std::this_thread::get_id());
      return [&order, i] { order.push_back(i); };
    });
  }
  CHECK(io.pending() == 100);
  while (io.pending() > 0) {
    pollfd fd{io.fd(), POLLIN, 0};
    REQUIRE(poll(&fd, 1, 10'000) == 1);
    io.run_completions();
  }
  CHECK(order == expected);
  CHECK(job_threads.front() != std::this_thread::get_id());
  CHECK(job_threads.front() == job_threads.back());
}

TEST_CASE("io thread: what may wait comes after all that was posted, before it and meanwhile") {
  std::vector<std::string> order;
  {
    IoThread io("test-io");
    std::promise<void> go;
    const auto add = [&order](const std::string& name) {
      return [&order, name]() -> IoThread::Completion {
        order.push_back(name);
        return {};
      };
    };
    io.post([held = go.get_future().share()]() -> IoThread::Completion {
      held.wait();
      return {};
    });
    io.post(add("a"));
    io.post_later(add("later"));
    io.post(add("b"));
    io.post(add("c"));
    go.set_value();
  }
  CHECK(order == std::vector<std::string>{"a", "b", "c", "later"});
}

TEST_CASE("io thread: what may wait runs once, and never before what it was posted behind") {
  constexpr int kMany = 200;
  std::vector<int> later_at;  // how many others had run
  int run = 0;
  {
    IoThread io("test-io");
    std::promise<void> go;
    io.post([held = go.get_future().share()]() -> IoThread::Completion {
      held.wait();
      return {};
    });
    for (int i = 0; i < kMany; ++i) {
      io.post_later([&]() -> IoThread::Completion {
        later_at.push_back(run);
        return {};
      });
      io.post([&run]() -> IoThread::Completion {
        ++run;
        return {};
      });
    }
    go.set_value();
  }
  REQUIRE(later_at.size() == kMany);
  for (int i = 0; i < kMany; ++i) CHECK(later_at[static_cast<size_t>(i)] >= i);
  CHECK(run == kMany);
}

TEST_CASE("io thread: the destructor finishes what was posted") {
  int done = 0;
  {
    IoThread io("test-io");
    for (int i = 0; i < 50; ++i) {
      io.post([&done]() -> IoThread::Completion {
        ++done;
        return {};
      });
    }
  }
  CHECK(done == 50);
}
