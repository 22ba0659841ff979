// The core on a bench: a graph, a core, and a world that does what the core decides, one step at a
// time. Invariants are checked after every event and every schedule call.
//
// Steps by hand: start(i), finish(i), fail(i, cause), returned(i) answer for the current attempt of
// instance i. Services (saving, committing, taking back, stopping) are answered by serve(), or at
// once while `auto_serve` is set. run() plays an honest world to the end. For tests only.
#pragma once

#include <doctest/doctest.h>

#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "scheduler/core.h"

namespace sluice::tests {

namespace sched = scheduler;

class CoreBench {
 public:
  explicit CoreBench(sched::Graph graph_, const sched::CoreOptions& options = {})
      : graph(std::move(graph_)), core(graph, options), successes(graph.instance_count()) {
    // By default an output is a function of its instance's key: what a deterministic task makes.
    content_of = [this](sched::InstanceId instance, size_t output) {
      return combine(core.key(instance), {output + 1, 77});
    };
  }
  CoreBench(const CoreBench&) = delete;
  CoreBench& operator=(const CoreBench&) = delete;

  // ---- events ----

  void apply(const sched::Event& event) {
    const size_t before = log.size();
    core.apply(now, event, log);
    after(before);
  }
  // Returns the starts of this call.
  std::vector<sched::decision::StartAttempt> schedule() {
    const size_t before = log.size();
    core.schedule(now, log);
    std::vector<sched::decision::StartAttempt> starts;
    for (size_t i = before; i < log.size(); ++i) {
      if (const auto* start = std::get_if<sched::decision::StartAttempt>(&log[i])) {
        starts.push_back(*start);
      }
    }
    after(before);
    return starts;
  }
  void join(int worker, int32_t cpus, int64_t memory_bytes = 0, int node = -1) {
    apply(sched::event::WorkerJoined{
        sched::WorkerId(worker), sched::NodeId(node < 0 ? worker : node), {cpus, memory_bytes}});
  }
  void begin() { apply(sched::event::Begin{}); }
  void start(int instance) {
    apply(sched::event::AttemptStarted{worker(instance), attempt(instance)});
  }
  sched::event::AttemptFinished finished(int instance) const {
    const sched::InstanceId id(instance);
    sched::event::AttemptFinished report{worker(instance), attempt(instance), {}, {}};
    for (size_t i = 0; i < graph.objects_of(id).size(); ++i) {
      report.outputs.push_back({content_of(id, i), 100, ""});
    }
    report.usage.wall = wall_of(id);
    return report;
  }
  void finish(int instance) {
    ++successes[static_cast<size_t>(instance)];
    apply(finished(instance));
  }
  void fail(int instance, sched::Cause cause, int32_t exit_code = 1) {
    sched::event::AttemptFailed report;
    report.worker = worker(instance);
    report.attempt = attempt(instance);
    report.cause = cause;
    report.exit_code = exit_code;
    apply(report);
  }
  void returned(int instance, sched::ObjectId missing = {}) {
    sched::WorkerId source;  // as the start named it
    for (const auto& start : all<sched::decision::StartAttempt>()) {
      for (const sched::InputPlace& place : start.inputs) {
        if (start.attempt == attempt(instance) && place.object == missing) {
          source = place.source;
        }
      }
    }
    apply(sched::event::AttemptReturned{worker(instance), attempt(instance), missing, source});
  }
  void sync() { apply(sched::event::RecordsSynced{core.decision_count()}); }
  void lose(int worker) { apply(sched::event::WorkerLost{sched::WorkerId(worker)}); }
  void tick(sched::Instant at) {
    now = at;
    apply(sched::event::Tick{});
  }

  // ---- services ----

  // Answers every service decision so far that was not answered yet, in order.
  void serve() {
    while (!services.empty()) {
      const sched::Decision next = services.front();
      services.pop_front();
      serve_one(next);
    }
  }

  // Starts and finishes everything that is in flight, lowest attempt first, until nothing is.
  // False: the core gave nothing more to do and the run has not ended.
  bool run() {
    auto_serve = true;
    serve();
    while (!core.ended()) {
      schedule();
      serve();
      if (core.ended()) {
        break;
      }
      const int next = lowest_in_flight();
      if (next < 0) {
        return false;
      }
      if (state(next) == sched::InstanceState::kAssigned) {
        start(next);
      }
      serve();
      if (attempt(next).valid()) {
        finish(next);
      }
    }
    return true;
  }

  // ---- queries ----

  [[nodiscard]] sched::InstanceState state(int instance) const {
    return core.state(sched::InstanceId(instance));
  }
  [[nodiscard]] sched::AttemptId attempt(int instance) const {
    return core.current_attempt(sched::InstanceId(instance));
  }
  [[nodiscard]] sched::WorkerId worker(int instance) const {
    return core.worker_of(sched::InstanceId(instance));
  }
  template <class D>
  [[nodiscard]] std::vector<D> all(size_t since = 0) const {
    std::vector<D> found;
    for (size_t i = since; i < log.size(); ++i) {
      if (const D* it = std::get_if<D>(&log[i])) {
        found.push_back(*it);
      }
    }
    return found;
  }
  [[nodiscard]] sched::Outcome outcome() const {
    REQUIRE(!log.empty());
    const auto* end = std::get_if<sched::decision::RunEnded>(&log.back());
    REQUIRE(end != nullptr);
    return end->outcome;
  }
  // What the journal would tell the next submission, with durability as the core knows it.
  [[nodiscard]] std::vector<sched::event::Restored> journal() const {
    std::vector<sched::event::Restored> facts;
    for (const auto& [instance, done] : last_done) {
      sched::event::Restored fact{instance, done.key, done.outputs, {}};
      for (const sched::ObjectId object : graph.objects_of(instance)) {
        fact.durable.push_back(core.durable(object));
      }
      facts.push_back(std::move(fact));
    }
    return facts;
  }
  void restore(const std::vector<sched::event::Restored>& facts) {
    for (const sched::event::Restored& fact : facts) {
      apply(fact);
    }
  }

  sched::Graph graph;
  sched::Core core;
  sched::Instant now;
  std::vector<sched::Decision> log;
  std::vector<int> successes;  // per instance: attempts that succeeded
  bool auto_serve = false;
  bool disk_full = false;  // saving fails
  std::function<sched::Hash128(sched::InstanceId, size_t)> content_of;
  std::function<sched::Duration(sched::InstanceId)> wall_of = [](sched::InstanceId) {
    return sched::seconds(1);
  };
  std::map<sched::InstanceId, sched::decision::InstanceDone> last_done;
  std::deque<sched::Decision> services;

  [[nodiscard]] int lowest_in_flight() const {
    int best = -1;
    for (size_t i = 0; i < graph.instance_count(); ++i) {
      const int instance = static_cast<int>(i);
      if (attempt(instance).valid() && (best < 0 || attempt(instance) < attempt(best))) {
        best = instance;
      }
    }
    return best;
  }

  void serve_one(const sched::Decision& decision) {
    if (const auto* save = std::get_if<sched::decision::SaveObject>(&decision)) {
      if (disk_full) {
        apply(sched::event::ObjectSaveFailed{save->worker, save->object, save->save, "disk full"});
      } else {
        apply(sched::event::ObjectSaved{save->worker, save->object, save->save});
      }
    } else if (const auto* commit = std::get_if<sched::decision::CommitObject>(&decision)) {
      apply(sched::event::ObjectCommitted{commit->object});
    } else if (const auto* back = std::get_if<sched::decision::TakeBack>(&decision)) {
      apply(sched::event::AttemptReturned{back->worker, back->attempt, {}});
    } else if (const auto* stop = std::get_if<sched::decision::StopAttempt>(&decision)) {
      apply(sched::event::AttemptStopped{stop->worker, stop->attempt, {}});
    }
  }

 private:
  void after(size_t before) {
    core.check_invariants();
    for (size_t i = before; i < log.size(); ++i) {
      if (const auto* done = std::get_if<sched::decision::InstanceDone>(&log[i])) {
        last_done[done->instance] = *done;
      }
      const bool service = std::holds_alternative<sched::decision::SaveObject>(log[i]) ||
                           std::holds_alternative<sched::decision::CommitObject>(log[i]) ||
                           std::holds_alternative<sched::decision::TakeBack>(log[i]) ||
                           std::holds_alternative<sched::decision::StopAttempt>(log[i]);
      if (service) {
        services.push_back(log[i]);
      }
    }
    if (auto_serve && !serving_) {
      serving_ = true;
      serve();
      serving_ = false;
    }
  }

  bool serving_ = false;
};

}  // namespace sluice::tests
