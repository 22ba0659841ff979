#include "engine/executor_model.h"

#include "scheduler/check.h"
#include "scheduler/ranking.h"

namespace sluice::engine {

using scheduler::AttemptId;
using scheduler::Duration;
using scheduler::Graph;
using scheduler::GroupId;
using scheduler::Hash128;
using scheduler::InstanceId;
using scheduler::ObjectId;
using scheduler::OutputKind;
using scheduler::OutputReport;

namespace {

// What a draw is about, so that draws about one id do not follow from each other. Callers from
// outside use numbers above these.
enum Subject : uint64_t {
  kCrash = 1,
  kCrashKind,
  kCrashTime,
  kDoomed,
  kHang,
  kIgnoresStop,
  kBadOutput,
  kRunTime,
  kBytes,
  kStage,
  kFetch,
  kSave,
  kPart,
};

std::string value_text(const Hash128& content) { return std::to_string(content.low); }

}  // namespace

uint64_t ExecutorModel::draw(uint64_t subject, uint64_t object, uint64_t bound) const {
  SLUICE_ASSERT(bound > 0, subject);
  using scheduler::mix64;
  return mix64(options_.seed ^ mix64(subject ^ mix64(object))) % bound;
}

bool ExecutorModel::chance(uint32_t permille, uint64_t subject, uint64_t object) const {
  return permille > 0 && draw(subject, object, 1000) < permille;
}

int64_t ExecutorModel::between(int64_t low, int64_t high, uint64_t subject, uint64_t object) const {
  SLUICE_ASSERT(low <= high, low, high);
  return low + static_cast<int64_t>(draw(subject, object, static_cast<uint64_t>(high - low) + 1));
}

bool ExecutorModel::doomed(InstanceId instance) const {
  return chance(options_.doomed_permille, kDoomed, instance.value);
}

ModelledRun ExecutorModel::run(const Graph& graph, InstanceId instance, AttemptId attempt) const {
  const Duration expected = graph.task(graph.task_of(instance)).expected;
  const bool known = expected > Duration{};
  const int64_t low = known ? expected.ns / 2 : options_.run_min.ns;
  const int64_t high = known ? expected.ns / 2 * 3 : options_.run_max.ns;
  ModelledRun run;
  run.runs = {between(low, high, kRunTime, instance.value)};
  if (options_.exact) run.runs = known ? expected : scheduler::kExpectedWhenUnknown;
  run.hangs = chance(options_.hang_permille, kHang, attempt.value);
  run.ignores_stop = chance(options_.ignores_stop_permille, kIgnoresStop, attempt.value);
  run.bad_output = chance(options_.bad_output_permille, kBadOutput, attempt.value);
  if (doomed(instance) || chance(options_.crash_permille, kCrash, attempt.value)) {
    run.runs = {between(0, run.runs.ns, kCrashTime, attempt.value)};
    constexpr int32_t kSegmentationFault = 11;
    (draw(kCrashKind, attempt.value, 2) == 0 ? run.exit_code : run.signal) = kSegmentationFault;
  }
  return run;
}

std::vector<OutputReport> ExecutorModel::outputs(const Graph& graph, InstanceId instance,
                                                 std::span<const Hash128> inputs) const {
  Hash128 work = graph.static_key(instance);
  for (const Hash128& input : inputs) work = combine(work, input);
  std::vector<OutputReport> reports;
  for (const ObjectId object : graph.objects_of(instance)) {
    OutputReport report;
    report.content = combine(work, {reports.size() + 1, 0});
    report.bytes = between(options_.bytes_min, options_.bytes_max, kBytes, object.value);
    if (graph.output(object).kind == OutputKind::kValue) {
      report.value = value_text(report.content);
      report.bytes = static_cast<int64_t>(report.value.size());
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

Duration ExecutorModel::transfer(int64_t bytes) const {
  constexpr int64_t kLatency = 20'000;
  constexpr int64_t kMicrosecond = 1000;
  const int64_t per_microsecond = options_.bytes_per_second / 1'000'000;
  return {kLatency + bytes / per_microsecond * kMicrosecond};
}

bool ExecutorModel::stage_fails(AttemptId attempt) const {
  return chance(options_.stage_failure_permille, kStage, attempt.value);
}

bool ExecutorModel::fetch_fails(ObjectId object, uint64_t nth) const {
  return chance(options_.fetch_failure_permille, kFetch, (nth << 32U) | object.value);
}

bool ExecutorModel::reads_part(InstanceId instance, ObjectId object) const {
  return chance(options_.partial_permille, kPart, (uint64_t{instance.value} << 32U) | object.value);
}

bool ExecutorModel::save_fails(ObjectId object, AttemptId save) const {
  return chance(options_.save_failure_permille, kSave,
                save.value ^ (uint64_t{object.value} << 40U));
}

namespace {

// Instances in an order in which each comes after its producers.
std::vector<InstanceId> topological_order(const Graph& graph) {
  std::vector<size_t> group_left(graph.group_count());
  std::vector<size_t> instance_left(graph.instance_count());
  std::vector<InstanceId> order;
  const auto group_ready = [&](GroupId group) {
    for (const InstanceId consumer : graph.group_consumers(group)) {
      if (--instance_left[consumer.index()] == 0) order.push_back(consumer);
    }
  };
  for (size_t i = 0; i < graph.instance_count(); ++i) {
    instance_left[i] = graph.inputs(InstanceId(i)).size();
    if (instance_left[i] == 0) order.emplace_back(i);
  }
  for (size_t g = 0; g < graph.group_count(); ++g) {
    group_left[g] = graph.group_objects(GroupId(g)).size();
    if (group_left[g] == 0) group_ready(GroupId(g));
  }
  for (size_t next = 0; next < order.size(); ++next) {
    for (const ObjectId object : graph.objects_of(order[next])) {
      for (const GroupId group : graph.object_groups(object)) {
        if (--group_left[group.index()] == 0) group_ready(group);
      }
    }
  }
  SLUICE_ASSERT(order.size() == graph.instance_count(), order.size(), graph.instance_count());
  return order;
}

}  // namespace

std::vector<Hash128> expected_contents(const Graph& graph, const ExecutorModel& model) {
  std::vector<Hash128> contents(graph.object_count());
  for (const InstanceId instance : topological_order(graph)) {
    std::vector<Hash128> inputs;
    for (const GroupId group : graph.inputs(instance)) {
      for (const ObjectId object : graph.group_objects(group)) {
        inputs.push_back(contents[object.index()]);
      }
    }
    const std::vector<OutputReport> reports = model.outputs(graph, instance, inputs);
    size_t next = 0;
    for (const ObjectId object : graph.objects_of(instance)) {
      contents[object.index()] = reports[next++].content;
    }
  }
  return contents;
}

}  // namespace sluice::engine
