// A world for the core alone: no agents, no messages, nothing goes wrong. Attempts end in the order
// in which they were sent, each 50 ms long by its own account; saves and commits succeed at once.
// For figures of large graphs, so invariants are not checked. For tests only; one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler/core.h"

namespace sluice::tests {

class HonestWorld {
 public:
  struct Cost {
    uint64_t events = 0;
    uint64_t decisions = 0;
    uint64_t steps = 0;
    size_t places = 0;  // most inputs of one start
    bool ended = false;
  };

  HonestWorld(const scheduler::Graph& graph, uint32_t workers, int32_t cores)
      : graph_(graph), core_(graph, {}) {
    for (uint32_t w = 0; w < workers; ++w) {
      apply(
          scheduler::event::WorkerJoined{scheduler::WorkerId(w), scheduler::NodeId(w), {cores, 0}});
    }
  }

  Cost run() {
    apply(scheduler::event::Begin{});
    schedule();
    while (!core_.ended() && !started_.empty()) {
      finish(started_.front());
      schedule();
      if (++finished_ % 100 == 0) {
        apply(scheduler::event::RecordsSynced{core_.decision_count()});
      }
    }
    cost_.decisions = core_.decision_count();
    cost_.steps = core_.steps();
    cost_.ended = core_.ended();
    return cost_;
  }

 private:
  struct Started {
    scheduler::WorkerId worker;
    scheduler::AttemptId attempt;
    scheduler::InstanceId instance;
  };

  void apply(const scheduler::Event& event) {
    ++cost_.events;
    core_.apply(now_, event, out_);
    serve();
  }
  void schedule() {
    core_.schedule(now_, out_);
    serve();
  }

  void finish(Started it) {
    started_.pop_front();
    now_ = now_ + scheduler::microseconds(10);
    apply(scheduler::event::AttemptStarted{it.worker, it.attempt});
    scheduler::event::AttemptFinished report{it.worker, it.attempt, {}, {}};
    for (size_t i = 0; i < graph_.objects_of(it.instance).size(); ++i) {
      report.outputs.push_back({{it.instance.value + 1, i + 1}, 100, ""});
    }
    report.usage.wall = scheduler::milliseconds(50);
    apply(report);
  }

  // Answering appends: what is served here are the decisions of that moment. What is asked back has
  // started already.
  void serve() {
    const std::vector<scheduler::Decision> decisions = std::exchange(out_, {});
    for (const scheduler::Decision& decision : decisions) {
      if (const auto* start = std::get_if<scheduler::decision::StartAttempt>(&decision)) {
        started_.push_back({start->worker, start->attempt, start->instance});
        cost_.places = std::max(cost_.places, start->inputs.size());
      } else if (const auto* save = std::get_if<scheduler::decision::SaveObject>(&decision)) {
        apply(scheduler::event::ObjectSaved{save->worker, save->object, save->save});
      } else if (const auto* commit = std::get_if<scheduler::decision::CommitObject>(&decision)) {
        apply(scheduler::event::ObjectCommitted{commit->object});
      }
    }
  }

  const scheduler::Graph& graph_;
  scheduler::Core core_;
  scheduler::Instant now_;
  std::vector<scheduler::Decision> out_;
  std::deque<Started> started_;
  size_t finished_ = 0;
  Cost cost_;
};

}  // namespace sluice::tests
