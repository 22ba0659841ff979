#include "engine/selection.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "engine/query.h"
#include "io/diagnostic.h"
#include "io/pipeline_hidden.h"

namespace sluice::engine {

using scheduler::InstanceId;
using scheduler::TaskId;

namespace {

constexpr size_t kExamples = 4;

std::vector<std::string> task_names(const io::Pipeline& pipeline) {
  std::vector<std::string> names;
  for (const scheduler::TaskSpec& task : pipeline.graph.tasks()) names.push_back(task.name);
  return names;
}

// "grid=64,alpha=0.1" as pairs; values stay as in labels.
using Wanted = std::vector<std::pair<std::string, std::string>>;

Error no_pair(const std::string& target, const std::string& found) {
  return {"'" + target + "': '" + found + "' is not of the form key=value; write '" +
              target.substr(0, target.find('[')) + "[key=value]'",
          0};
}

Error no_key(const std::string& target, const std::string& task, const std::string& key,
             const std::vector<std::string>& keys) {
  return {"'" + target + "': '" + task + "' has no foreach key '" + key + "'; " +
              (keys.empty() ? "it has no foreach: write '" + task + "'"
                            : io::suggestion(key, keys, "its keys are")),
          0};
}

Expected<Wanted> parse_item(const std::string& target, const std::string& item) {
  Wanted wanted;
  for (size_t at = 0; at <= item.size();) {
    const size_t end = std::min(item.find(',', at), item.size());
    const std::string one = item.substr(at, end - at);
    const size_t equals = one.find('=');
    if (equals == std::string::npos || equals == 0) {
      return no_pair(target, one);
    }
    wanted.emplace_back(one.substr(0, equals), one.substr(equals + 1));
    at = end + 1;
  }
  return wanted;
}

// "no item of 'simulate' has grid=63; its items begin with [grid=64], ..."
Error nothing_matches(const io::Pipeline& pipeline, TaskId task, const std::string& item) {
  const scheduler::TaskSpec& spec = pipeline.graph.task(task);
  std::string some;
  for (uint32_t i = 0; i < std::min<size_t>(spec.instance_count, kExamples); ++i) {
    some += (i == 0 ? "" : ", ") + pipeline.label(pipeline.graph.instance(task, i));
  }
  if (spec.instance_count > kExamples) some += ", ...";
  return {"no instance of '" + spec.name + "' has " + item + "; there are " + some, 0};
}

Expected<std::vector<InstanceId>> matching(const io::Pipeline& pipeline, TaskId task,
                                           const std::string& target, const std::string& item) {
  // A whole item may hold what else divides keys and values.
  for (uint32_t i = 0; i < pipeline.graph.task(task).instance_count; ++i) {
    const InstanceId instance = pipeline.graph.instance(task, i);
    if (means_item(item, pipeline.item(instance))) return std::vector<InstanceId>{instance};
  }
  const auto wanted = parse_item(target, item);
  if (!wanted) return wanted.error();
  const io::TaskText& text = pipeline.tasks[task.index()];
  for (const auto& [key, value] : *wanted) {
    if (std::find(text.keys.begin(), text.keys.end(), key) != text.keys.end()) continue;
    return no_key(target, pipeline.graph.task(task).name, key, text.keys);
  }
  std::vector<InstanceId> found;
  for (uint32_t i = 0; i < pipeline.graph.task(task).instance_count; ++i) {
    const std::string all = "," + io::item_text(text, i) + ",";
    const bool fits = std::all_of(wanted->begin(), wanted->end(), [&](const auto& one) {
      return all.find("," + one.first + "=" + one.second + ",") != std::string::npos;
    });
    if (fits) found.push_back(pipeline.graph.instance(task, i));
  }
  if (found.empty()) return nothing_matches(pipeline, task, item);
  return found;
}

// Marks what must be there for the marked ones: what they read and what they come after.
void add_needed(const scheduler::Graph& graph, std::vector<bool>& marked) {
  std::vector<InstanceId> work;
  for (size_t i = 0; i < marked.size(); ++i) {
    if (marked[i]) work.emplace_back(i);
  }
  std::vector<bool> groups(graph.group_count());
  std::vector<bool> gates(graph.gate_count());
  const auto mark = [&](InstanceId id) {
    if (!marked[id.index()]) {
      marked[id.index()] = true;
      work.push_back(id);
    }
  };
  while (!work.empty()) {
    const InstanceId instance = work.back();
    work.pop_back();
    for (const scheduler::GroupId group : graph.inputs(instance)) {
      if (groups[group.index()]) continue;
      groups[group.index()] = true;
      for (const scheduler::ObjectId object : graph.group_objects(group)) {
        mark(graph.producer(object));
      }
    }
    for (const scheduler::GateId gate : graph.gates_before(instance)) {
      if (gates[gate.index()]) continue;
      gates[gate.index()] = true;
      for (const InstanceId predecessor : graph.gate_predecessors(gate)) mark(predecessor);
    }
  }
}

}  // namespace

bool Selection::forces(InstanceId id) const {
  return std::binary_search(forced.begin(), forced.end(), id);
}

size_t Selection::count(const io::Pipeline& pipeline) const {
  return instances.empty()
             ? pipeline.graph.instance_count()
             : static_cast<size_t>(std::count(instances.begin(), instances.end(), true));
}

Expected<std::vector<InstanceId>> instances_named(const io::Pipeline& pipeline,
                                                  const std::string& target) {
  const size_t bracket = target.find('[');
  const std::string name = target.substr(0, bracket);
  const std::vector<std::string> names = task_names(pipeline);
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    return Error{"there is no task '" + name + "'; " + io::suggestion(name, names, "the tasks are"),
                 0};
  }
  const TaskId task(static_cast<size_t>(found - names.begin()));
  if (bracket != std::string::npos) {
    if (target.back() != ']') {
      return Error{"'" + target + "' has no ']' at its end; write '" + name + "[key=value]'", 0};
    }
    return matching(pipeline, task, target,
                    target.substr(bracket + 1, target.size() - bracket - 2));
  }
  std::vector<InstanceId> all;
  for (uint32_t i = 0; i < pipeline.graph.task(task).instance_count; ++i) {
    all.push_back(pipeline.graph.instance(task, i));
  }
  return all;
}

Expected<Selection> select(const io::Pipeline& pipeline, const SelectionOptions& options) {
  Selection selection;
  std::vector<bool> marked(pipeline.graph.instance_count());
  const auto add = [&](const std::vector<std::string>& targets, const char* option,
                       std::vector<InstanceId>* list) -> Status {
    for (const std::string& target : targets) {
      const auto named = instances_named(pipeline, target);
      if (!named) return Error{std::string(option) + ": " + named.error().message, 0};
      for (const InstanceId id : *named) {
        marked[id.index()] = true;
        if (list != nullptr) list->push_back(id);
      }
    }
    return Done{};
  };
  if (Status s = add(options.only, "--only", nullptr); !s) return s.error();
  if (Status s = add(options.until, "--until", nullptr); !s) return s.error();
  if (Status s = add(options.force, "--force", &selection.forced); !s) return s.error();
  std::sort(selection.forced.begin(), selection.forced.end());
  if (options.only.empty() && options.until.empty()) return selection;
  add_needed(pipeline.graph, marked);
  selection.instances = std::move(marked);
  return selection;
}

std::vector<scheduler::Event> opening(const Selection& selection,
                                      std::vector<scheduler::event::Restored> restored) {
  std::vector<scheduler::Event> events;
  events.reserve(restored.size() + 1);
  for (scheduler::event::Restored& fact : restored) {
    if (selection.forces(fact.instance)) fact.key = {};  // equals no key
    events.emplace_back(std::move(fact));
  }
  if (!selection.instances.empty()) {
    events.emplace_back(scheduler::event::Selected{selection.instances});
  }
  return events;
}

Expected<uint32_t> failures_max(const std::string& text, size_t count) {
  const bool percent = !text.empty() && text.back() == '%';
  const char* const end = text.data() + text.size() - (percent ? 1 : 0);
  uint32_t number = 0;
  const auto parsed = std::from_chars(text.data(), end, number);
  constexpr uint32_t kWhole = 100;
  if (parsed.ec != std::errc() || parsed.ptr != end || number == 0 ||
      (percent && number > kWhole)) {
    return Error{"--max-failures is '" + text +
                     "'; a number of instances from 1 on, or a share such as 5%, is expected",
                 0};
  }
  if (!percent) return number;
  return static_cast<uint32_t>(std::max<uint64_t>(1, uint64_t{count} * number / kWhole));
}

}  // namespace sluice::engine
