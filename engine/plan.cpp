#include "engine/plan.h"

#include <iostream>
#include <map>
#include <optional>

#include <nlohmann/json.hpp>

#include "engine/cli.h"
#include "engine/forecast.h"
#include "io/sources.h"
#include "io/spec.h"
#include "io/spec_describe.h"

namespace sluice::engine {

using scheduler::InstanceId;
using scheduler::TaskId;

namespace {

constexpr int kDone = 0;
constexpr int kUsage = 2;
constexpr int kEnvironmentUnusable = 3;

int complain(const std::string& text, int code) {
  std::cerr << "sluice: error: " << text << "\n";
  return code;
}

std::optional<io::Pipeline> read_quietly(const Options& options, io::Diagnostics& diagnostics) {
  io::FileSourceIds sources(options.directory().sources_cache());
  auto pipeline = io::read_pipeline(options.spec_options(), sources, diagnostics);
  diagnostics.print(std::cerr);
  return pipeline;
}

// "task" or "task[item]" against (task, item).
bool matches(const std::string& target, const std::string& task, const std::string& item) {
  if (target.empty() || target == task) return true;
  return target == task + "[" + item + "]";
}

}  // namespace

int check_pipeline(const Options& options) {
  io::Diagnostics diagnostics;
  const auto pipeline = read_quietly(options, diagnostics);
  if (!pipeline) return kUsage;
  std::cout << pipeline->name << ": " << io::count_text(*pipeline) << ", no mistakes found\n";
  return kDone;
}

int plan_pipeline(const Options& options) {
  io::Diagnostics diagnostics;
  const auto pipeline = read_quietly(options, diagnostics);
  if (!pipeline) return kUsage;
  const auto selection = select(*pipeline, options.selection);
  if (!selection) return complain(selection.error().message, kUsage);
  const auto forecast = make_forecast(*pipeline, options.directory(), *selection);
  if (!forecast) return complain(forecast.error().message, kEnvironmentUnusable);
  const std::vector<io::TaskDescription> descriptions = io::describe(*pipeline);
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (size_t t = 0; t < pipeline->graph.task_count(); ++t) {
    const scheduler::TaskSpec& task = pipeline->graph.task(TaskId(t));
    std::map<std::string, size_t> verdicts;
    std::map<std::string, size_t> reasons;
    for (uint32_t i = 0; i < task.instance_count; ++i) {
      const Verdict& verdict = forecast->verdicts[pipeline->graph.instance(TaskId(t), i).index()];
      ++verdicts[verdict_name(verdict.kind)];
      if (verdict.kind != Verdict::Kind::kUpToDate && verdict.kind != Verdict::Kind::kLeftOut)
        ++reasons[verdict.reason];
    }
    if (options.json) {
      json.push_back({{"task", task.name},
                      {"instances", task.instance_count},
                      {"verdicts", verdicts},
                      {"reasons", reasons}});
      continue;
    }
    std::cout << task.name << ": " << task.instance_count
              << (task.instance_count == 1 ? " instance" : " instances");
    for (const auto& [name, count] : verdicts) std::cout << ", " << count << " " << name;
    std::cout << "\n";
    for (const auto& [reason, count] : reasons)
      std::cout << "    " << count << " × " << reason << "\n";
    for (const io::InputDescription& in : descriptions[t].inputs) {
      std::cout << "    " << in.name << ": " << in.source << ", " << in.join << "\n";
    }
    for (uint32_t i = 0; options.verbose && i < task.instance_count; ++i) {
      const InstanceId instance = pipeline->graph.instance(TaskId(t), i);
      std::cout << "    " << pipeline->label(instance) << ": " << pipeline->command_text(instance)
                << "\n";
    }
  }
  if (options.json) std::cout << json.dump(2) << "\n";
  return kDone;
}

int show_why(const Options& options) {
  io::Diagnostics diagnostics;
  const auto pipeline = read_quietly(options, diagnostics);
  if (!pipeline) return kUsage;
  const auto selection = select(*pipeline, options.selection);
  if (!selection) return complain(selection.error().message, kUsage);
  const auto forecast = make_forecast(*pipeline, options.directory(), *selection);
  if (!forecast) return complain(forecast.error().message, kEnvironmentUnusable);
  size_t shown = 0;
  for (size_t i = 0; i < pipeline->graph.instance_count(); ++i) {
    const InstanceId instance(i);
    const std::string& task = pipeline->graph.task(pipeline->graph.task_of(instance)).name;
    if (!matches(options.target, task, pipeline->item(instance))) continue;
    const Verdict& verdict = forecast->verdicts[i];
    std::cout << pipeline->label(instance) << ": " << verdict_name(verdict.kind) << ": "
              << verdict.reason << "\n";
    for (const std::string& line : verdict.history) std::cout << "    " << line << "\n";
    ++shown;
  }
  if (shown > 0) return kDone;
  std::vector<std::string> names;
  for (const scheduler::TaskSpec& task : pipeline->graph.tasks()) names.push_back(task.name);
  const std::string near =
      io::did_you_mean(options.target.substr(0, options.target.find('[')), names);
  return complain(
      "'" + options.target + "' is no task or instance of " + options.spec.string() +
          (near.empty() ? "; write TASK or 'TASK[key=value,…]'" : "; did you mean '" + near + "'?"),
      kUsage);
}

}  // namespace sluice::engine
