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
  }
  wake_.notify_one();
}

size_t IoThread::run_completions() {
  uint64_t ignored = 0;
  (void)!read(event_fd_, &ignored, sizeof ignored);
  std::deque<Completion> batch;
  {
    const std::lock_guard lock(mutex_);
    batch.swap(completed_);
  }
  for (Completion& completion : batch) {
    --pending_;
    if (completion) completion();
  }
  return batch.size();
}

void IoThread::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    if (jobs_.empty()) return;  // stop_, and everything posted is done
    Job job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    Completion completion = job();
    lock.lock();
    completed_.push_back(std::move(completion));
    const uint64_t one = 1;
    (void)!write(event_fd_, &one, sizeof one);
  }
}

}  // namespace sluice::engine
