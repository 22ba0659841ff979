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
      read_as();
      read_view(reading_, task_, node_, input_);
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
      read_join();
    } else if (file != kNoNode) {
      source(file);
      refuse_join();
    } else if (tree_.find(node_, "any_of") == kNoNode) {
      reading_.diagnostics.error(tree_[node_].mark, where() + " names neither a task nor a file",
                                 "write either {from: task.output} or {file: path}");
    }
  }

  void read_as() {
    input_.as_node = tree_.find(node_, "as");
    if (input_.as_node == kNoNode) {
      return;
    }
    const auto text = read_text(reading_, input_.as_node, "'as' of " + where());
    if (text && !is_plain_file_name(*text)) {
      report_value(reading_, input_.as_node,
                   "'as' of " + where() + " is '" + *text + "', which is not a plain file name",
                   "the input is placed at the top of the attempt's directory: write the name "
                   "alone, at most 150 bytes, without '/'");
    } else {
      input_.placed_as = text.value_or("");
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

  // "mesh.field, mesh.log" for a task mesh; "" if there is no such task or it has no outputs.
  [[nodiscard]] std::string outputs_of(const std::string& task) const {
    const NodeIndex tasks = tree_.find(tree_.root(), "tasks");
    const NodeIndex found = tasks == kNoNode ? kNoNode : tree_.find(tasks, task);
    const NodeIndex outputs = found == kNoNode ? kNoNode : tree_.find(found, "outputs");
    std::string names;
    if (outputs == kNoNode) {
      return names;
    }
    for (const NodeIndex child : tree_.children(outputs)) {
      names += (names.empty() ? "" : ", ") + task + "." + tree_[child].key;
    }
    return names;
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
      const std::string outputs = outputs_of(*text);
      report_value(reading_, scalar,
                   where() + " is '" + *text + "', which is not of the form task.output",
                   outputs.empty() ? "for a file of the pipeline folder write {file: " + *text + "}"
                                   : "name an output of that task: " + outputs);
      return;
    }
    input_.node = scalar;
    input_.from_task = task;
    input_.from_output = output;
  }

  // A file has no instances to choose from.
  void refuse_join() {
    for (const char* key : {"join", "where", "missing"}) {
      if (const NodeIndex node = tree_.find(node_, key); node != kNoNode) {
        reading_.diagnostics.error(
            tree_[node].key_mark,
            "'" + std::string(key) + "' in " + where() + " is for outputs of tasks, this is a file",
            "remove it");
      }
    }
  }

  void read_join() {
    if (const NodeIndex join = tree_.find(node_, "join"); join != kNoNode) {
      read_join_keys(join);
    }
    if (const NodeIndex conditions = tree_.find(node_, "where"); conditions != kNoNode) {
      read_where(conditions);
    }
    if (const NodeIndex missing = tree_.find(node_, "missing"); missing != kNoNode) {
      const auto text = read_text(reading_, missing, "'missing' of " + where());
      input_.join.skip_missing = text == "skip";
      if (text && *text != "skip" && *text != "error") {
        report_value(reading_, missing,
                     "'missing' of " + where() + " is '" + *text + "', error or skip is needed",
                     "");
      }
    }
  }

  void read_join_keys(NodeIndex join) {
    const YamlNode& node = tree_[join];
    if (node.kind == YamlNode::Kind::kScalar && node.text == "all") {
      input_.join.all = true;
      return;
    }
    const std::string what = "'join' of " + where();
    if (node.kind != YamlNode::Kind::kList || node.count == 0) {
      const std::string text = node.kind == YamlNode::Kind::kScalar ? node.text : "";
      reading_.diagnostics.error(
          node.mark, what + " must be all or a list of keys",
          is_name(text) ? "write join: [" + text + "]" : "write join: all, or join: [grid]");
      return;
    }
    input_.join.keys_node = join;
    for (const NodeIndex child : tree_.children(join)) {
      if (auto key = read_text(reading_, child, "a key in " + what)) {
        input_.join.keys.push_back(std::move(*key));
      }
    }
  }

  void read_where(NodeIndex conditions) {
    const std::string what = "'where' of " + where();
    if (!expect_map(reading_, conditions, what, "where: {seed: 0}")) {
      return;
    }
    for (const NodeIndex child : tree_.children(conditions)) {
      const std::string& key = tree_[child].key;
      std::string value_name = "'";
      value_name.append(key).append("' in ").append(what);
      if (auto value = read_text(reading_, child, value_name)) {
        input_.join.where.push_back({key, std::move(*value), child});
      }
    }
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
  input.resolved = true;
  input.producer = producer->second;
  input.output = static_cast<size_t>(output - outputs.begin());
}

// What a task waits for, in one row: its inputs, then its entries of `after`.
size_t edge_count(const SpecTask& task) { return task.inputs.size() + task.after.size(); }
const SpecInput& edge(const SpecTask& task, size_t index) {
  const size_t inputs = task.inputs.size();
  return index < inputs ? task.inputs[index] : task.after[index - inputs];
}

// Depth first along the edges, without recursion: a chain may be as long as the spec.
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
    size_t next_edge = 0;
  };

  void visit(size_t start) {
    path_ = {{start}};
    state_[start] = State::kOpen;
    while (!path_.empty()) {
      Step& step = path_.back();
      const SpecTask& task = reading_.tasks[step.task];
      if (step.next_edge == edge_count(task)) {
        state_[step.task] = State::kDone;
        path_.pop_back();
        continue;
      }
      const SpecInput& input = edge(task, step.next_edge++);
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
      const SpecInput& input = edge(consumer, steps[i].next_edge - 1);
      order += " -> " + consumer.name;
      edges += (edges.empty() ? "'" : ", '") + consumer.name +
               (input.is_order ? "' comes after '" + input.from_task + "'"
                               : "' reads " + input.from_task + "." + input.from_output + " as '" +
                                     input.name + "'");
    }
    const SpecInput& input = edge(reading_.tasks[steps[0].task], steps[0].next_edge - 1);
    reading_.diagnostics.error(reading_.tree[input.node].mark,
                               "the tasks wait for each other in a cycle: " + order,
                               edges + "; remove one of these");
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
