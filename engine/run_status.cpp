#include "engine/run_status.h"

#include <nlohmann/json.hpp>

#include "engine/clock.h"
#include "engine/turn_watch.h"

namespace sluice::engine {

using nlohmann::ordered_json;
using scheduler::InstanceId;
using scheduler::InstanceState;

namespace {

constexpr size_t kRunningNamed = 200;

ordered_json running_json(const RunStatus& status, const io::Pipeline& pipeline,
                          const scheduler::Core& core, InstanceId instance) {
  const scheduler::AttemptId attempt = core.current_attempt(instance);
  return {{"task", pipeline.graph.task(pipeline.graph.task_of(instance)).name},
          {"item", pipeline.item(instance)},
          {"attempt", std::to_string(attempt.epoch()) + "." + std::to_string(attempt.number())},
          {"host", status.host_of(core.worker_of(instance))}};
}

void add_task(scheduler::TaskId id, const RunStatus& status, const io::Pipeline& pipeline,
              const scheduler::Core& core, ordered_json& json) {
  const scheduler::TaskSpec& task = pipeline.graph.task(id);
  size_t running = 0;
  size_t done = 0;
  size_t failed = 0;
  size_t skipped = 0;
  size_t left_out = 0;
  for (uint32_t i = 0; i < task.instance_count; ++i) {
    const InstanceId instance = pipeline.graph.instance(id, i);
    const InstanceState state = core.state(instance);
    done += state == InstanceState::kDone ? 1 : 0;
    failed += state == InstanceState::kFailed ? 1 : 0;
    skipped += state == InstanceState::kSkipped ? 1 : 0;
    left_out += state == InstanceState::kLeftOut ? 1 : 0;
    if (state != InstanceState::kRunning) continue;
    ++running;
    if (json["running"].size() >= kRunningNamed) continue;
    json["running"].push_back(running_json(status, pipeline, core, instance));
  }
  json["tasks"].push_back({{"task", task.name},
                           {"instances", task.instance_count},
                           {"running", running},
                           {"done", done},
                           {"failed", failed},
                           {"skipped", skipped},
                           {"left_out", left_out}});
}

}  // namespace

ordered_json status_json(const RunStatus& status, const io::Pipeline& pipeline,
                         const scheduler::Core& core) {
  ordered_json json;
  json["version"] = 1;
  json["pipeline"] = pipeline.name;
  json["run_uuid"] = status.run_uuid;
  json["epoch"] = status.epoch;
  json["time_ms"] = Clock::unix_time_ms();
  json["state"] = status.state;
  json["instances"] = pipeline.graph.instance_count();
  json["results_pending"] = core.counts().results_pending;
  json["workers"] = status.workers;
  if (status.watch != nullptr) {
    json["control_thread"] = {{"turns", status.watch->turns()},
                              {"blocked_over_1_ms", status.watch->blocked()},
                              {"longest_blocked_ms", status.watch->longest().ns / 1'000'000}};
  }
  json["tasks"] = ordered_json::array();
  json["running"] = ordered_json::array();
  for (size_t t = 0; t < pipeline.graph.task_count(); ++t) {
    add_task(scheduler::TaskId(t), status, pipeline, core, json);
  }
  return json;
}

}  // namespace sluice::engine
