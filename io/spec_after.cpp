// after: of the tasks. An entry is an input without a name and without data: it joins by the same
// keys, and closes cycles, but is read by nobody.
#include <algorithm>

#include "io/spec_reader.h"
#include "io/spec_schema.h"

namespace sluice::io {

namespace {

std::string where_of(const SpecTask& task) { return "'after' of task '" + task.name + "'"; }

void resolve(SpecReading& reading, const SpecTask& task, SpecInput& entry) {
  const Mark mark = reading.tree[entry.node].mark;
  const auto found = reading.task_index.find(entry.from_task);
  if (found == reading.task_index.end()) {
    const bool output = entry.from_task.find('.') != std::string::npos;
    reading.diagnostics.error(
        mark, where_of(task) + ": there is no task '" + entry.from_task + "'",
        output ? "order is between tasks: write the task's name only, or make it an input"
               : suggestion(entry.from_task, names_of(reading.tasks), "the tasks are"));
    return;
  }
  const size_t producer = found->second;
  if (reading.tasks[producer].name == task.name) {
    reading.diagnostics.error(mark, where_of(task) + " names the task itself", "remove it");
    return;
  }
  const auto reads = std::find_if(task.inputs.begin(), task.inputs.end(), [&](const auto& input) {
    return input.from_task == entry.from_task;
  });
  if (reads != task.inputs.end()) {
    reading.diagnostics.warning(mark,
                                where_of(task) + " names '" + entry.from_task +
                                    "', whose output '" + reads->from_output +
                                    "' it reads: that is order enough",
                                "remove it");
  }
  entry.resolved = true;
  entry.producer = producer;
}

}  // namespace

void read_after(SpecReading& reading, SpecTask& task, NodeIndex after) {
  if (after == kNoNode) {
    return;
  }
  const YamlNode& list = reading.tree[after];
  if (list.kind != YamlNode::Kind::kList || list.count == 0) {
    reading.diagnostics.error(list.mark, where_of(task) + " must be a list of tasks",
                              "write after: [prepare]");
    return;
  }
  for (const NodeIndex child : reading.tree.children(after)) {
    const auto name = read_text(reading, child, "a task in " + where_of(task));
    if (!name) {
      continue;
    }
    const auto same = std::find_if(task.after.begin(), task.after.end(),
                                   [&](const auto& one) { return one.from_task == *name; });
    if (same != task.after.end()) {
      reading.diagnostics.error(reading.tree[child].mark,
                                where_of(task) + " names '" + *name + "' twice", "remove one");
      continue;
    }
    SpecInput entry;
    entry.node = child;
    entry.mark = reading.tree[child].mark;
    entry.is_order = true;
    entry.from_task = *name;
    task.after.push_back(std::move(entry));
  }
}

void resolve_after(SpecReading& reading) {
  for (SpecTask& task : reading.tasks) {
    for (SpecInput& entry : task.after) {
      resolve(reading, task, entry);
    }
  }
}

}  // namespace sluice::io
