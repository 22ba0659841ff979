// A thread for everything that may block: file copies, fsync, hashing, removing. A job runs there,
// in order of post(); what it returns (a completion) runs on the control thread, in the same order,
// when run_completions() is called. The control thread waits on fd(). The destructor finishes all
// posted jobs first.
//
// Owner: the control thread, which alone calls post() and run_completions(). Test:
// tests/engine/io_thread_test.cpp
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace sluice::engine {

class IoThread {
 public:
  using Completion = std::function<void()>;
  using Job = std::function<Completion()>;

  explicit IoThread(const char* thread_name);
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  void post(Job job);
  // Readable while completions wait.
  [[nodiscard]] int fd() const { return event_fd_; }
  size_t run_completions();
  // Jobs whose completion has not run yet: the control thread holds back new work when there are
  // too many.
  [[nodiscard]] size_t pending() const { return pending_; }

 private:
  void loop();

  int event_fd_ = -1;
  size_t pending_ = 0;  // control thread only
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;              // guarded by mutex_
  std::deque<Completion> completed_;  // guarded by mutex_
  bool stop_ = false;                 // guarded by mutex_
  std::thread thread_;
};

}  // namespace sluice::engine
