// Ends this process when its control loop hangs. Between nodes Open MPI may keep a rank inside a
// call for ever when a peer died with data on its way; the rank's silence makes others give it up,
// but nobody could end it, and mpirun would wait for it for ever. Killed, it is one more lost rank.
//
// A thread looks once a second whether the loop has made a turn, from the first one on: reading old
// journals may take its time. It counts looks, not seconds: while the process is stopped it does
// not look either. Owner: main, as long as MPI is in use; turn() from the control thread. Test:
// tests/engine/hang_watch_test.cpp
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

namespace sluice::engine {

// Whether so many looks in a row saw the same number of turns, if there was any. One thread.
class TurnCount {
 public:
  explicit TurnCount(uint64_t looks_max) : looks_max_(looks_max) {}
  bool hangs(uint64_t turns) {
    looks_ = turns == seen_ && turns > 0 ? looks_ + 1 : 0;
    seen_ = turns;
    return looks_ >= looks_max_;
  }

 private:
  uint64_t looks_max_;
  uint64_t seen_ = 0;
  uint64_t looks_ = 0;
};

class HangWatch {
 public:
  // `ended` is called on the watching thread, once, when the loop has hung for so many seconds.
  HangWatch(uint64_t seconds, std::function<void()> ended);
  ~HangWatch();
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

  void turn() { turns_.fetch_add(1, std::memory_order_relaxed); }

 private:
  void run(uint64_t seconds, const std::function<void()>& ended);

  std::atomic<uint64_t> turns_{0};
  int stop_fd_ = -1;  // an eventfd: the destructor wakes the thread
  std::thread thread_;
};

}  // namespace sluice::engine
