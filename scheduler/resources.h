// What a worker has and what an attempt needs. Amounts are integers: whole cores, bytes, counter
// units × 10 000 (the fixed point leaves room for fractions of a device). Requests are interned, so
// that the queue of ready instances is kept per distinct request and a decision does not grow with
// the queue. Values; no threads. Test: tests/scheduler/resources_test.cpp
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/types.h"

namespace sluice::scheduler {

using Amount = int64_t;                 // fixed point
constexpr Amount kAmountUnit = 10'000;  // one whole unit of a counter

struct Resources {
  int32_t cpus = 0;  // cores
  int64_t memory_bytes = 0;
  auto operator<=>(const Resources&) const = default;
  [[nodiscard]] bool covers(const Resources& need) const {
    return need.cpus <= cpus && need.memory_bytes <= memory_bytes;
  }
  Resources& operator+=(const Resources& o) {
    cpus += o.cpus;
    memory_bytes += o.memory_bytes;
    return *this;
  }
  Resources& operator-=(const Resources& o) {
    cpus -= o.cpus;
    memory_bytes -= o.memory_bytes;
    return *this;
  }
};

struct LimitUse {
  LimitId limit;
  Amount amount = 0;
  auto operator<=>(const LimitUse&) const = default;
};

struct Request {
  Resources resources{1, 0};
  std::vector<LimitUse> limits;  // sorted by limit, no duplicates, amounts > 0
  auto operator<=>(const Request&) const = default;
};

struct Limit {
  std::string name;
  Amount total = 0;
};

class RequestTable {
 public:
  // Equal requests get equal ids; ids are dense, in order of first use.
  RequestId intern(const Request& request);
  [[nodiscard]] const Request& operator[](RequestId id) const { return requests_[id.index()]; }
  [[nodiscard]] size_t size() const { return requests_.size(); }

 private:
  std::vector<Request> requests_;
  std::vector<RequestId> sorted_;  // by value, so that interning is a binary search
};

}  // namespace sluice::scheduler
