// A sorted set of workers in 16 bytes, for tables with an entry per object: one or two workers are
// stored in place, more on the heap. Nearly every object is held by one worker or two, so a million
// objects cost no allocation of their own. A value; no threads. Test:
// tests/scheduler/worker_set_test.cpp
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <span>
#include <utility>

#include "scheduler/types.h"

namespace sluice::scheduler {

class WorkerSet {
 public:
  WorkerSet() = default;
  ~WorkerSet() { release(); }
  WorkerSet(const WorkerSet&) = delete;
  WorkerSet& operator=(const WorkerSet&) = delete;
  WorkerSet(WorkerSet&& other) noexcept { take(other); }
  WorkerSet& operator=(WorkerSet&& other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::span<const WorkerId> all() const { return {data(), size_}; }
  [[nodiscard]] bool contains(WorkerId worker) const {
    return std::binary_search(data(), data() + size_, worker);
  }

  bool insert(WorkerId worker) {  // false: it was there
    WorkerId* at = std::lower_bound(data(), data() + size_, worker);
    if (at != data() + size_ && *at == worker) {
      return false;
    }
    const auto index = at - data();
    if (size_ == capacity_) {
      grow();
    }
    at = data() + index;
    std::move_backward(at, data() + size_, data() + size_ + 1);
    *at = worker;
    ++size_;
    return true;
  }

  bool erase(WorkerId worker) {  // false: it was not there
    WorkerId* at = std::lower_bound(data(), data() + size_, worker);
    if (at == data() + size_ || *at != worker) {
      return false;
    }
    std::move(at + 1, data() + size_, at);
    --size_;
    return true;
  }

  void clear() {
    release();
    size_ = 0;
    capacity_ = kInPlace;
    in_place_[0] = in_place_[1] = WorkerId();
  }

 private:
  static constexpr uint32_t kInPlace = 2;

  [[nodiscard]] bool on_heap() const { return capacity_ > kInPlace; }
  [[nodiscard]] WorkerId* data() { return on_heap() ? heap_ : in_place_; }
  [[nodiscard]] const WorkerId* data() const { return on_heap() ? heap_ : in_place_; }

  void grow() {
    const uint32_t capacity = 2 * capacity_;
    auto wider = std::make_unique<WorkerId[]>(capacity);
    std::copy(data(), data() + size_, wider.get());
    release();
    heap_ = wider.release();
    capacity_ = capacity;
  }
  void release() {
    if (on_heap()) {
      delete[] heap_;
    }
  }
  // To be called while this set owns nothing on the heap.
  void take(WorkerSet& other) {
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, kInPlace);
    if (on_heap()) {
      heap_ = other.heap_;
    } else {
      in_place_[0] = other.in_place_[0];
      in_place_[1] = other.in_place_[1];
    }
    other.in_place_[0] = other.in_place_[1] = WorkerId();
  }

  uint32_t size_ = 0;
  uint32_t capacity_ = kInPlace;
  union {
    WorkerId in_place_[kInPlace]{};
    WorkerId* heap_;
  };
};

static_assert(sizeof(WorkerSet) == 16);

}  // namespace sluice::scheduler
