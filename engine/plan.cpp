#include "engine/plan.h"

#include <algorithm>
#include <array>
#include <iostream>
#include <map>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/ahead.h"
#include "engine/cli.h"
#include "engine/estimate.h"
#include "engine/forecast.h"
#include "engine/query.h"
#include "engine/report.h"
#include "engine/topology.h"
#include "io/spec_describe.h"

namespace sluice::engine {

using nlohmann::ordered_json;
using scheduler::InstanceId;
using scheduler::TaskId;

namespace {

constexpr size_t kKinds = 4;
constexpr std::array<const char*, kKinds> kKindKeys = {"will_run", "may_run", "up_to_date",
                                                       "left_out"};
constexpr size_t kCommandsShown = 5;  // of each task with -v; -vv shows all
constexpr int kFormat = 1;            // of the JSON

using Counts = std::array<size_t, kKinds>;  // by Verdict::Kind

size_t index_of(Verdict::Kind kind) { return static_cast<size_t>(kind); }
bool runs(Verdict::Kind kind) { return kind <= Verdict::Kind::kMayRun; }

struct ReasonCount {
  Verdict::Kind kind;
  std::string reason;
  size_t count = 0;
};

struct TaskPlan {
  Counts counts{};
  std::vector<ReasonCount> reasons;
  std::vector<InstanceId> shown;  // whose commands are shown
  size_t not_shown = 0;
};

struct Plan {
  Counts counts{};
  std::vector<TaskPlan> tasks;  // by TaskId
  std::vector<io::TaskDescription> descriptions;
  std::vector<LearnedDuration> learned;
  MachineShape machine;
  bool this_machine = true;
  // Of what will run; and of that with all that may run, when there is such.
  std::optional<Estimate> will, all;
  std::vector<std::string> unknown_tasks;  // that run, and of which no duration is known
};

// Instances with the same reason, whatever instance of a task it names: "4 × it waits for 'make'".
std::vector<ReasonCount> group_reasons(const io::Pipeline& pipeline, const Forecast& forecast,
                                       const scheduler::TaskSpec& task) {
  using Group = std::tuple<Verdict::Kind, Verdict::Reason, TaskId, size_t>;
  std::map<Group, std::pair<size_t, const Verdict*>> groups;
  for (uint32_t i = 0; i < task.instance_count; ++i) {
    const Verdict& verdict = forecast.verdicts[task.first_instance.index() + i];
    if (!runs(verdict.kind)) continue;
    const TaskId other = verdict.other.valid() ? pipeline.graph.task_of(verdict.other) : TaskId();
    const size_t output = verdict.object.valid() ? pipeline.graph.output_index(verdict.object) : 0;
    auto& group = groups[{verdict.kind, verdict.reason, other, output}];
    ++group.first;
    group.second = &verdict;
  }
  std::vector<ReasonCount> reasons;
  reasons.reserve(groups.size());
  for (const auto& [key, group] : groups) {
    reasons.push_back({std::get<Verdict::Kind>(key),
                       reason_text(pipeline, *group.second, Naming::kTasks), group.first});
  }
  return reasons;
}

// -v: the first that run; -vv: every instance.
void choose_shown(const Forecast& forecast, const scheduler::TaskSpec& task, int verbosity,
                  TaskPlan& plan) {
  for (uint32_t i = 0; verbosity > 0 && i < task.instance_count; ++i) {
    const InstanceId instance(task.first_instance.index() + i);
    const bool told = runs(forecast.verdicts[instance.index()].kind);
    if (verbosity == 1 && (!told || plan.shown.size() == kCommandsShown)) {
      ++plan.not_shown;
    } else {
      plan.shown.push_back(instance);
    }
  }
}

std::optional<Estimate> estimate_of(const io::Pipeline& pipeline, const Forecast& forecast,
                                    const Plan& plan, Verdict::Kind last) {
  std::vector<bool> chosen;
  for (const Verdict& verdict : forecast.verdicts) chosen.push_back(verdict.kind <= last);
  if (std::find(chosen.begin(), chosen.end(), true) == chosen.end()) return {};
  return estimate(part_of(pipeline.graph, chosen, plan.learned), plan.machine);
}

Status find_machine(const Options& options, Plan& plan) {
  plan.this_machine = options.workers == 0 && options.cores == 0;
  if (options.workers > 0) plan.machine.workers = options.workers;
  plan.machine.each.cpus = options.cores;
  if (options.cores > 0) return Done{};
  const auto node = read_node();
  if (!node) return node.error();
  plan.machine.each.cpus = static_cast<int32_t>(node->cores.size());
  if (plan.this_machine) plan.machine.each.memory_bytes = node->memory_bytes;
  return Done{};
}

Expected<Plan> make_plan(const io::Pipeline& pipeline, const Forecast& forecast,
                         const Options& options) {
  Plan plan;
  plan.descriptions = io::describe(pipeline);
  plan.learned = forecast.learned;
  for (size_t t = 0; t < pipeline.graph.task_count(); ++t) {
    const scheduler::TaskSpec& task = pipeline.graph.task(TaskId(t));
    TaskPlan one;
    for (uint32_t i = 0; i < task.instance_count; ++i)
      ++one.counts[index_of(forecast.verdicts[task.first_instance.index() + i].kind)];
    for (size_t kind = 0; kind < kKinds; ++kind) plan.counts[kind] += one.counts[kind];
    one.reasons = group_reasons(pipeline, forecast, task);
    choose_shown(forecast, task, options.verbosity, one);
    const size_t running = one.counts[index_of(Verdict::Kind::kWillRun)] +
                           one.counts[index_of(Verdict::Kind::kMayRun)];
    if (running > 0 && plan.learned[t].samples == 0) plan.unknown_tasks.push_back(task.name);
    plan.tasks.push_back(std::move(one));
  }
  if (Status found = find_machine(options, plan); !found) return found.error();
  plan.will = estimate_of(pipeline, forecast, plan, Verdict::Kind::kWillRun);
  if (plan.counts[index_of(Verdict::Kind::kMayRun)] > 0)
    plan.all = estimate_of(pipeline, forecast, plan, Verdict::Kind::kMayRun);
  return plan;
}

// -- text -----------------------------------------------------------------------------------------

std::string counts_text(const Counts& counts) {
  std::string text;
  for (size_t kind = 0; kind < kKinds; ++kind) {
    if (counts[kind] == 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(counts[kind]) + " " +
            verdict_name(static_cast<Verdict::Kind>(kind));
  }
  return text;
}

std::string listed(const std::vector<std::string>& texts, const char* between) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : between) + text;
  return out;
}

// What a command's text does not show yet: values that other tasks make.
std::vector<std::string> decided_later(const io::Pipeline& pipeline, TaskId task) {
  std::vector<std::string> texts;
  for (const io::TaskInput& input : pipeline.tasks[task.index()].inputs) {
    if (input.join == io::JoinKind::kSource) continue;
    const scheduler::TaskSpec& producer = pipeline.graph.task(input.producer);
    const scheduler::OutputSpec& output = producer.outputs[input.output];
    if (output.kind == scheduler::OutputKind::kValue)
      texts.push_back("in." + input.name + " after '" + producer.name + "'");
  }
  return texts;
}

void print_script(const std::string& script) {
  size_t begin = 0;
  while (begin < script.size()) {
    const size_t end = std::min(script.find('\n', begin), script.size());
    std::cout << "      | " << script.substr(begin, end - begin) << "\n";
    begin = end + 1;
  }
}

void print_details(const io::Pipeline& pipeline, const Forecast& forecast, const Plan& plan,
                   TaskId task) {
  const io::TaskDescription& description = plan.descriptions[task.index()];
  const TaskPlan& one = plan.tasks[task.index()];
  std::cout << "    as read: " << listed(description.rules, "; ") << "\n";
  std::cout << "    runs by: " << description.way << "\n";
  const std::vector<std::string> later = decided_later(pipeline, task);
  if (!later.empty()) std::cout << "    values known later: " << listed(later, ", ") << "\n";
  const bool script = description.way != "no shell";
  if (script && description.instances > 0)
    print_script(pipeline.command_text(pipeline.graph.instance(task, 0)));
  for (const InstanceId instance : one.shown) {
    std::cout << "      " << pipeline.label(instance) << ": "
              << verdict_name(forecast.verdicts[instance.index()].kind);
    if (!script) std::cout << ": " << pipeline.command_text(instance);
    std::cout << "\n";
  }
  if (one.not_shown > 0) std::cout << "      … and " << one.not_shown << " more (-vv shows all)\n";
}

std::string machine_text(const Plan& plan) {
  std::string text = counted(plan.machine.workers, "worker") + " with " +
                     counted(static_cast<size_t>(plan.machine.each.cpus), "core");
  if (plan.machine.workers > 1) text += " each";
  return text + (plan.this_machine ? " (this machine)" : "");
}

std::string known_text(const Plan& plan) {
  if (plan.unknown_tasks.empty()) return "with the median durations of earlier successes";
  return "with 1 s each for " + listed(plan.unknown_tasks, ", ") +
         ", of which no duration is known yet";
}

void print_estimate(const Plan& plan, const Estimate& one, const char* what) {
  std::cout << "estimate, " << what << ": ";
  if (one.simulated) {
    std::cout << "about " << duration_text(one.makespan);
  } else {
    std::cout << "not simulated (" << one.why_not << ")";
  }
  std::cout << " on " << machine_text(plan) << ", at least " << duration_text(one.bound())
            << " (critical path " << duration_text(one.critical_path) << ", work over all cores "
            << duration_text(one.work_bound) << ")\n";
}

void print_plan(const io::Pipeline& pipeline, const Forecast& forecast, const Plan& plan,
                int verbosity) {
  std::cout << pipeline.name << ": " << io::count_text(pipeline) << ": " << counts_text(plan.counts)
            << "\n";
  for (size_t t = 0; t < plan.tasks.size(); ++t) {
    const TaskPlan& one = plan.tasks[t];
    const io::TaskDescription& description = plan.descriptions[t];
    std::cout << description.name << ": " << counted(description.instances, "instance")
              << (description.instances > 0 ? ", " : "") << counts_text(one.counts) << "\n";
    for (const ReasonCount& reason : one.reasons)
      std::cout << "    " << reason.count << " × " << reason.reason << "\n";
    for (const io::InputDescription& input : description.inputs) {
      std::cout << "    " << input.name << ": " << input.source << ", " << io::edge_text(input)
                << "\n";
    }
    if (verbosity > 0) print_details(pipeline, forecast, plan, TaskId(t));
  }
  if (plan.will) print_estimate(plan, *plan.will, "of what will run");
  if (plan.all) print_estimate(plan, *plan.all, "if all that may run does");
  if (plan.will || plan.all) std::cout << "    " << known_text(plan) << "\n";
}

// -- JSON -----------------------------------------------------------------------------------------

ordered_json counts_json(const Counts& counts) {
  ordered_json json;
  for (size_t kind = 0; kind < kKinds; ++kind) json[kKindKeys[kind]] = counts[kind];
  return json;
}

ordered_json estimate_json(const Estimate& one) {
  ordered_json json;
  json["simulated"] = one.simulated;
  if (one.simulated) json["makespan_ms"] = one.makespan.ns / 1'000'000;
  if (!one.simulated) json["why_not"] = one.why_not;
  json["bound_ms"] = one.bound().ns / 1'000'000;
  json["critical_path_ms"] = one.critical_path.ns / 1'000'000;
  json["work_bound_ms"] = one.work_bound.ns / 1'000'000;
  return json;
}

ordered_json task_json(const io::Pipeline& pipeline, const Forecast& forecast, const Plan& plan,
                       TaskId task) {
  const io::TaskDescription& description = plan.descriptions[task.index()];
  const TaskPlan& one = plan.tasks[task.index()];
  const LearnedDuration& learned = plan.learned[task.index()];
  ordered_json json = {{"task", description.name}, {"instances", description.instances}};
  json.update(counts_json(one.counts));
  json["reasons"] = ordered_json::array();
  for (const ReasonCount& reason : one.reasons) {
    json["reasons"].push_back({{"verdict", kKindKeys[index_of(reason.kind)]},
                               {"reason", reason.reason},
                               {"count", reason.count}});
  }
  json["inputs"] = ordered_json::array();
  for (const io::InputDescription& input : description.inputs) {
    json["inputs"].push_back({{"name", input.name},
                              {"source", input.source},
                              {"join", input.join},
                              {"producers", input.producers},
                              {"consumers", input.consumers}});
  }
  json["way"] = description.way;
  json["rules"] = description.rules;
  json["median_ms"] = learned.samples > 0 ? ordered_json(learned.median.ns / 1'000'000) : nullptr;
  json["samples"] = learned.samples;
  for (const InstanceId instance : one.shown) {
    json["commands"].push_back(
        {{"instance", pipeline.label(instance)},
         {"verdict", kKindKeys[index_of(forecast.verdicts[instance.index()].kind)]},
         {"command", pipeline.command_text(instance)}});
  }
  return json;
}

ordered_json plan_json(const io::Pipeline& pipeline, const Forecast& forecast, const Plan& plan) {
  ordered_json json = {{"version", kFormat},
                       {"pipeline", pipeline.name},
                       {"instances", pipeline.graph.instance_count()}};
  json.update(counts_json(plan.counts));
  json["tasks"] = ordered_json::array();
  for (size_t t = 0; t < plan.tasks.size(); ++t)
    json["tasks"].push_back(task_json(pipeline, forecast, plan, TaskId(t)));
  json["machine"] = {{"workers", plan.machine.workers},
                     {"cpus", plan.machine.each.cpus},
                     {"this_machine", plan.this_machine}};
  json["estimate"] = plan.will ? estimate_json(*plan.will) : nullptr;
  json["estimate_all"] = plan.all ? estimate_json(*plan.all) : nullptr;
  json["unknown_durations"] = plan.unknown_tasks;
  return json;
}

}  // namespace

int plan_pipeline(const Options& options) {
  io::Diagnostics diagnostics;
  const auto pipeline = read_and_print(options, diagnostics);
  if (!pipeline) return kQueryUsage;
  const auto selection = select(*pipeline, options.selection);
  if (!selection) return complain(selection.error().message, kQueryUsage);
  if (!options.failures_max.empty()) {  // of run -n
    const auto most = failures_max(options.failures_max, selection->count(*pipeline));
    if (!most) return complain(most.error().message, kQueryUsage);
  }
  const auto forecast = make_forecast(*pipeline, options.directory(), *selection, options.fresh);
  if (!forecast) return complain(forecast.error().message, kQueryEnvironment);
  const auto plan = make_plan(*pipeline, *forecast, options);
  if (!plan) return complain(plan.error().message, kQueryEnvironment);
  if (options.json) {
    std::cout << plan_json(*pipeline, *forecast, *plan)
                     .dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
              << "\n";
  } else {
    print_plan(*pipeline, *forecast, *plan, options.verbosity);
  }
  return kQueryDone;
}

}  // namespace sluice::engine
