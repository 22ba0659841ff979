#include "io/spec_describe.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "io/pipeline_hidden.h"
#include "io/spec_values.h"

namespace sluice::io {

namespace {

std::string joined(const std::vector<std::string>& texts, std::string_view between) {
  std::string out;
  for (const std::string& text : texts) {
    out.append(out.empty() ? "" : between).append(text);
  }
  return out;
}

std::string counted(size_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string request_text(const scheduler::Graph& graph, const scheduler::Request& request) {
  std::vector<std::string> parts = {counted(static_cast<size_t>(request.resources.cpus), "cpu")};
  if (request.resources.memory_bytes > 0) {
    parts.push_back(print_memory(request.resources.memory_bytes) + " memory");
  }
  for (const scheduler::LimitUse& use : request.limits) {
    parts.push_back(print_amount(use.amount) + " " + graph.limits()[use.limit.index()].name);
  }
  return joined(parts, ", ");
}

// Counts what joins with what. Groups are shared by all their consumers, so each is looked at once.
void count_edge(const Pipeline& pipeline, scheduler::TaskId consumer, uint32_t group_at,
                InputDescription& description) {
  const scheduler::Graph& graph = pipeline.graph;
  std::vector<bool> known_groups(graph.group_count());
  std::vector<bool> known_objects(graph.object_count());
  bool first = true;
  for (uint32_t item = 0; item < graph.task(consumer).instance_count; ++item) {
    const auto inputs = graph.inputs(graph.instance(consumer, item));
    if (group_at >= inputs.size()) {
      continue;
    }
    ++description.consumers;
    const auto group = graph.group_objects(inputs[group_at]);
    if (known_groups[inputs[group_at].index()]) {
      continue;
    }
    known_groups[inputs[group_at].index()] = true;
    for (const scheduler::ObjectId object : group) {
      description.producers += known_objects[object.index()] ? 0 : 1;
      known_objects[object.index()] = true;
    }
    description.each_min = first ? group.size() : std::min(description.each_min, group.size());
    description.each_max = std::max(description.each_max, group.size());
    first = false;
  }
}

InputDescription describe_input(const Pipeline& pipeline, scheduler::TaskId task, size_t index) {
  const TaskInput& input = pipeline.tasks[task.index()].inputs[index];
  InputDescription description;
  description.name = input.name;
  description.source = input.source_path;
  description.join = join_text(input);
  if (input.join != JoinKind::kSource) {
    const scheduler::TaskSpec& producer = pipeline.graph.task(input.producer);
    description.source = producer.name + "." + producer.outputs[input.output].name;
    count_edge(pipeline, task, pipeline.hidden->tasks[task.index()].group_order[index],
               description);
  }
  if (!input.view.empty()) description.source += " (" + input.view + ")";
  return description;
}

std::string retry_text(scheduler::Cause cause, const scheduler::RetryPolicy& retry) {
  const size_t index = static_cast<size_t>(cause);
  std::string text = std::string("retry of ") + scheduler::cause_name(cause) + ": " +
                     std::to_string(retry.max[index]) + " more";
  if (cause == scheduler::Cause::kExit && !retry.exit_codes.empty()) {
    std::vector<std::string> codes;
    for (const int32_t code : retry.exit_codes) {
      codes.push_back(std::to_string(code));
    }
    text += ", only status " + joined(codes, ", ");
  }
  const scheduler::RetryChange& change = retry.change[index];
  if (change.delay.ns > 0) {
    text += ", after " + print_duration(change.delay);
  }
  if (change.memory_factor > 0) {
    text += ", memory x" + print_amount(scheduler::Amount{change.memory_factor} * 10);
  }
  if (change.timeout_factor > 0) {
    text += ", timeout x" + print_amount(scheduler::Amount{change.timeout_factor} * 10);
  }
  return text;
}

std::vector<std::string> rules_of(const scheduler::Graph& graph, const scheduler::TaskSpec& task) {
  const scheduler::Request& request = graph.requests()[task.request];
  std::vector<std::string> rules;
  if (task.timeout.ns > 0) {
    rules.push_back("timeout " + print_duration(task.timeout));
  }
  if (task.grace != scheduler::TaskSpec().grace) {
    rules.push_back("grace " + print_duration(task.grace));
  }
  rules.push_back(counted(static_cast<size_t>(request.resources.cpus), "cpu"));
  if (request.resources.memory_bytes > 0) {
    rules.push_back("memory " + memory_text(request.resources.memory_bytes));
  }
  for (const scheduler::LimitUse& use : request.limits) {
    const scheduler::Limit& limit = graph.limits()[use.limit.index()];
    rules.push_back(print_amount(use.amount) + " of " + print_amount(limit.total) + " " +
                    limit.name);
  }
  for (size_t i = 0; i < scheduler::kCauseCount; ++i) {
    if (task.retry.max[i] > 0) {
      rules.push_back(retry_text(static_cast<scheduler::Cause>(i), task.retry));
    }
  }
  if (task.priority != 0) {
    rules.push_back("priority " + std::to_string(task.priority));
  }
  if (task.on_failure != scheduler::OnFailure::kContinue) {
    const bool stop = task.on_failure == scheduler::OnFailure::kStop;
    rules.push_back(std::string("on failure: ") + (stop ? "stop" : "ignore"));
  }
  return rules;
}

// What is known of a text before the attempt; the rest as "${in.x}".
std::string text_for_people(const Pipeline& pipeline, const Template& parts, const Scope& scope) {
  std::string text;
  for (const TemplatePart& part : parts) {
    if (part.use == TemplatePart::Use::kText) {
      text += part.text;
    } else if (part.use == TemplatePart::Use::kFolder) {
      text += pipeline.folder.string();
    } else if (part.use == TemplatePart::Use::kValue) {
      const auto result = scope.evaluate(part);
      const auto* value = std::get_if<Value>(&result);
      text += value == nullptr ? "" : value->text;
    } else {
      text += "${" + part.text + "}";
    }
  }
  return text;
}

}  // namespace

std::string source_path(const Pipeline& pipeline, scheduler::InstanceId instance,
                        const std::string& input) {
  const size_t task = pipeline.graph.task_of(instance).index();
  const TaskText& text = pipeline.tasks[task];
  const Scope scope(pipeline.hidden->params, text, pipeline.graph.item_of(instance));
  for (size_t i = 0; i < text.inputs.size(); ++i) {
    if (text.inputs[i].name == input && text.inputs[i].join == JoinKind::kSource) {
      const Template& parts = pipeline.hidden->tasks[task].source_paths[i];
      return in_folder(pipeline.folder, text_for_people(pipeline, parts, scope)).string();
    }
  }
  return "";
}

std::vector<std::string> environment_texts(const Pipeline& pipeline,
                                           scheduler::InstanceId instance) {
  const size_t task = pipeline.graph.task_of(instance).index();
  const Scope scope(pipeline.hidden->params, pipeline.tasks[task],
                    pipeline.graph.item_of(instance));
  std::vector<std::string> texts;
  for (const auto& [name, value] : pipeline.hidden->tasks[task].command.environment) {
    texts.push_back(name + "=" + text_for_people(pipeline, value, scope));
  }
  return texts;
}

std::string join_text(const TaskInput& input) {
  const std::string where = input.where.empty() ? "" : " where " + input.where;
  switch (input.join) {
    case JoinKind::kOneToOne:
      return "one-to-one" + where;
    case JoinKind::kBroadcast:
      return "broadcast" + where;
    case JoinKind::kGather:
      return (input.over.empty() ? "gather" : "gather over " + list_text(input.over)) + where;
    case JoinKind::kSource:
      break;
  }
  return "file";
}

std::string edge_text(const InputDescription& input) {
  if (input.consumers == 0 && input.producers == 0) {
    return input.join;
  }
  std::string each = std::to_string(input.each_min);
  if (input.each_max != input.each_min) {
    each += " to " + std::to_string(input.each_max);
  }
  const bool gathers = input.join.rfind("gather", 0) == 0;
  return input.join + ", " + std::to_string(input.producers) + (gathers ? " into " : " to ") +
         std::to_string(input.consumers) + (gathers ? " (" + each + " each)" : "");
}

std::string memory_text(int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  int64_t size = 1;
  while (unit + 1 < kUnits.size() && bytes / size >= 1024) {
    size *= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), bytes % size == 0 ? "%.0f %s" : "%.2f %s",
                static_cast<double>(bytes) / static_cast<double>(size), kUnits[unit]);
  return text.data();
}

std::vector<TaskDescription> describe(const Pipeline& pipeline) {
  std::vector<TaskDescription> all;
  for (size_t i = 0; i < pipeline.graph.task_count(); ++i) {
    const scheduler::TaskSpec& task = pipeline.graph.task(scheduler::TaskId(i));
    TaskDescription description;
    description.name = task.name;
    description.instances = task.instance_count;
    description.keys = joined(pipeline.tasks[i].keys, " x ");
    description.request = request_text(pipeline.graph, pipeline.graph.requests()[task.request]);
    description.timeout = task.timeout.ns > 0 ? print_duration(task.timeout) : "";
    description.way =
        pipeline.hidden->tasks[i].command.is_script ? "bash -euo pipefail" : "no shell";
    description.rules = rules_of(pipeline.graph, task);
    for (size_t input = 0; input < pipeline.tasks[i].inputs.size(); ++input) {
      description.inputs.push_back(describe_input(pipeline, scheduler::TaskId(i), input));
    }
    for (const scheduler::OutputSpec& output : task.outputs) {
      if (output.result) {
        description.results.push_back(output.name);
      }
    }
    all.push_back(std::move(description));
  }
  return all;
}

std::string count_text(const Pipeline& pipeline) {
  return counted(pipeline.graph.task_count(), "task") + ", " +
         counted(pipeline.graph.instance_count(), "instance") + ", " +
         counted(pipeline.graph.object_count(), "object");
}

}  // namespace sluice::io
