// Which part of a pipeline a run is about: `--only`, `--until`, `--force`. The one place where
// these become instances; `run`, `plan` and `why` give the core the same events and so agree:
//
//   auto selection = select(pipeline, options.selection);            // an Error: usage, exit 2
//   for (const auto& e : opening(*selection, std::move(resume.restored))) core.apply(now, e, out);
//   core.apply(now, scheduler::event::Begin{}, out);
//
// With each named instance goes all that it reads and comes after, directly or not. What is not
// selected never runs (core.state: kDone if the journal knows all of it, else kLeftOut). A forced
// instance is selected too, and its fact in the journal loses its key, so that it runs again.
// Pure functions; any thread. Test: tests/engine/selection_test.cpp
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/pipeline.h"
#include "scheduler/event.h"
#include "scheduler/expected.h"

namespace sluice::engine {

// As typed.
struct SelectionOptions {
  std::vector<std::string> only;   // TASK, or 'TASK[key=value,...]' with some or all of its keys
  std::vector<std::string> until;  // TASK
  std::vector<std::string> force;  // as only
  [[nodiscard]] bool empty() const { return only.empty() && until.empty() && force.empty(); }
};

struct Selection {
  std::vector<bool> instances;                // by InstanceId: selected; empty: all are
  std::vector<scheduler::InstanceId> forced;  // sorted
  [[nodiscard]] bool includes(scheduler::InstanceId id) const {
    return instances.empty() || instances[id.index()];
  }
  [[nodiscard]] bool forces(scheduler::InstanceId id) const;
  [[nodiscard]] size_t count(const io::Pipeline& pipeline) const;  // selected ones
};

[[nodiscard]] Expected<Selection> select(const io::Pipeline& pipeline,
                                         const SelectionOptions& options);

// The events before Begin.
[[nodiscard]] std::vector<scheduler::Event> opening(
    const Selection& selection, std::vector<scheduler::event::Restored> restored);

// The instances that TASK or 'TASK[key=value,...]' names, in order; never none. Values are written
// as in labels.
[[nodiscard]] Expected<std::vector<scheduler::InstanceId>> instances_named(
    const io::Pipeline& pipeline, const std::string& target);

// "20" or "5%" of `count`, at least 1.
[[nodiscard]] Expected<uint32_t> failures_max(const std::string& text, size_t count);

}  // namespace sluice::engine
