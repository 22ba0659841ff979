// dataset, rows, shard, gather: what an input takes of HDF5 files.
#include <algorithm>
#include <charconv>

#include "io/spec_reader.h"
#include "io/spec_schema.h"
#include "io/spec_values.h"

namespace sluice::io {

namespace {

constexpr int64_t kRowsMax = int64_t{1} << 62U;
constexpr const char* kViewKeys[] = {"dataset", "rows", "shard", "gather"};

class ViewReader {
 public:
  ViewReader(SpecReading& reading, const SpecTask& task, NodeIndex node, SpecInput& input)
      : reading_(reading),
        tree_(reading.tree),
        task_(task),
        node_(node),
        input_(input),
        where_("input '" + input.name + "' of task '" + task.name + "'") {}

  void run() {
    const size_t errors_before = reading_.diagnostics.errors();
    read();
    if (reading_.diagnostics.errors() > errors_before) {
      input_.view_node = kNoNode;  // nothing more is said of it
    }
  }

 private:
  void read() {
    for (const char* key : kViewKeys) {
      const NodeIndex found = tree_.find(node_, key);
      if (found != kNoNode && input_.view_node == kNoNode) {
        input_.view_node = found;
      }
    }
    if (const NodeIndex node = tree_.find(node_, "dataset"); node != kNoNode) {
      read_dataset(node);
    }
    if (const NodeIndex node = tree_.find(node_, "rows"); node != kNoNode) {
      read_rows(node);
    }
    if (const NodeIndex node = tree_.find(node_, "shard"); node != kNoNode) {
      read_shard(node);
    }
    if (const NodeIndex node = tree_.find(node_, "gather"); node != kNoNode) {
      read_gather(node);
    }
  }

  [[nodiscard]] std::string of_key(const char* key) const {
    return std::string("'") + key + "' of " + where_;
  }

  void read_dataset(NodeIndex node) {
    const std::string what = of_key("dataset");
    const auto text = read_text(reading_, node, what);
    if (!text) {
      return;
    }
    std::string path = text->rfind('/', 0) == 0 ? *text : "/" + *text;
    if (path.size() == 1 || path.back() == '/' || path.find("//") != std::string::npos) {
      report_value(reading_, node, what + " is '" + *text + "', which names no dataset",
                   "write its path in the file, such as /u or /mesh/coords");
      return;
    }
    input_.view.dataset = std::move(path);
  }

  void read_rows(NodeIndex node) {
    const std::string what = of_key("rows");
    if (tree_[node].kind != YamlNode::Kind::kList || tree_[node].count != 2) {
      reading_.diagnostics.error(tree_[node].mark, what + " must be two numbers",
                                 "write rows: [first, end], the end not included: [0, 100] are "
                                 "the first 100");
      return;
    }
    std::vector<int64_t> numbers;
    for (const NodeIndex child : tree_.children(node)) {
      if (const auto number = read_int(reading_, child, "a number in " + what, 0, kRowsMax)) {
        numbers.push_back(*number);
      }
    }
    if (numbers.size() != 2) {
      return;  // reported
    }
    if (numbers[0] > numbers[1]) {
      reading_.diagnostics.error(tree_[node].mark,
                                 what + " begin at " + std::to_string(numbers[0]) +
                                     " and end before, at " + std::to_string(numbers[1]),
                                 "write rows: [first, end], the end not included");
      return;
    }
    input_.view.first_row = numbers[0];
    input_.view.end_row = numbers[1];
  }

  void read_shard(NodeIndex node) {
    const std::string what = of_key("shard");
    const auto key = read_text(reading_, node, what);
    if (!key || !task_.items_known) {
      return;
    }
    if (task_.shards.count(*key) > 0) {
      input_.shard_key = *key;
      return;
    }
    const auto& keys = task_.text.keys;
    if (std::find(keys.begin(), keys.end(), *key) != keys.end()) {
      report_value(reading_, node, what + ": the foreach key '" + *key + "' does not count shards",
                   "write foreach: {" + *key + ": {shards: 16}}");
      return;
    }
    std::vector<std::string> known;
    for (const auto& [name, count] : task_.shards) {
      known.push_back(name);
    }
    report_value(reading_, node, what + " is '" + *key + "', which is no foreach key of it",
                 known.empty() ? "write foreach: {part: {shards: 16}} and shard: part"
                               : suggestion(*key, known, "the keys that count shards are"));
  }

  void read_gather(NodeIndex node) {
    const auto text = read_text(reading_, node, of_key("gather"));
    if (text == "concat") {
      input_.view.gather = H5View::Gather::kConcat;
    } else if (text == "stack") {
      input_.view.gather = H5View::Gather::kStack;
    } else if (text) {
      report_value(reading_, node,
                   of_key("gather") + " is '" + *text + "', concat or stack is needed", "");
    }
  }

  SpecReading& reading_;
  const YamlTree& tree_;
  const SpecTask& task_;
  NodeIndex node_;
  SpecInput& input_;
  std::string where_;
};

// One input's view beside what it reads. Gathered, it is a single file.
void check_view(SpecReading& reading, SpecTask& task, size_t index) {
  const SpecInput& input = task.inputs[index];
  if (input.view_node == kNoNode) {
    return;
  }
  const std::string where = "input '" + input.name + "' of task '" + task.name + "'";
  const YamlNode& node = reading.tree[input.view_node];
  const std::string key = "'" + node.key + "' of " + where;
  bool& is_list = task.text.inputs[index].is_list;
  const bool gathers = input.view.gather != H5View::Gather::kNone;
  if (!input.is_source && input.resolved) {
    const SpecTask& producer = reading.tasks[input.producer];
    const SpecOutput& output = producer.outputs[input.output];
    if (output.kind != scheduler::OutputKind::kH5) {
      reading.diagnostics.error(node.key_mark,
                                key + " is for HDF5 files, output '" + output.name + "' of task '" +
                                    producer.name + "' is none",
                                "declare that output as {h5: " + output.file_name + "}");
      return;
    }
  }
  if (gathers && !is_list) {
    reading.diagnostics.error(node.key_mark,
                              "'gather' of " + where + " is for lists, this is a single file",
                              "remove it, or choose the files by 'join'");
  } else if (is_list && !gathers) {
    reading.diagnostics.error(node.key_mark, key + " is for single files, this is a list",
                              "add gather: concat or gather: stack, which make one file of it");
  } else if (gathers && !input.shard_key.empty()) {
    reading.diagnostics.error(node.key_mark, where + " has both 'gather' and 'shard'",
                              "gather in a task of its own, and divide its output");
  }
  is_list = is_list && !gathers;
  if (!input.shard_key.empty()) {
    const auto& keys = task.text.keys;
    InputView& view = task.templates.views[index];
    view.shard_key =
        static_cast<uint32_t>(std::find(keys.begin(), keys.end(), input.shard_key) - keys.begin());
    view.view.shards = task.shards.at(input.shard_key);
  }
}

}  // namespace

void read_view(SpecReading& reading, const SpecTask& task, NodeIndex node, SpecInput& input) {
  ViewReader(reading, task, node, input).run();
}

std::string view_text(const SpecInput& input) {
  const H5View& view = input.view;
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (!view.dataset.empty()) {
    add("dataset " + view.dataset);
  }
  if (view.end_row != H5View::kAllRows) {
    add("rows " + std::to_string(view.first_row) + " to " + std::to_string(view.end_row));
  }
  if (!input.shard_key.empty()) {
    add("shard " + input.shard_key);
  }
  if (view.gather != H5View::Gather::kNone) {
    add(view.gather == H5View::Gather::kConcat ? "concatenated" : "stacked");
  }
  return text;
}

void check_views(SpecReading& reading, SpecTask& task) {
  for (size_t i = 0; i < task.inputs.size(); ++i) {
    check_view(reading, task, i);
  }
}

H5View view_of(const InputView& input, const TaskText& task, uint32_t item) {
  H5View view = input.view;
  if (input.shard_key == kNoIndex) {
    return view;
  }
  const std::string& text = task.items[item][input.shard_key];
  std::from_chars(text.data(), text.data() + text.size(), view.shard);
  return view;
}

}  // namespace sluice::io
