#include "engine/item_tables.h"

#include "io/tier.h"

namespace sluice::engine {

namespace {

using scheduler::InstanceId;
using scheduler::ObjectId;
using scheduler::OutputKind;
using scheduler::TaskId;

std::vector<size_t> result_outputs(const scheduler::TaskSpec& task) {
  std::vector<size_t> results;
  for (size_t i = 0; i < task.outputs.size(); ++i) {
    if (task.outputs[i].result) results.push_back(i);
  }
  return results;
}

std::string header(const scheduler::TaskSpec& task, const io::TaskText& text,
                   const std::vector<size_t>& results) {
  std::string line;
  for (const std::string& key : text.keys) line += (line.empty() ? "" : "\t") + key;
  for (const size_t output : results) line += "\t" + task.outputs[output].name;
  return line + "\n";
}

}  // namespace

std::vector<ItemTable> item_tables(const io::Pipeline& pipeline,
                                   const std::function<bool(InstanceId)>& is_done,
                                   const io::Pipeline::ValueText& value) {
  std::vector<ItemTable> tables;
  for (size_t t = 0; t < pipeline.graph.task_count(); ++t) {
    const scheduler::TaskSpec& task = pipeline.graph.task(TaskId(t));
    const io::TaskText& text = pipeline.tasks[t];
    const std::vector<size_t> results = result_outputs(task);
    if (text.keys.empty() || results.empty()) continue;
    const std::string folder = "results/" + task.name + "/";
    std::string lines;
    for (uint32_t item = 0; item < task.instance_count; ++item) {
      const InstanceId instance = pipeline.graph.instance(TaskId(t), item);
      if (!is_done(instance)) continue;
      std::string line;
      for (const std::string& cell : text.items[item])
        line += (line.empty() ? "" : "\t") + io::one_line_name(cell);
      for (const size_t output : results) {
        const ObjectId object = pipeline.graph.object(instance, output);
        const bool is_value = task.outputs[output].kind == OutputKind::kValue;
        line +=
            "\t" + io::one_line_name(is_value ? value(object)
                                              : pipeline.result_path(object).substr(folder.size()));
      }
      lines += line + "\n";
    }
    if (!lines.empty())
      tables.push_back({folder + "items.tsv", header(task, text, results) + lines});
  }
  return tables;
}

}  // namespace sluice::engine
