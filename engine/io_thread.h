// A thread for everything that may block: file copies, fsync, hashing, removing. A job runs there,
// in order of post(); what it returns (a completion) runs on the control thread, in the same order,
// when run_completions() is called. The control thread waits on fd(). The destructor finishes all
// posted jobs first.
//
// What nobody waits for, like removing what is left of an attempt, is posted with post_later(): it
// runs after all that was posted before it, when nothing else waits or kLaterMax of its kind do.
//
// Only what the control thread has to hear wakes it: jobs without a completion are silent, and many
// completions wake it once.
//
// Owner: the control thread, which alone calls post() and run_completions(). Test:
// tests/engine/io_thread_test.cpp
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
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
  void post_later(Job job);
  // Readable while completions wait.
  [[nodiscard]] int fd() const { return event_fd_; }
  size_t run_completions();
  // Jobs that have not run, or whose completion has not: the control thread holds back new work
  // when there are too many.
  [[nodiscard]] size_t pending() const { return pending_.load(std::memory_order_relaxed); }

 private:
  // A job that may wait: so many others come first.
  struct LaterJob {
    uint64_t behind = 0;
    Job job;
  };
  static constexpr size_t kLaterMax = 16;

  void loop();
  [[nodiscard]] bool later_is_due() const;
  [[nodiscard]] std::deque<Job> take_jobs();
  void hand_over(Completion completion);

  int event_fd_ = -1;
  std::atomic<size_t> pending_ = 0;
  std::atomic<bool> told_ = false;  // event_fd_ is readable
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;              // guarded by mutex_
  std::deque<LaterJob> later_;        // guarded by mutex_
  uint64_t posted_ = 0;               // guarded by mutex_: to jobs_, ever
  uint64_t taken_ = 0;                // guarded by mutex_: from jobs_, ever
  std::deque<Completion> completed_;  // guarded by mutex_
  bool stop_ = false;                 // guarded by mutex_
  std::thread thread_;
};

}  // namespace sluice::engine
