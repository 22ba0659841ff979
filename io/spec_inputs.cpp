// inputs: and outputs: of the tasks, the producers they name, and cycles among them.
#include <algorithm>

#include "io/spec_reader.h"
#include "io/spec_schema.h"
#include "io/spec_values.h"

namespace sluice::io {

namespace {

constexpr size_t kFileNameBytesMax = 150;

// One `inputs:` entry.
class InputReader {
 public:
  InputReader(SpecReading& reading, SpecTask& task, NodeIndex node)
      : reading_(reading), tree_(reading.tree), task_(task), node_(node) {}

  std::optional<SpecInput> run() {
    const YamlNode& node = tree_[node_];
    if (!check_name(reading_, node, "an input")) {
      return std::nullopt;
    }
    input_.name = node.key;
    input_.mark = node.key_mark;
    input_.node = node_;
    if (node.kind == YamlNode::Kind::kScalar) {
      return reference(node_) ? std::optional(input_) : std::nullopt;
    }
    if (!expect_map(reading_, node_, where(),
                    node.key + ": task.output, or " + node.key + ": {file: path}")) {
      return std::nullopt;
    }
    check_keys(tree_, node_, Level::kInput, where(), reading_.diagnostics);
    return read_map() ? std::optional(input_) : std::nullopt;
  }

 private:
  std::string where() const {
    return "input '" + tree_[node_].key + "' of task '" + task_.name + "'";
  }

  bool read_map() {
    const NodeIndex from = tree_.find(node_, "from");
    const NodeIndex file = tree_.find(node_, "file");
    if ((from == kNoNode) == (file == kNoNode)) {
      reading_.diagnostics.error(tree_[node_].mark,
                                 where() + (from == kNoNode ? " names neither a task nor a file"
                                                            : " names both a task and a file"),
                                 "write either {from: task.output} or {file: path}");
      return false;
    }
    if (from != kNoNode) {
      return reference(from);
    }
    input_.is_source = true;
    input_.node = file;
    return source(file);
  }

  bool source(NodeIndex file) {
    const YamlNode& node = tree_[file];
    if (node.kind != YamlNode::Kind::kScalar || node.text.empty()) {
      reading_.diagnostics.error(node.mark, "the file of " + where() + " must be a path",
                                 "write {file: path}, relative to the pipeline folder");
      return false;
    }
    ParsedTemplate parsed = parse_template(node.text);
    report(reading_, file, parsed.errors);
    AllowedNames allowed;
    allowed.items = true;
    classify(reading_, &task_, file, parsed.parts, allowed);
    input_.path = std::move(parsed.parts);
    return true;
  }

  bool reference(NodeIndex scalar) {
    const std::optional<std::string> text = read_text(reading_, scalar, where());
    if (!text) {
      return false;
    }
    const size_t dot = text->find('.');
    const std::string task = text->substr(0, dot);
    const std::string output = dot == std::string::npos ? "" : text->substr(dot + 1);
    if (!is_name(task) || !is_name(output)) {
      report_value(reading_, scalar,
                   where() + " is '" + *text + "', which is not of the form task.output",
                   "for a file of the pipeline folder write {file: " + *text + "}");
      return false;
    }
    input_.node = scalar;
    input_.from_task = task;
    input_.from_output = output;
    return true;
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

// One `outputs:` entry.
class OutputReader {
 public:
  OutputReader(SpecReading& reading, SpecTask& task, NodeIndex node)
      : reading_(reading), tree_(reading.tree), task_(task), node_(node) {}

  std::optional<SpecOutput> run() {
    const YamlNode& node = tree_[node_];
    if (!check_name(reading_, node, "an output")) {
      return std::nullopt;
    }
    output_.name = node.key;
    output_.mark = node.key_mark;
    const std::string name =
        node.kind == YamlNode::Kind::kScalar && !node.text.empty() ? node.text : "name";
    if (!expect_map(reading_, node_, where(),
                    node.key + ": {file: " + name + "} or " + node.key + ": {h5: " + name + "}")) {
      return std::nullopt;
    }
    check_keys(tree_, node_, Level::kOutput, where(), reading_.diagnostics);
    return read_kind() && read_keep() ? std::optional(output_) : std::nullopt;
  }

 private:
  std::string where() const {
    return "output '" + tree_[node_].key + "' of task '" + task_.name + "'";
  }

  bool read_kind() {
    const NodeIndex file = tree_.find(node_, "file");
    const NodeIndex h5 = tree_.find(node_, "h5");
    const NodeIndex value = tree_.find(node_, "value");
    if (value == kNoNode && (file == kNoNode) == (h5 == kNoNode)) {
      reading_.diagnostics.error(tree_[node_].mark,
                                 where() + (h5 == kNoNode ? " has no kind" : " has two kinds"),
                                 "write one of {file: name}, {h5: name}, {value: int}");
      return false;
    }
    if (value != kNoNode && h5 != kNoNode) {
      reading_.diagnostics.error(tree_[node_].mark, where() + " has two kinds",
                                 "write either {h5: name} or {value: int}");
      return false;
    }
    if (value != kNoNode) {
      output_.kind = scheduler::OutputKind::kValue;
      output_.file_name = output_.name;
      return read_type(value) && (file == kNoNode || read_file_name(file));
    }
    output_.kind = h5 != kNoNode ? scheduler::OutputKind::kH5 : scheduler::OutputKind::kFile;
    return read_file_name(h5 != kNoNode ? h5 : file);
  }

  bool read_type(NodeIndex node) {
    static const std::vector<std::string> kTypes = {"int", "float", "bool", "string", "list"};
    const std::string& text = tree_[node].text;
    const auto found = std::find(kTypes.begin(), kTypes.end(), text);
    if (found == kTypes.end()) {
      reading_.diagnostics.error(tree_[node].mark,
                                 where() + ": there is no type '" + text + "' of values",
                                 suggestion(text, kTypes, "the types are"));
      return false;
    }
    output_.value_type = static_cast<ValueType>(found - kTypes.begin());
    return true;
  }

  bool read_file_name(NodeIndex node) {
    const YamlNode& found = tree_[node];
    const std::string& text = found.text;
    if (found.kind != YamlNode::Kind::kScalar || found.style == YamlNode::Style::kAbsent ||
        text.empty()) {
      reading_.diagnostics.error(found.mark, "the file of " + where() + " has no name",
                                 "write {file: name}");
      return false;
    }
    if (text.find("${{") != std::string::npos) {
      reading_.diagnostics.error(
          found.mark, "the file name of " + where() + " cannot change with params or items",
          "each attempt has its own directory, and results are named after "
          "the item: a plain name is enough");
      return false;
    }
    const bool control = std::any_of(text.begin(), text.end(),
                                     [](unsigned char c) { return c < 0x20 || c == 0x7F; });
    if (text.find('/') != std::string::npos || text == "." || text == ".." || control ||
        text.size() > kFileNameBytesMax) {
      reading_.diagnostics.error(found.mark,
                                 "'" + text + "' of " + where() + " is not a plain file name",
                                 "outputs are made in the attempt's directory: write the name "
                                 "alone, at most 150 bytes, without '/'");
      return false;
    }
    output_.file_name = text;
    return true;
  }

  bool read_keep() {
    const NodeIndex keep = tree_.find(node_, "keep");
    if (keep == kNoNode) {
      return true;
    }
    if (tree_[keep].text != "true") {
      reading_.diagnostics.error(
          tree_[keep].mark,
          "keep of " + where() + " is '" + tree_[keep].text + "', only true is supported",
          "leave it out: what no task reads is kept anyway");
      return false;
    }
    output_.keep = true;
    return true;
  }

  SpecReading& reading_;
  const YamlTree& tree_;
  SpecTask& task_;
  NodeIndex node_;
  SpecOutput output_;
};

// Two outputs of a task, one file; or a file where the inputs are.
void check_file_names(SpecReading& reading, const SpecTask& task) {
  std::map<std::string, std::string> names;
  for (const SpecOutput& output : task.outputs) {
    if (output.file_name == "in") {
      reading.diagnostics.error(output.mark,
                                "the file of output '" + output.name + "' of task '" + task.name +
                                    "' is named 'in', where the inputs are",
                                "choose another name");
    }
    const auto [other, fresh] = names.emplace(output.file_name, output.name);
    if (!fresh) {
      reading.diagnostics.error(output.mark,
                                "outputs '" + other->second + "' and '" + output.name +
                                    "' of task '" + task.name + "' are both the file '" +
                                    output.file_name + "'",
                                "give each its own name");
    }
  }
}

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

void read_outputs(SpecReading& reading, SpecTask& task, NodeIndex outputs) {
  if (outputs == kNoNode || !expect_map(reading, outputs, "'outputs' of task '" + task.name + "'",
                                        "outputs: {field: {h5: field.h5}}")) {
    return;
  }
  for (const NodeIndex child : reading.tree.children(outputs)) {
    if (std::optional<SpecOutput> output = OutputReader(reading, task, child).run()) {
      task.outputs.push_back(std::move(*output));
    }
  }
  check_file_names(reading, task);
}

void resolve_inputs(SpecReading& reading) {
  for (SpecTask& task : reading.tasks) {
    for (SpecInput& input : task.inputs) {
      if (!input.is_source) {
        resolve(reading, task, input);
      }
    }
  }
  CycleFinder(reading).run();
}

// "k=1" + "a.b" and "k=1.a" + "b" would be the same file in results/.
void check_output_names(SpecReading& reading, const SpecTask& task) {
  const auto ends_with = [](const std::string& text, const std::string& end) {
    return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
  };
  for (const SpecOutput& a : task.outputs) {
    for (const SpecOutput& b : task.outputs) {
      if (task.text.keys.empty() || !ends_with(a.file_name, "." + b.file_name)) {
        continue;
      }
      const std::string middle = a.file_name.substr(0, a.file_name.size() - b.file_name.size());
      std::map<std::string, uint32_t> names;
      for (uint32_t i = 0; i < task.text.items.size(); ++i) {
        names.emplace(item_text(task.text, i), i);
      }
      for (uint32_t i = 0; i < task.text.items.size(); ++i) {
        const std::string item = item_text(task.text, i);
        const auto clash = names.find(item + "." + middle.substr(0, middle.size() - 1));
        if (clash != names.end()) {
          reading.diagnostics.error(a.mark,
                                    "outputs '" + a.name + "' and '" + b.name + "' of task '" +
                                        task.name + "' would both be the result '" + item + "." +
                                        a.file_name + "'",
                                    "give one of them another file name");
          return;
        }
      }
    }
  }
}

}  // namespace sluice::io
