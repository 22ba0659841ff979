#include "engine/io_thread.h"

#include <doctest/doctest.h>
#include <poll.h>

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
