#include "engine/io_thread.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <utility>

#include "scheduler/check.h"

namespace sluice::engine {

IoThread::IoThread(const char* thread_name) : event_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  SLUICE_ASSERT(event_fd_ >= 0);
  // Signals are the control thread's business: the new thread inherits a full mask.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { loop(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), thread_name);
}

IoThread::~IoThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
  close(event_fd_);
}

void IoThread::post(Job job) {
  ++pending_;
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    ++posted_;
  }
  wake_.notify_one();
}

void IoThread::post_later(Job job) {
  ++pending_;
  {
    const std::lock_guard lock(mutex_);
    later_.push_back({posted_, std::move(job)});
  }
  wake_.notify_one();
}

size_t IoThread::run_completions() {
  if (!told_.load(std::memory_order_acquire)) return 0;
  std::deque<Completion> batch;
  {
    const std::lock_guard lock(mutex_);
    uint64_t ignored = 0;
    (void)!read(event_fd_, &ignored, sizeof ignored);
    told_.store(false, std::memory_order_relaxed);
    batch.swap(completed_);
  }
  for (Completion& completion : batch) {
    --pending_;
    completion();
  }
  return batch.size();
}

void IoThread::loop() {
  while (true) {
    std::deque<Job> batch = take_jobs();
    if (batch.empty()) return;
    for (Job& job : batch) hand_over(std::exchange(job, nullptr)());
  }
}

bool IoThread::later_is_due() const {
  return !later_.empty() && later_.front().behind <= taken_ &&
         (jobs_.empty() || later_.size() > kLaterMax);
}

// Waits for the next jobs. None: the end, and everything posted is done.
std::deque<IoThread::Job> IoThread::take_jobs() {
  std::deque<Job> batch;
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return stop_ || !jobs_.empty() || !later_.empty(); });
  if (later_is_due()) {
    batch.push_back(std::move(later_.front().job));
    later_.pop_front();
    return batch;
  }
  batch.swap(jobs_);
  taken_ += batch.size();
  return batch;
}

void IoThread::hand_over(Completion completion) {
  if (!completion) {
    --pending_;
    return;
  }
  const std::lock_guard lock(mutex_);
  completed_.push_back(std::move(completion));
  if (told_.exchange(true, std::memory_order_release)) return;
  const uint64_t one = 1;
  (void)!write(event_fd_, &one, sizeof one);
}

}  // namespace sluice::engine
