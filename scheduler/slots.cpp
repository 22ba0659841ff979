#include "scheduler/slots.h"

#include <algorithm>

#include "scheduler/check.h"

namespace sluice::scheduler {

namespace {

struct FreeRun {
  size_t begin = 0;
  size_t length = 0;
};

FreeRun next_free_run(const std::vector<AttemptId>& owner, size_t from) {
  size_t begin = from;
  while (begin < owner.size() && owner[begin].valid()) ++begin;
  size_t end = begin;
  while (end < owner.size() && !owner[end].valid()) ++end;
  return {begin, end - begin};
}

// The shortest free run that is long enough, the lowest of equals; length 0 if there is none.
FreeRun best_free_run(const std::vector<AttemptId>& owner, size_t wanted) {
  FreeRun best;
  for (FreeRun run = next_free_run(owner, 0); run.length > 0;
       run = next_free_run(owner, run.begin + run.length)) {
    if (run.length >= wanted && (best.length == 0 || run.length < best.length)) best = run;
  }
  return best;
}

}  // namespace

Slots::Slots(const Resources& total) : total_(total), free_(total) {
  SLUICE_ASSERT(total.cpus >= 0 && total.memory_bytes >= 0, total.cpus, total.memory_bytes);
  core_owner_.resize(static_cast<size_t>(total.cpus));
}

std::optional<std::vector<int32_t>> Slots::take(AttemptId attempt, const Resources& request) {
  SLUICE_ASSERT(attempt.valid());
  SLUICE_ASSERT(request.cpus >= 0 && request.memory_bytes >= 0, request.cpus, request.memory_bytes);
  for (const Held& held : held_) SLUICE_ASSERT(held.attempt != attempt, attempt);
  if (!fits(request)) return std::nullopt;

  const auto wanted = static_cast<size_t>(request.cpus);
  const FreeRun run = best_free_run(core_owner_, wanted);
  std::vector<int32_t> cores;
  cores.reserve(wanted);
  for (size_t core = run.begin; cores.size() < wanted; ++core) {
    if (core_owner_[core].valid()) continue;
    core_owner_[core] = attempt;
    cores.push_back(static_cast<int32_t>(core));
  }
  free_ -= request;
  held_.push_back({attempt, request, cores});
  return cores;
}

void Slots::give_back(AttemptId attempt) {
  const auto held =
      std::find_if(held_.begin(), held_.end(), [&](const Held& h) { return h.attempt == attempt; });
  SLUICE_ASSERT(held != held_.end(), attempt);
  for (const int32_t core : held->cores) core_owner_[static_cast<size_t>(core)] = AttemptId{};
  free_ += held->request;
  *held = std::move(held_.back());
  held_.pop_back();
}

void Slots::check_invariants() const {
  Resources used;
  std::vector<AttemptId> owner(core_owner_.size());
  for (const Held& held : held_) {
    SLUICE_ASSERT(held.cores.size() == static_cast<size_t>(held.request.cpus), held.attempt);
    used += held.request;
    for (const int32_t core : held.cores) {
      const auto index = static_cast<size_t>(core);
      SLUICE_ASSERT(index < owner.size() && !owner[index].valid(), core, held.attempt);
      owner[index] = held.attempt;
    }
  }
  SLUICE_ASSERT(owner == core_owner_);
  used += free_;
  SLUICE_ASSERT(used == total_, used.cpus, total_.cpus, used.memory_bytes, total_.memory_bytes);
  SLUICE_ASSERT(free_.cpus >= 0 && free_.memory_bytes >= 0, free_.cpus, free_.memory_bytes);
}

}  // namespace sluice::scheduler
