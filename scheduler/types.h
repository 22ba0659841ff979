// Strong ids, virtual-clock time and 128-bit content ids: the words every other file uses.
//
// An `int` never names a task. Ids are dense indexes into the graph's flat arrays, so tables are
// vectors. Thread-free value types. Test: tests/scheduler/types_test.cpp
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace sluice::scheduler {

template <class Tag>
struct Id {
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();
  uint32_t value = kNone;

  constexpr Id() = default;
  constexpr explicit Id(uint32_t v) : value(v) {}
  constexpr explicit Id(size_t v) : value(static_cast<uint32_t>(v)) {}
  constexpr explicit Id(int v) : value(static_cast<uint32_t>(v)) {}
  [[nodiscard]] constexpr bool valid() const { return value != kNone; }
  [[nodiscard]] constexpr size_t index() const { return value; }
  constexpr auto operator<=>(const Id&) const = default;
};

using TaskId = Id<struct TaskTag>;          // a node of the spec
using InstanceId = Id<struct InstanceTag>;  // a task for one item
using ObjectId = Id<struct ObjectTag>;      // one output of one instance
using GroupId = Id<struct GroupTag>;  // producer task + shared key values: what a join goes through
using GateId = Id<struct GateTag>;    // order without data: predecessors, then successors
using WorkerId = Id<struct WorkerTag>;    // equals the worker's mpi_rank
using NodeId = Id<struct NodeTag>;        // workers with equal NodeId share node memory
using RequestId = Id<struct RequestTag>;  // an interned resource request
using LimitId = Id<struct LimitTag>;      // a run-wide counter (`limits:` in the spec)

// One try of an instance. Unique in a run directory: the high 32 bits are the epoch (how many times
// the run directory was taken over), the low 32 bits count from 1. A reply for an attempt that is
// not current is ignored, never an error.
struct AttemptId {
  uint64_t value = 0;  // 0: none
  [[nodiscard]] constexpr bool valid() const { return value != 0; }
  [[nodiscard]] constexpr uint32_t epoch() const { return static_cast<uint32_t>(value >> 32U); }
  [[nodiscard]] constexpr uint32_t number() const { return static_cast<uint32_t>(value); }
  [[nodiscard]] static constexpr AttemptId make(uint32_t epoch, uint32_t number) {
    return {(static_cast<uint64_t>(epoch) << 32U) | number};
  }
  constexpr auto operator<=>(const AttemptId&) const = default;
};

struct Duration {
  int64_t ns = 0;
  constexpr auto operator<=>(const Duration&) const = default;
  [[nodiscard]] constexpr double seconds() const { return static_cast<double>(ns) * 1e-9; }
};
constexpr Duration nanoseconds(int64_t n) { return {n}; }
constexpr Duration microseconds(int64_t n) { return {n * 1'000}; }
constexpr Duration milliseconds(int64_t n) { return {n * 1'000'000}; }
constexpr Duration seconds(int64_t n) { return {n * 1'000'000'000}; }
constexpr Duration operator+(Duration a, Duration b) { return {a.ns + b.ns}; }
constexpr Duration operator-(Duration a, Duration b) { return {a.ns - b.ns}; }
constexpr Duration operator*(Duration a, int64_t k) { return {a.ns * k}; }

// Monotonic time since the run's start (the driver's clock or the simulator's).
struct Instant {
  int64_t ns = 0;
  constexpr auto operator<=>(const Instant&) const = default;
  static constexpr Instant never() { return {std::numeric_limits<int64_t>::max()}; }
};
constexpr Instant operator+(Instant t, Duration d) { return {t.ns + d.ns}; }
constexpr Duration operator-(Instant a, Instant b) { return {a.ns - b.ns}; }

// A 128-bit hash: content ids of objects and sources, keys of instances. All zero means "unknown".
struct Hash128 {
  uint64_t high = 0;
  uint64_t low = 0;
  [[nodiscard]] constexpr bool known() const { return (high | low) != 0; }
  constexpr auto operator<=>(const Hash128&) const = default;
};

// Folds `next` into `seed`; order matters. scheduler/ has no dependency, so the key of an instance
// is this fold over XXH3-128 values made in io/. The mixer is the finaliser of SplitMix64 (Steele,
// Lea, Flood, OOPSLA 2014) on two lanes.
constexpr uint64_t mix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31U);
}
constexpr Hash128 combine(Hash128 seed, Hash128 next) {
  const uint64_t a = mix64(seed.high ^ mix64(next.high + 0xA0761D6478BD642FULL));
  const uint64_t b = mix64(seed.low ^ mix64(next.low + 0xE7037ED1A0B428DBULL));
  return {mix64(a + (b << 1U)), mix64(b ^ (a + 0x8EBC6AF09C88C6E3ULL))};
}

}  // namespace sluice::scheduler
