#include "io/spec.h"

#include <utility>

#include "io/spec_reader.h"
#include "io/spec_schema.h"
#include "io/spec_source.h"

namespace sluice::io {

namespace {

namespace fs = std::filesystem;

void check_version(SpecReading& reading) {
  const NodeIndex version = reading.tree.find(reading.tree.root(), "sluice");
  if (version == kNoNode) {
    reading.diagnostics.error({1, 1}, "the version of the spec is missing",
                              "begin with 'sluice: 1'");
  } else if (reading.tree[version].text != "1") {
    reading.diagnostics.error(
        reading.tree[version].mark,
        "this spec has version " + shown(reading.tree[version]) + ", this program reads version 1",
        "write 'sluice: 1'");
  }
}

std::string read_name(SpecReading& reading, const fs::path& file) {
  const NodeIndex name = reading.tree.find(reading.tree.root(), "name");
  if (name == kNoNode) {
    return file.stem().string();
  }
  return read_text(reading, name, "'name'").value_or("");
}

void declare_tasks(SpecReading& reading) {
  const NodeIndex tasks = reading.tree.find(reading.tree.root(), "tasks");
  if (tasks == kNoNode) {
    reading.diagnostics.error({1, 1}, "the spec has no tasks", "add 'tasks:'");
    return;
  }
  if (!expect_map(reading, tasks, "'tasks'", "tasks: {hello: {run: echo hello}}")) {
    return;
  }
  if (reading.tree[tasks].count == 0) {
    reading.diagnostics.error(reading.tree[tasks].mark, "the spec has no tasks",
                              "write tasks: {hello: {run: echo hello}}");
  }
  for (const NodeIndex child : reading.tree.children(tasks)) {
    const YamlNode& node = reading.tree[child];
    if (!check_name(reading, node, "a task") ||
        !expect_map(reading, child, "task '" + node.key + "'",
                    node.key + ": {run: program argument}")) {
      continue;
    }
    SpecTask task;
    task.name = node.key;
    task.mark = node.key_mark;
    task.node = child;
    reading.task_index.emplace(task.name, reading.tasks.size());
    reading.tasks.push_back(std::move(task));
  }
}

void read_task(SpecReading& reading, SpecTask& task) {
  check_keys(reading.tree, task.node, Level::kTask, "task '" + task.name + "'",
             reading.diagnostics);
  const auto find = [&](std::string_view key) { return reading.tree.find(task.node, key); };
  read_foreach(reading, task, find("foreach"));
  read_inputs(reading, task, find("inputs"));
  read_after(reading, task, find("after"));
  read_outputs(reading, task, find("outputs"));
  read_attempt_rules(reading, task);
}

void read_all(SpecReading& reading, const SpecOptions& options) {
  const NodeIndex root = reading.tree.root();
  if (reading.tree[root].kind == YamlNode::Kind::kScalar) {
    reading.diagnostics.error(
        reading.tree[root].mark, "a spec must be a map, found " + shown(reading.tree[root]),
        "a spec begins with 'sluice: 1'; a list of commands is run by 'sluice run --commands " +
            options.file.filename().string() + "'");
    return;
  }
  if (!expect_map(reading, root, "a spec", "sluice: 1")) {
    return;
  }
  check_keys(reading.tree, root, Level::kTop, "the spec", reading.diagnostics);
  check_version(reading);
  read_params(reading, reading.tree.find(root, "params"), options.set, options.set_is_recorded);
  read_limits(reading, reading.tree.find(root, "limits"));
  reading.keep_environment =
      read_keep_env(reading, reading.tree.find(root, "keep_env"), "'keep_env'");
  declare_tasks(reading);
  for (SpecTask& task : reading.tasks) {
    read_task(reading, task);
  }
  resolve_after(reading);
  resolve_inputs(reading);
  for (SpecTask& task : reading.tasks) {
    read_command(reading, task);
    read_start_rules(reading, task);
    read_uses(reading, task);
    check_output_names(reading, task);
  }
  join_inputs(reading);
  for (SpecTask& task : reading.tasks) {
    check_views(reading, task);
    check_placed_names(reading, task);
    check_path_words(reading, task);
    check_list_words(reading, task);
  }
}

// Static keys look at files, so they come last.
std::vector<std::vector<scheduler::Hash128>> all_keys(SpecReading& reading) {
  std::vector<std::vector<scheduler::Hash128>> keys;
  keys.reserve(reading.tasks.size());
  for (SpecTask& task : reading.tasks) {
    keys.push_back(static_keys(reading, task));
  }
  return keys;
}

void add_task(SpecTask& task, const std::vector<scheduler::Hash128>& keys,
              scheduler::GraphBuilder& builder) {
  scheduler::TaskSpec spec = std::move(task.spec);
  spec.name = task.name;
  spec.request = builder.request(task.request);
  for (const SpecOutput& output : task.outputs) {
    spec.outputs.push_back({output.name, output.kind, output.keep || !output.consumed});
    task.text.outputs.push_back({output.file_name, output.value_type});
  }
  for (size_t i = 0; i < task.inputs.size(); ++i) {
    task.text.inputs[i].name = task.inputs[i].name;
  }
  builder.task(std::move(spec), keys);
}

void add_groups(const SpecTask& task, scheduler::TaskId id, scheduler::GraphBuilder& builder) {
  std::vector<scheduler::ObjectId> objects;
  std::vector<scheduler::InstanceId> consumers;
  for (size_t i = 0; i < task.inputs.size(); ++i) {
    const scheduler::TaskId producer(task.inputs[i].producer);
    const JoinGroups& groups = task.groups[i];
    for (size_t group = 0; group < groups.size(); ++group) {
      objects.clear();
      consumers.clear();
      for (const uint32_t item : groups.producers_of(group)) {
        objects.push_back(builder.so_far().object(builder.so_far().instance(producer, item),
                                                  task.inputs[i].output));
      }
      for (const uint32_t item : groups.consumers_of(group)) {
        consumers.push_back(builder.so_far().instance(id, item));
      }
      builder.group(objects, consumers);
    }
  }
}

void add_gates(const SpecTask& task, scheduler::TaskId id, scheduler::GraphBuilder& builder) {
  const auto instances = [&](scheduler::TaskId of, std::span<const uint32_t> items) {
    std::vector<scheduler::InstanceId> all;
    for (const uint32_t item : items) {
      all.push_back(builder.so_far().instance(of, item));
    }
    return all;
  };
  for (size_t i = 0; i < task.after.size(); ++i) {
    const scheduler::TaskId before(task.after[i].producer);
    const JoinGroups& groups = task.after_groups[i];
    for (size_t group = 0; group < groups.size(); ++group) {
      builder.gate(instances(before, groups.producers_of(group)),
                   instances(id, groups.consumers_of(group)));
    }
  }
}

Pipeline build(SpecReading& reading, const std::vector<std::vector<scheduler::Hash128>>& keys) {
  Pipeline pipeline;
  scheduler::GraphBuilder builder;
  for (scheduler::Limit& limit : reading.limits) {
    builder.limit(limit.name, limit.total);
  }
  for (size_t i = 0; i < reading.tasks.size(); ++i) {
    add_task(reading.tasks[i], keys[i], builder);
  }
  for (size_t i = 0; i < reading.tasks.size(); ++i) {
    add_groups(reading.tasks[i], scheduler::TaskId(i), builder);
    add_gates(reading.tasks[i], scheduler::TaskId(i), builder);
  }
  pipeline.graph = builder.build();
  for (size_t i = 0; i < reading.tasks.size(); ++i) {
    SpecTask& task = reading.tasks[i];
    task.groups.clear();
    task.templates.item_index = ItemIndex(task.text);
    pipeline.hidden->task_ids.emplace(task.name, scheduler::TaskId(i));
    task.text.mark = task.mark;
    pipeline.tasks.push_back(std::move(task.text));
    pipeline.hidden->tasks.push_back(std::move(task.templates));
  }
  for (const Param& param : reading.params) {
    const bool list = param.typed.kind == Value::Kind::kList;
    pipeline.params.emplace_back(param.name, list ? list_text(param.typed.list) : param.typed.text);
  }
  pipeline.hidden->params = std::move(reading.params);
  return pipeline;
}

}  // namespace

std::optional<Pipeline> read_pipeline(const SpecOptions& options, SourceIds& sources,
                                      Diagnostics& diagnostics) {
  if (options.command_list) return read_command_list(*options.command_list, diagnostics);
  std::error_code code;
  const fs::path file = fs::absolute(options.file, code).lexically_normal();
  diagnostics.set_source(options.file.string(), "");
  const std::optional<std::string> source = read_spec_source(
      file, "a spec file", "give the path of a spec: sluice run pipeline.yaml", diagnostics);
  if (!source) {
    return std::nullopt;
  }
  diagnostics.set_source(options.file.string(), normalised_source(*source));
  std::optional<YamlTree> tree = read_yaml(*source, diagnostics);
  if (!tree) {
    return std::nullopt;
  }
  apply_defaults(*tree, diagnostics);
  const fs::path folder = options.folder.empty() ? file.parent_path() : options.folder;
  SpecReading reading{*tree, diagnostics, sources, folder, options.run_directory, {}, {}, {},
                      {},    {},          {},      {}};
  read_all(reading, options);
  const std::string name = read_name(reading, file);
  const auto keys = all_keys(reading);
  if (diagnostics.errors() > 0) {
    return std::nullopt;
  }
  Pipeline pipeline = build(reading, keys);
  pipeline.name = name;
  pipeline.file = file;
  pipeline.folder = folder;
  pipeline.source = *source;
  return pipeline;
}

}  // namespace sluice::io
