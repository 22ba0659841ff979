#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/ahead.h"
#include "engine/cli.h"
#include "engine/explain.h"
#include "engine/forecast.h"
#include "engine/plan.h"
#include "engine/query.h"
#include "engine/recorded_spec.h"
#include "engine/report.h"
#include "io/sources.h"
#include "io/spec.h"

namespace sluice::engine {

using nlohmann::ordered_json;
using scheduler::InstanceId;
using scheduler::TaskId;

namespace {

constexpr int kFormat = 1;  // of the JSON
constexpr size_t kTailLines = 10;

// Everything that `why` looks at.
struct Question {
  Options options;
  RunDirectory directory;
  io::Pipeline pipeline;
  Forecast forecast;
  std::optional<io::Pipeline> before;  // the spec as of the last submission
};

// For comparison only, so what is wrong with it is not told.
std::optional<io::Pipeline> read_before(const RunDirectory& directory, const io::Pipeline& now,
                                        const io::JournalState& journal) {
  io::SpecOptions options;
  options.file = directory.spec_copy();
  options.set = journal.last_run.params;
  options.run_directory = directory.path;
  options.folder = now.folder;
  io::Diagnostics ignored;
  io::FileSourceIds sources(directory.sources_cache());
  return io::read_pipeline(options, sources, ignored);
}

// The instances that the target names: a task, one instance, or all of the pipeline.
std::vector<InstanceId> find_instances(const io::Pipeline& pipeline, const std::string& target) {
  std::vector<InstanceId> found;
  for (size_t t = 0; t < pipeline.graph.task_count(); ++t) {
    const scheduler::TaskSpec& task = pipeline.graph.task(TaskId(t));
    for (uint32_t item = 0; item < task.instance_count; ++item) {
      const InstanceId instance = pipeline.graph.instance(TaskId(t), item);
      if (matches_target(target, task.name, pipeline.item(instance))) found.push_back(instance);
    }
  }
  return found;
}

std::string no_instance(const std::string& task, const std::string& target,
                        const std::string& first) {
  return "task '" + task + "' has no instance '" + target + "'; its first is '" + first + "'";
}

int nothing_found(const io::Pipeline& pipeline, const std::string& target) {
  const std::string task_name = target.substr(0, target.find('['));
  std::vector<std::string> names;
  for (const scheduler::TaskSpec& task : pipeline.graph.tasks()) {
    names.push_back(task.name);
    if (task.name != task_name) continue;
    if (task.instance_count == 0)
      return complain("task '" + task_name + "' has no instances: its list is empty", kQueryUsage);
    return complain(no_instance(task_name, target, pipeline.label(task.first_instance)),
                    kQueryUsage);
  }
  const std::string near = io::did_you_mean(task_name, names);
  return complain(
      "'" + target + "' is no task or instance of " + pipeline.file.string() +
          (near.empty() ? "; write TASK or 'TASK[key=value,…]'" : "; did you mean '" + near + "'?"),
      kQueryUsage);
}

// -- text -----------------------------------------------------------------------------------------

void print_tail(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  const size_t first = lines.size() > kTailLines ? lines.size() - kTailLines : 0;
  for (size_t i = first; i < lines.size(); ++i) std::cout << quoted_lines(lines[i], "      | ");
}

void print_change(const Change& change, bool first) {
  std::cout << (first ? "    changed: " : "    and:     ") << change.what << "\n";
  if (!change.was.empty()) std::cout << "      was: " << change.was << "\n";
  if (!change.is.empty()) std::cout << "      is:  " << change.is << "\n";
}

void print_failures(const Question& question, const Explanation& one) {
  for (const FailedAttempt& failure : one.failures) {
    const io::record::Attempt& record = failure.record;
    std::cout << "    attempt " << attempt_text(record.attempt) << " ended by " << failure.cause
              << " on " << failure.where << " after " << duration_text(record.usage.wall) << ", "
              << time_text(record.unix_time_ms);
    if (!record.detail.empty()) std::cout << ": " << record.detail;
    std::cout << (record.final ? "" : "; it was tried again") << "\n";
  }
  if (one.failures.empty()) return;
  const io::record::Attempt& last = one.failures.back().record;
  print_tail(last.stderr_tail);
  std::cout << "    more:    sluice logs " << question.directory.path.string() << " '" << one.label
            << "'\n";
  std::cout << "    by hand: sluice shell " << question.directory.path.string() << " '" << one.label
            << "'\n";
  const std::filesystem::path kept = question.directory.failed(last.attempt);
  std::error_code ignored;
  if (std::filesystem::exists(kept, ignored)) std::cout << "    files:   " << kept.string() << "\n";
}

void print_explanation(const Question& question, const Explanation& one) {
  std::cout << one.label << ": " << verdict_name(one.verdict.kind) << ": " << one.reason << "\n";
  for (size_t i = 0; i < one.changes.size(); ++i) print_change(one.changes[i], i == 0);
  for (const std::string& other : one.waits_for) std::cout << "    waits for " << other << "\n";
  if (one.waits_for_more > 0)
    std::cout << "    and for " << one.waits_for_more << " more instances\n";
  if (!one.skipped_because.empty()) {
    const std::string_view because = one.skipped_because;
    const bool held =
        because.substr(0, because.find('[')) == one.label.substr(0, one.label.find('['));
    std::cout << "    was skipped because "
              << (held ? "its task was held: too many of its instances failed and none succeeded, "
                         "the last one "
                       : "")
              << because << (held ? "" : " failed") << "\n";
  }
  if (one.success) {
    std::cout << "    done by attempt " << attempt_text(one.success->attempt) << " on "
              << one.success->where << " in " << duration_text(one.success->wall) << ", "
              << time_text(one.success->unix_time_ms) << ", submission "
              << one.success->attempt.epoch() << "\n";
  }
  print_failures(question, one);
  if (!one.failures.empty()) {
    std::cout << "    command: " << question.pipeline.command_text(one.instance)
              << (question.pipeline.command_text(one.instance).ends_with('\n') ? "" : "\n");
  }
}

// -- groups ---------------------------------------------------------------------------------------

struct Group {
  std::string task, reason;
  Verdict::Kind kind = Verdict::Kind::kWillRun;
  size_t count = 0;
  InstanceId first;
};

std::vector<Group> group_instances(const Question& question,
                                   const std::vector<InstanceId>& instances) {
  std::map<std::tuple<TaskId, Verdict::Kind, std::string>, Group> groups;
  for (const InstanceId instance : instances) {
    const Verdict& verdict = question.forecast.verdicts[instance.index()];
    const TaskId task = question.pipeline.graph.task_of(instance);
    const std::string reason = reason_text(question.pipeline, verdict, Naming::kTasks);
    Group& group = groups[{task, verdict.kind, reason}];
    if (group.count++ > 0) continue;
    group.task = question.pipeline.graph.task(task).name;
    group.reason = reason;
    group.kind = verdict.kind;
    group.first = instance;
  }
  std::vector<Group> out;
  out.reserve(groups.size());
  for (auto& [key, group] : groups) out.push_back(std::move(group));
  return out;
}

void print_group(const Question& question, const Group& group) {
  const std::string first = question.pipeline.label(group.first);
  std::cout << group.task << ": " << group.count << " " << verdict_name(group.kind) << ": "
            << group.reason;
  if (first != group.task) std::cout << " (such as '" << first << "')";
  std::cout << "\n";
}

// -- JSON -----------------------------------------------------------------------------------------

std::string verdict_key(Verdict::Kind kind) {
  std::string key = verdict_name(kind);
  for (char& c : key) c = c == ' ' ? '_' : c;
  return key;
}

ordered_json explanation_json(const Explanation& one) {
  ordered_json json = {
      {"instance", one.label}, {"verdict", verdict_key(one.verdict.kind)}, {"reason", one.reason}};
  json["changes"] = ordered_json::array();
  for (const Change& change : one.changes) {
    json["changes"].push_back(
        {{"part", change.part}, {"text", change.what}, {"was", change.was}, {"is", change.is}});
  }
  json["waits_for"] = one.waits_for;
  json["waits_for_more"] = one.waits_for_more;
  json["skipped_because"] = one.skipped_because;
  json["success"] = nullptr;
  if (one.success) {
    json["success"] = {{"attempt", attempt_text(one.success->attempt)},
                       {"submission", one.success->attempt.epoch()},
                       {"where", one.success->where},
                       {"time_ms", one.success->unix_time_ms},
                       {"wall_ms", one.success->wall.ns / 1'000'000}};
  }
  json["failures"] = ordered_json::array();
  for (const FailedAttempt& failure : one.failures) {
    const io::record::Attempt& record = failure.record;
    json["failures"].push_back({{"attempt", attempt_text(record.attempt)},
                                {"cause", record.cause},
                                {"exit_code", record.exit_code},
                                {"signal", record.signal},
                                {"where", failure.where},
                                {"time_ms", record.unix_time_ms},
                                {"wall_ms", record.usage.wall.ns / 1'000'000},
                                {"detail", record.detail},
                                {"stderr", record.stderr_tail},
                                {"final", record.final}});
  }
  return json;
}

ordered_json group_json(const Question& question, const Group& group) {
  return {{"task", group.task},
          {"verdict", verdict_key(group.kind)},
          {"reason", group.reason},
          {"count", group.count},
          {"first", question.pipeline.label(group.first)}};
}

// -- the verb -------------------------------------------------------------------------------------

// A run directory stands for the pipeline that it was started with.
int find_pipeline(Options& options) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(options.spec, ignored)) return kQueryDone;
  const std::filesystem::path directory = std::filesystem::absolute(options.spec, ignored);
  const auto journal = io::read_journal(directory);
  if (!journal) return complain(journal.error().message, kQueryEnvironment);
  if (journal->epoch == 0) {
    return complain("no run in " + directory.string() +
                        ": no journal is there; name the pipeline or its run directory",
                    kQueryUsage);
  }
  options.run_dir = directory;
  options.spec = journal->last_run.spec;
  if (options.set.empty()) {
    options.set = journal->last_run.params;
    options.set_is_recorded = true;
  }
  if (is_command_list({directory}, journal->last_run)) {
    options.command_list.emplace();
    options.command_list->file = options.spec;
  }
  if (!std::filesystem::exists(options.spec, ignored)) {
    return complain("the pipeline of this run was " + options.spec.string() +
                        ", which is not there any more; name it: sluice why PIPELINE --run-dir " +
                        directory.string(),
                    kQueryUsage);
  }
  return kQueryDone;
}

void answer(const Question& question, const std::vector<InstanceId>& instances) {
  const Explainer explainer(question.pipeline, question.forecast,
                            question.before ? &*question.before : nullptr);
  ordered_json json = {{"version", kFormat}, {"pipeline", question.pipeline.name}};
  if (instances.size() == 1) {
    const Explanation one = explainer.explain(instances.front());
    json["instance"] = explanation_json(one);
    if (!question.options.json) print_explanation(question, one);
    // The root of a skip is what one wants to see next.
    const size_t bracket = one.skipped_because.find('[');
    const std::string item =
        bracket == std::string::npos
            ? ""
            : one.skipped_because.substr(bracket + 1, one.skipped_because.size() - bracket - 2);
    const InstanceId because = question.pipeline.find(one.skipped_because.substr(0, bracket), item);
    if (because.valid()) {
      const Explanation root = explainer.explain(because);
      json["because"] = explanation_json(root);
      if (!question.options.json) print_explanation(question, root);
    }
  } else {
    json["groups"] = ordered_json::array();
    for (const Group& group : group_instances(question, instances)) {
      json["groups"].push_back(group_json(question, group));
      if (!question.options.json) print_group(question, group);
    }
  }
  if (question.options.json) {
    std::cout << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  }
}

}  // namespace

int show_why(const Options& given) {
  Options options = given;
  if (const int code = find_pipeline(options); code != kQueryDone) return code;
  io::Diagnostics diagnostics;
  auto pipeline = read_and_print(options, diagnostics);
  if (!pipeline) return kQueryUsage;
  const RunDirectory directory = options.directory();
  const auto selection = select(*pipeline, options.selection);
  if (!selection) return complain(selection.error().message, kQueryUsage);
  auto forecast = make_forecast(*pipeline, directory, *selection);
  if (!forecast) return complain(forecast.error().message, kQueryEnvironment);
  const std::vector<InstanceId> instances = find_instances(*pipeline, options.target);
  if (instances.empty()) return nothing_found(*pipeline, options.target);
  std::optional<io::Pipeline> before;
  if (instances.size() == 1) before = read_before(directory, *pipeline, forecast->journal);
  answer({options, directory, std::move(*pipeline), std::move(*forecast), std::move(before)},
         instances);
  return kQueryDone;
}

}  // namespace sluice::engine
