#include "engine/run_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include "engine/cli.h"
#include "engine/provenance.h"
#include "engine/query.h"
#include "engine/recorded_spec.h"

namespace sluice::engine {

namespace {

using io::RunLedger;
using scheduler::Duration;
using scheduler::GateId;
using scheduler::GroupId;
using scheduler::InstanceId;

constexpr size_t kSlowestShown = 10;
constexpr int64_t kMemoryStep = 64LL << 20U;  // suggestions are rounded up to it
constexpr double kRoom = 1.2;                 // left above the most that was seen

bool is_done(const RunLedger::Instance& instance) {
  return instance.state == RunLedger::State::kDone;
}

// -- submissions
// --------------------------------------------------------------------------------------------------

// Longest path through the graph, an instance counting what it took if this submission finished it.
// Order without data counts as much as data: whoever waits at a gate cannot start earlier.
class CriticalPaths {
 public:
  CriticalPaths(const RunLedger& ledger, const io::Pipeline& pipeline)
      : graph_(pipeline.graph), facts_(graph_.instance_count(), nullptr) {
    for (const RunLedger::Instance& instance : ledger.instances) {
      if (!is_done(instance)) continue;
      const InstanceId id = pipeline.find(ledger.tasks[instance.task], std::string(instance.item));
      if (id.valid()) facts_[id.index()] = &instance;
    }
    sort();
  }
  [[nodiscard]] Duration of(uint32_t submission) const {
    Ends ends(graph_);
    Duration longest;
    for (const InstanceId id : order_) {
      Duration end;
      for (const GroupId group : graph_.inputs(id)) end = std::max(end, group_end(ends, group));
      for (const GateId gate : graph_.gates_before(id)) end = std::max(end, gate_end(ends, gate));
      const RunLedger::Instance* facts = facts_[id.index()];
      if (facts != nullptr && facts->attempt.epoch() == submission) end = end + facts->usage.wall;
      ends.instances[id.index()] = end;
      longest = std::max(longest, end);
    }
    return longest;
  }

 private:
  // How long the longest path is that ends there. A group's and a gate's is looked for when it is
  // first asked for and then kept: A producers and B consumers cost |A| + |B|, not |A| × |B|.
  struct Ends {
    explicit Ends(const scheduler::Graph& graph)
        : instances(graph.instance_count()),
          groups(graph.group_count()),
          gates(graph.gate_count()) {}
    std::vector<Duration> instances;
    std::vector<std::optional<Duration>> groups;
    std::vector<std::optional<Duration>> gates;
  };
  [[nodiscard]] Duration group_end(Ends& ends, GroupId group) const {
    std::optional<Duration>& end = ends.groups[group.index()];
    if (end) return *end;
    end.emplace();
    for (const scheduler::ObjectId object : graph_.group_objects(group)) {
      end = std::max(*end, ends.instances[graph_.producer(object).index()]);
    }
    return *end;
  }
  [[nodiscard]] Duration gate_end(Ends& ends, GateId gate) const {
    std::optional<Duration>& end = ends.gates[gate.index()];
    if (end) return *end;
    end.emplace();
    for (const InstanceId predecessor : graph_.gate_predecessors(gate)) {
      end = std::max(*end, ends.instances[predecessor.index()]);
    }
    return *end;
  }

  // What is not in order_ yet: of groups and gates, those before them; of instances, the groups and
  // gates that are not complete.
  struct Missing {
    std::vector<size_t> instances, groups, gates;
  };
  [[nodiscard]] Missing count_missing() const {
    Missing missing;
    for (size_t g = 0; g < graph_.group_count(); ++g) {
      missing.groups.push_back(graph_.group_objects(GroupId(g)).size());
    }
    for (size_t g = 0; g < graph_.gate_count(); ++g) {
      missing.gates.push_back(graph_.gate_predecessors(GateId(g)).size());
    }
    for (size_t i = 0; i < graph_.instance_count(); ++i) {
      size_t& count = missing.instances.emplace_back();
      for (const GroupId group : graph_.inputs(InstanceId(i))) {
        count += missing.groups[group.index()] > 0 ? 1 : 0;
      }
      for (const GateId gate : graph_.gates_before(InstanceId(i))) {
        count += missing.gates[gate.index()] > 0 ? 1 : 0;
      }
    }
    return missing;
  }

  // Producers before consumers, predecessors before successors.
  void sort() {
    Missing missing = count_missing();
    const auto one_less = [&](std::span<const InstanceId> waiting) {
      for (const InstanceId id : waiting) {
        if (--missing.instances[id.index()] == 0) order_.push_back(id);
      }
    };
    for (size_t i = 0; i < graph_.instance_count(); ++i) {
      if (missing.instances[i] == 0) order_.push_back(InstanceId(i));
    }
    for (size_t at = 0; at < order_.size(); ++at) {
      const InstanceId next = order_[at];  // by value: the vector grows
      for (const scheduler::ObjectId object : graph_.objects_of(next)) {
        for (const GroupId group : graph_.object_groups(object)) {
          if (--missing.groups[group.index()] == 0) one_less(graph_.group_consumers(group));
        }
      }
      for (const GateId gate : graph_.gates_behind(next)) {
        if (--missing.gates[gate.index()] == 0) one_less(graph_.gate_successors(gate));
      }
    }
  }

  const scheduler::Graph& graph_;
  std::vector<const RunLedger::Instance*> facts_;  // by instance; null: not finished
  std::vector<InstanceId> order_;
};

SubmissionReport report_submission(const RunLedger::Submission& facts) {
  SubmissionReport report;
  report.submission = facts.run.epoch;
  report.outcome = facts.end ? facts.end->outcome : "killed";
  report.host = facts.run.host;
  report.begin_ms = facts.run.unix_time_ms;
  report.end_ms = std::max(facts.last_time_ms, report.begin_ms);
  report.done = facts.done;
  report.failed_attempts = facts.failed_attempts;
  report.workers = facts.workers.size();
  report.lost_workers = facts.lost_workers;
  for (const io::record::Worker& worker : facts.workers) report.cores += worker.resources.cpus;
  report.makespan = scheduler::milliseconds(report.end_ms - report.begin_ms);
  report.work = facts.busy;
  return report;
}

// -- requested versus used
// ----------------------------------------------------------------------------------------

template <class Value>
Value median(std::vector<Value>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Samples {
  std::vector<double> cpus;
  std::vector<int64_t> memory, wall_ns;
};

std::string mebibytes(int64_t bytes) {
  return std::to_string((bytes + (1 << 20) - 1) / (1 << 20)) + "MiB";
}

void suggest(UsageReport& report) {
  if (report.n < kSuggestionSamples) return;
  const auto most = static_cast<double>(report.memory_max_bytes);
  const int64_t wanted = (static_cast<int64_t>(most * kRoom) / kMemoryStep + 1) * kMemoryStep;
  const auto asked = static_cast<double>(report.memory_bytes);
  if (report.memory_bytes > 0 && report.memory_max_bytes > 0 &&
      (most * kRoom > asked || static_cast<double>(wanted) * 2 < asked)) {
    report.suggestions.push_back("memory: " + mebibytes(wanted) + " instead of " +
                                 mebibytes(report.memory_bytes));
  }
  const auto cpus = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(report.cpus_max - 0.1)));
  if (report.cpus > cpus) {
    report.suggestions.push_back("cpus: " + std::to_string(cpus) + " instead of " +
                                 std::to_string(report.cpus));
  }
  const int64_t wall_ms = report.wall_max.ns / 1'000'000;
  if (report.timeout_ms > 0 && wall_ms * 10 > report.timeout_ms * 9) {
    report.suggestions.push_back("timeout: the longest came within a tenth of it");
  }
}

std::vector<UsageReport> report_usage(const RunLedger& ledger) {
  std::vector<Samples> samples(ledger.tasks.size());
  for (const RunLedger::Instance& instance : ledger.instances) {
    if (!is_done(instance) || instance.gone) continue;
    Samples& task = samples[instance.task];
    task.memory.push_back(instance.usage.memory_peak_bytes);
    task.wall_ns.push_back(instance.usage.wall.ns);
    const auto wall = static_cast<double>(std::max<int64_t>(1, instance.usage.wall.ns));
    task.cpus.push_back(static_cast<double>(instance.usage.cpu.ns) / wall);
  }
  std::vector<UsageReport> reports;
  for (const io::record::RunTask& asked : ledger.newest().run.tasks) {
    const auto found = std::find(ledger.tasks.begin(), ledger.tasks.end(), asked.name);
    Samples& task = samples[static_cast<size_t>(found - ledger.tasks.begin())];
    UsageReport report;
    report.task = asked.name;
    report.n = task.cpus.size();
    report.cpus = asked.cpus;
    report.memory_bytes = asked.memory_bytes;
    report.timeout_ms = asked.timeout_ms;
    if (report.n > 0) {
      report.cpus_max = *std::max_element(task.cpus.begin(), task.cpus.end());
      report.cpus_median = median(task.cpus);
      report.memory_max_bytes = *std::max_element(task.memory.begin(), task.memory.end());
      report.memory_median_bytes = median(task.memory);
      report.wall_max = {*std::max_element(task.wall_ns.begin(), task.wall_ns.end())};
      report.wall_median = {median(task.wall_ns)};
    }
    suggest(report);
    reports.push_back(std::move(report));
  }
  return reports;
}

std::vector<CauseReport> report_causes(const RunLedger& ledger) {
  std::map<std::pair<uint32_t, std::string>, CauseReport> by_cause;
  for (uint32_t f = 0; f < ledger.failures.size(); ++f) {
    const RunLedger::Failure& failure = ledger.failures[f];
    const RunLedger::Instance& instance = ledger.instances[failure.instance];
    CauseReport& report = by_cause[{instance.task, cause_text(failure)}];
    report.task = ledger.tasks[instance.task];
    report.cause = cause_text(failure);
    ++report.attempts;
    const bool now = instance.state == RunLedger::State::kFailed && instance.last_failure == f;
    report.instances += now && !instance.gone ? 1 : 0;
  }
  std::vector<CauseReport> causes;
  causes.reserve(by_cause.size());
  for (auto& [key, report] : by_cause) causes.push_back(std::move(report));
  std::stable_sort(causes.begin(), causes.end(),
                   [](const auto& a, const auto& b) { return a.attempts > b.attempts; });
  return causes;
}

std::vector<uint32_t> find_slowest(const RunLedger& ledger) {
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < ledger.instances.size(); ++i) {
    if (is_done(ledger.instances[i]) && !ledger.instances[i].gone) all.push_back(i);
  }
  const size_t shown = std::min(all.size(), kSlowestShown);
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(shown), all.end(),
                    [&](uint32_t a, uint32_t b) {
                      const auto wall = [&](uint32_t i) { return ledger.instances[i].usage.wall; };
                      return std::pair(wall(b), a) < std::pair(wall(a), b);
                    });
  all.resize(shown);
  return all;
}

}  // namespace

Duration SubmissionReport::bound() const {
  const Duration by_work{cores == 0 ? 0 : work.ns / cores};
  return std::max(by_work, critical_path.value_or(Duration{}));
}

double SubmissionReport::utilisation() const {
  const double room = static_cast<double>(makespan.ns) * static_cast<double>(cores);
  return room <= 0 ? 0 : static_cast<double>(work.ns) / room;
}

RunReport make_report(const RunLedger& ledger, const io::Pipeline* pipeline) {
  RunReport report;
  std::optional<CriticalPaths> paths;
  if (pipeline != nullptr) paths.emplace(ledger, *pipeline);
  for (const RunLedger::Submission& facts : ledger.submissions) {
    report.submissions.push_back(report_submission(facts));
    if (paths) report.submissions.back().critical_path = paths->of(facts.run.epoch);
  }
  report.usage = report_usage(ledger);
  report.causes = report_causes(ledger);
  report.slowest = find_slowest(ledger);
  return report;
}

int show_report(const Options& options) {
  const RunDirectory directory = options.directory();
  const auto ledger = io::read_ledger(directory.path);
  if (!ledger) return complain(ledger.error().message, kQueryEnvironment);
  if (ledger->submissions.empty()) return complain_no_run(directory);
  const auto pipeline = read_recorded_spec(directory, ledger->newest().run);
  if (!pipeline) {
    std::cerr << "sluice: warn: " << pipeline.error().message
              << "; what needs it (critical path, commands, inputs) is left out\n";
  }
  const io::Pipeline* spec = pipeline ? &*pipeline : nullptr;
  if (!options.provenance.empty()) return show_provenance(options, directory, *ledger, spec);
  const RunReport report = make_report(*ledger, spec);
  if (options.json) {
    std::cout << report_as_json(report, *ledger, directory);
  } else {
    print_report(report, *ledger, std::cout);
  }
  return kQueryDone;
}

}  // namespace sluice::engine
