#include "io/command_size.h"

#include <utility>

#include "io/pipeline_hidden.h"

namespace sluice::io {

namespace {

using Use = TemplatePart::Use;

class Measure {
 public:
  Measure(const Pipeline& pipeline, scheduler::InstanceId instance)
      : pipeline_(pipeline),
        instance_(instance),
        task_(pipeline.graph.task_of(instance)),
        text_(pipeline.tasks[task_.index()]),
        templates_(pipeline.hidden->tasks[task_.index()]),
        item_(pipeline.graph.item_of(instance)),
        scope_(pipeline.hidden->params, text_, item_) {}

  CommandSize run() {
    const CommandTemplate& command = templates_.command;
    for (size_t i = 0; i < command.words.size(); ++i) add_word(command.words[i], i + 1);
    for (const auto& [name, value] : command.environment)
      add("the variable " + name, name.size() + 1 + bytes_of(value));
    for (const uint32_t index : command.script_params) {
      const Param& param = pipeline_.hidden->params[index];
      add("the variable PARAM_" + param.name, 7 + param.name.size() + bytes_of(param.value));
    }
    for (const uint32_t key : command.script_keys) {
      const std::string& name = text_.keys[key];
      add("the variable ITEM_" + name, 6 + name.size() + text_.items[item_][key].size());
    }
    return std::move(size_);
  }

 private:
  void add(std::string what, size_t bytes) {
    size_.total_bytes += bytes + 1 + sizeof(char*);
    if (bytes <= size_.largest_bytes) return;
    size_.largest_bytes = bytes;
    size_.largest = std::move(what);
  }

  // A list alone in its word becomes as many words.
  void add_word(const Template& parts, size_t number) {
    const std::string what = "word " + std::to_string(number) + " of the command";
    if (parts.size() == 1 && parts[0].use == Use::kInputPaths) {
      add_paths(parts[0].index);
      return;
    }
    if (parts.size() == 1 && parts[0].use == Use::kValue) {
      const auto result = scope_.evaluate(parts[0]);
      const auto* value = std::get_if<Value>(&result);
      if (value != nullptr && value->kind == Value::Kind::kList) {
        for (const std::string& item : value->list) add(what, item.size());
        return;
      }
    }
    add(what, bytes_of(parts));
  }

  void add_paths(uint32_t input) {
    const auto inputs = pipeline_.graph.inputs(instance_);
    const uint32_t order = templates_.group_order[input];
    if (order >= inputs.size()) return;
    const size_t count = pipeline_.graph.group_objects(inputs[order]).size();
    const size_t bytes = count * (kUsualPathBytes + 1);
    size_.paths.push_back({text_.inputs[input].name, count, bytes});
    size_.total_bytes += bytes + count * sizeof(char*);
  }

  [[nodiscard]] size_t bytes_of(const Template& parts) const {
    size_t bytes = 0;
    for (const TemplatePart& part : parts) {
      if (part.use == Use::kText) {
        bytes += part.text.size();
      } else if (part.use == Use::kFolder) {
        bytes += pipeline_.folder.string().size();
      } else if (part.use == Use::kInput || part.use == Use::kOutput) {
        bytes += kUsualPathBytes;
      } else if (part.use == Use::kValue) {
        const auto result = scope_.evaluate(part);
        if (const auto* value = std::get_if<Value>(&result)) bytes += bytes_of(*value);
      }
    }
    return bytes;
  }

  static size_t bytes_of(const Value& value) {
    size_t bytes = value.text.size();
    for (const std::string& item : value.list) bytes += item.size() + 1;
    return bytes;
  }

  const Pipeline& pipeline_;
  scheduler::InstanceId instance_;
  scheduler::TaskId task_;
  const TaskText& text_;
  const TaskTemplates& templates_;
  uint32_t item_;
  Scope scope_;
  CommandSize size_;
};

}  // namespace

CommandSize command_size(const Pipeline& pipeline, scheduler::InstanceId instance) {
  return Measure(pipeline, instance).run();
}

}  // namespace sluice::io
