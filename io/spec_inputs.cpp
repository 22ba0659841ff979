// inputs: of the tasks, the producers they name, and cycles among them.
#include <algorithm>

#include "io/spec_reader.h"
#include "io/spec_schema.h"
#include "io/spec_values.h"

namespace sluice::io {

namespace {

// One `inputs:` entry.
class InputReader {
 public:
  InputReader(SpecReading& reading, SpecTask& task, NodeIndex node)
      : reading_(reading), tree_(reading.tree), task_(task), node_(node) {}

  // An entry that is refused is there all the same, for what names it: only its producer is not.
  std::optional<SpecInput> run() {
    const YamlNode& node = tree_[node_];
    if (!check_name(reading_, node, "an input")) {
      return std::nullopt;
    }
    input_.name = node.key;
    input_.mark = node.key_mark;
    input_.node = node_;
    if (node.kind == YamlNode::Kind::kScalar) {
      reference(node_);
    } else if (expect_map(reading_, node_, where(),
                          node.key + ": task.output, or " + node.key + ": {file: path}")) {
      check_keys(tree_, node_, Level::kInput, where(), reading_.diagnostics);
      read_map();
    }
    return input_;
  }

 private:
  std::string where() const {
    return "input '" + tree_[node_].key + "' of task '" + task_.name + "'";
  }

  void read_map() {
    const NodeIndex from = tree_.find(node_, "from");
    const NodeIndex file = tree_.find(node_, "file");
    if (from != kNoNode && file != kNoNode) {
      reading_.diagnostics.error(tree_[node_].mark, where() + " names both a task and a file",
                                 "write either {from: task.output} or {file: path}");
    } else if (from != kNoNode) {
      reference(from);
    } else if (file != kNoNode) {
      source(file);
    } else if (tree_.find(node_, "any_of") == kNoNode) {
      reading_.diagnostics.error(tree_[node_].mark, where() + " names neither a task nor a file",
                                 "write either {from: task.output} or {file: path}");
    }
  }

  void source(NodeIndex file) {
    const YamlNode& node = tree_[file];
    input_.is_source = true;
    input_.node = file;
    if (node.kind != YamlNode::Kind::kScalar || node.text.empty()) {
      reading_.diagnostics.error(node.mark, "the file of " + where() + " must be a path",
                                 "write {file: path}, relative to the pipeline folder");
      return;
    }
    ParsedTemplate parsed = parse_template(node.text);
    report(reading_, file, parsed.errors);
    AllowedNames allowed;
    allowed.items = true;
    classify(reading_, &task_, file, parsed.parts, allowed);
    input_.path = std::move(parsed.parts);
  }

  void reference(NodeIndex scalar) {
    const std::optional<std::string> text = read_text(reading_, scalar, where());
    if (!text) {
      return;
    }
    const size_t dot = text->find('.');
    const std::string task = text->substr(0, dot);
    const std::string output = dot == std::string::npos ? "" : text->substr(dot + 1);
    if (!is_name(task) || !is_name(output)) {
      report_value(reading_, scalar,
                   where() + " is '" + *text + "', which is not of the form task.output",
                   "for a file of the pipeline folder write {file: " + *text + "}");
      return;
    }
    input_.node = scalar;
    input_.from_task = task;
    input_.from_output = output;
  }

  SpecReading& reading_;
  const YamlTree& tree_;
  SpecTask& task_;
  NodeIndex node_;
  SpecInput input_;
};

// Fills in producer and output of one input.
void resolve(SpecReading& reading, const SpecTask& task, SpecInput& input) {
  const Mark mark = reading.tree[input.node].mark;
  const std::string where = "input '" + input.name + "' of task '" + task.name + "'";
  const auto producer = reading.task_index.find(input.from_task);
  if (producer == reading.task_index.end()) {
    const std::string text = input.from_task + "." + input.from_output;
    const std::string near = did_you_mean(input.from_task, names_of(reading.tasks));
    std::error_code ignored;
    const bool is_file = std::filesystem::exists(in_folder(reading.folder, text), ignored);
    const std::string remedy = "write {file: " + text + "}";
    reading.diagnostics.error(mark, where + ": there is no task '" + input.from_task + "'",
                              is_file        ? "for the file " + remedy
                              : near.empty() ? "for a file of the pipeline folder " + remedy
                                             : "did you mean '" + near + "'?");
    return;
  }
  std::vector<SpecOutput>& outputs = reading.tasks[producer->second].outputs;
  const auto output = std::find_if(outputs.begin(), outputs.end(), [&](const SpecOutput& one) {
    return one.name == input.from_output;
  });
  if (output == outputs.end()) {
    reading.diagnostics.error(
        mark, where + ": task '" + input.from_task + "' has no output '" + input.from_output + "'",
        outputs.empty() ? "it has no outputs"
                        : suggestion(input.from_output, names_of(outputs), "its outputs are"));
    return;
  }
  output->consumed = true;
  input.resolved = true;
  input.producer = producer->second;
  input.output = static_cast<size_t>(output - outputs.begin());
}

// Depth first along the inputs, without recursion: a chain may be as long as the spec.
class CycleFinder {
 public:
  explicit CycleFinder(SpecReading& reading)
      : reading_(reading), state_(reading.tasks.size(), State::kNew) {}

  void run() {
    for (size_t i = 0; i < reading_.tasks.size(); ++i) {
      if (state_[i] == State::kNew) {
        visit(i);
      }
    }
  }

 private:
  enum class State : uint8_t { kNew, kOpen, kDone };
  struct Step {
    size_t task;
    size_t next_input = 0;
  };

  void visit(size_t start) {
    path_ = {{start}};
    state_[start] = State::kOpen;
    while (!path_.empty()) {
      Step& step = path_.back();
      const auto& inputs = reading_.tasks[step.task].inputs;
      if (step.next_input == inputs.size()) {
        state_[step.task] = State::kDone;
        path_.pop_back();
        continue;
      }
      const SpecInput& input = inputs[step.next_input++];
      if (!input.resolved) {
        continue;
      }
      if (state_[input.producer] == State::kOpen) {
        report(input.producer);
      } else if (state_[input.producer] == State::kNew) {
        state_[input.producer] = State::kOpen;
        path_.push_back({input.producer});
      }
    }
  }

  // The path leads from consumers to producers and ends at `first`; data flows the other way.
  void report(size_t first) {
    const auto begin = std::find_if(path_.begin(), path_.end(),
                                    [&](const Step& step) { return step.task == first; });
    std::vector<Step> steps(begin, path_.end());
    const auto named = std::min_element(
        steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.task < b.task; });
    // Begin with the task that is declared first, whatever was visited first.
    std::rotate(steps.begin(), named, steps.end());
    std::string order = reading_.tasks[steps[0].task].name;
    std::string edges;
    for (size_t i = steps.size(); i-- > 0;) {
      const SpecTask& consumer = reading_.tasks[steps[i].task];
      const SpecInput& input = consumer.inputs[steps[i].next_input - 1];
      order += " -> " + consumer.name;
      edges += (edges.empty() ? "" : ", ") + ("'" + consumer.name) + "' reads " + input.from_task +
               "." + input.from_output + " as '" + input.name + "'";
    }
    const SpecTask& closing = reading_.tasks[steps[0].task];
    const SpecInput& input = closing.inputs[steps[0].next_input - 1];
    reading_.diagnostics.error(reading_.tree[input.node].mark,
                               "the tasks wait for each other in a cycle: " + order,
                               edges + "; remove one of these inputs");
  }

  SpecReading& reading_;
  std::vector<State> state_;
  std::vector<Step> path_;
};

}  // namespace

void read_inputs(SpecReading& reading, SpecTask& task, NodeIndex inputs) {
  if (inputs == kNoNode || !expect_map(reading, inputs, "'inputs' of task '" + task.name + "'",
                                       "inputs: {mesh: mesh.mesh}")) {
    return;
  }
  for (const NodeIndex child : reading.tree.children(inputs)) {
    if (std::optional<SpecInput> input = InputReader(reading, task, child).run()) {
      task.inputs.push_back(std::move(*input));
    }
  }
}

void resolve_inputs(SpecReading& reading) {
  for (SpecTask& task : reading.tasks) {
    for (SpecInput& input : task.inputs) {
      if (!input.from_task.empty()) {
        resolve(reading, task, input);
      }
    }
  }
  CycleFinder(reading).run();
}

}  // namespace sluice::io
