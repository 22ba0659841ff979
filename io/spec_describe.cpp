#include "io/spec_describe.h"

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

InputDescription describe_input(const Pipeline& pipeline, const TaskInput& input) {
  InputDescription description{input.name, input.source_path, join_text(input)};
  if (input.join != JoinKind::kSource) {
    const scheduler::TaskSpec& producer = pipeline.graph.task(input.producer);
    description.source = producer.name + "." + producer.outputs[input.output].name;
  }
  return description;
}

}  // namespace

std::string join_text(const TaskInput& input) {
  switch (input.join) {
    case JoinKind::kOneToOne:
      return "one-to-one";
    case JoinKind::kBroadcast:
      return "broadcast";
    case JoinKind::kGather:
      return "gather over " + list_text(input.over);
    case JoinKind::kSource:
      break;
  }
  return "file";
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
    for (const TaskInput& input : pipeline.tasks[i].inputs) {
      description.inputs.push_back(describe_input(pipeline, input));
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
