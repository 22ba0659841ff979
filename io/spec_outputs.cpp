// outputs: of a task.
#include <algorithm>

#include "io/spec_reader.h"
#include "io/spec_schema.h"

namespace sluice::io {

namespace {

constexpr size_t kFileNameBytesMax = 150;
constexpr const char* kWriteOne =
    "write one of {file: name}, {h5: name}, {dir: name}, {value: int}";

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
    if (expect_map(reading_, node_, where(),
                   node.key + ": {file: " + name + "} or " + node.key + ": {h5: " + name + "}")) {
      check_keys(tree_, node_, Level::kOutput, where(), reading_.diagnostics);
      read_kind();
      read_keep();
    }
    return output_;
  }

 private:
  std::string where() const {
    return "output '" + tree_[node_].key + "' of task '" + task_.name + "'";
  }

  // What is one of several kinds; `file` beside `value` only names the value's file.
  void read_kind() {
    const NodeIndex file = tree_.find(node_, "file");
    const NodeIndex value = tree_.find(node_, "value");
    const NodeIndex h5 = tree_.find(node_, "h5");
    const NodeIndex dir = tree_.find(node_, "dir");
    const bool plain_file = file != kNoNode && value == kNoNode;
    const int kinds = static_cast<int>(plain_file) + static_cast<int>(value != kNoNode) +
                      static_cast<int>(h5 != kNoNode) + static_cast<int>(dir != kNoNode);
    if (kinds > 1 || (file != kNoNode && (h5 != kNoNode || dir != kNoNode))) {
      reading_.diagnostics.error(tree_[node_].mark, where() + " has two kinds", kWriteOne);
    } else if (value != kNoNode) {
      output_.kind = scheduler::OutputKind::kValue;
      output_.file_name = output_.name;
      read_type(value);
      if (file != kNoNode) {
        read_file_name(file);
      }
    } else if (h5 != kNoNode) {
      read_named(scheduler::OutputKind::kH5, h5);
    } else if (dir != kNoNode) {
      read_named(scheduler::OutputKind::kDir, dir);
    } else if (file != kNoNode) {
      read_named(scheduler::OutputKind::kFile, file);
    } else if (tree_.find(node_, "lines") == kNoNode) {
      reading_.diagnostics.error(tree_[node_].mark, where() + " has no kind", kWriteOne);
    }
  }

  void read_named(scheduler::OutputKind kind, NodeIndex name) {
    output_.kind = kind;
    read_file_name(name);
  }

  void read_type(NodeIndex node) {
    static const std::vector<std::string> kTypes = {"int", "float", "bool", "string", "list"};
    const std::string& text = tree_[node].text;
    const auto found = std::find(kTypes.begin(), kTypes.end(), text);
    if (found != kTypes.end()) {
      output_.value_type = static_cast<ValueType>(found - kTypes.begin());
      return;
    }
    reading_.diagnostics.error(tree_[node].mark,
                               where() + ": there is no type '" + text + "' of values",
                               suggestion(text, kTypes, "the types are"));
  }

  void read_file_name(NodeIndex node) {
    const YamlNode& found = tree_[node];
    const std::string& text = found.text;
    if (found.kind != YamlNode::Kind::kScalar || text.empty()) {
      reading_.diagnostics.error(found.mark, "the file of " + where() + " has no name",
                                 "write {file: name}");
    } else if (text.find("${{") != std::string::npos) {
      reading_.diagnostics.error(
          found.mark, "the file name of " + where() + " cannot change with params or items",
          "each attempt has its own directory, and results are named after the item: a plain name "
          "is enough");
    } else if (!is_plain_file_name(text)) {
      reading_.diagnostics.error(found.mark,
                                 "'" + text + "' of " + where() + " is not a plain file name",
                                 "outputs are made in the attempt's directory: write the name "
                                 "alone, at most 150 bytes, without '/'");
    } else {
      output_.file_name = text;
    }
  }

  void read_keep() {
    const NodeIndex keep = tree_.find(node_, "keep");
    output_.keep = keep != kNoNode;
    if (keep != kNoNode && tree_[keep].text != "true") {
      reading_.diagnostics.error(
          tree_[keep].mark,
          "'keep' of " + where() + " is '" + tree_[keep].text + "', only true is supported",
          "write keep: true, or leave it out: what no task reads is kept anyway");
    }
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
    if (!fresh && !output.file_name.empty()) {
      reading.diagnostics.error(output.mark,
                                "outputs '" + other->second + "' and '" + output.name +
                                    "' of task '" + task.name + "' are both the file '" +
                                    output.file_name + "'",
                                "give each its own name");
    }
  }
}

}  // namespace

bool is_plain_file_name(const std::string& text) {
  const bool control =
      std::any_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; });
  return !text.empty() && text.find('/') == std::string::npos && text != "." && text != ".." &&
         !control && text.size() <= kFileNameBytesMax;
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
