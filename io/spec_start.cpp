// How an attempt is started: stdin, stdout, cwd and keep_env of a task, `as` of its inputs.
#include <algorithm>

#include "io/spec_reader.h"

namespace sluice::io {

namespace {

class StartReader {
 public:
  StartReader(SpecReading& reading, SpecTask& task)
      : reading_(reading), tree_(reading.tree), task_(task), start_(task.templates.start) {}

  void run() {
    start_.stdin_input = named("stdin", task_.inputs, "an input", "inputs");
    start_.stdout_output = named("stdout", task_.outputs, "an output", "outputs");
    refuse_directories();
    read_cwd(tree_.find(task_.node, "cwd"));
    start_.keep_environment = reading_.keep_environment;
    for (std::string& name : read_keep_env(reading_, tree_.find(task_.node, "keep_env"),
                                           "'keep_env' of task '" + task_.name + "'")) {
      start_.keep_environment.push_back(std::move(name));
    }
    for (const SpecInput& input : task_.inputs) {
      start_.placed_as.push_back(input.placed_as);
    }
  }

 private:
  // A stream of bytes comes from a file and becomes one.
  void refuse_directories() {
    const auto refuse = [&](const char* key, const std::string& what) {
      reading_.diagnostics.error(
          tree_[tree_.find(task_.node, key)].mark,
          "'" + std::string(key) + "' of task '" + task_.name + "': " + what + " is a directory",
          "only a file or a value can be " + std::string(key));
    };
    if (start_.stdin_input != kNoIndex) {
      const SpecInput& input = task_.inputs[start_.stdin_input];
      const bool resolved = input.resolved && !input.is_source;
      if (resolved && reading_.tasks[input.producer].outputs[input.output].kind ==
                          scheduler::OutputKind::kDir) {
        refuse("stdin", "input '" + input.name + "'");
      }
    }
    if (start_.stdout_output != kNoIndex) {
      const SpecOutput& output = task_.outputs[start_.stdout_output];
      if (output.kind == scheduler::OutputKind::kDir) {
        refuse("stdout", "output '" + output.name + "'");
      }
    }
  }

  // The index of the input or output that `key` names.
  template <class T>
  uint32_t named(const char* key, const std::vector<T>& all, const char* what, const char* where) {
    const NodeIndex node = tree_.find(task_.node, key);
    if (node == kNoNode) {
      return kNoIndex;
    }
    const std::string of_task = "'" + std::string(key) + "' of task '" + task_.name + "'";
    const std::optional<std::string> text = read_text(reading_, node, of_task);
    if (!text) {
      return kNoIndex;
    }
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const T& one) { return one.name == *text; });
    if (found != all.end()) {
      return static_cast<uint32_t>(found - all.begin());
    }
    const std::string declare =
        std::string("declare it under '").append(where).append("' and write its name here");
    report_value(reading_, node, of_task + " is '" + *text + "', which is not " + what + " of it",
                 all.empty()
                     ? declare
                     : suggestion(*text, names_of(all), std::string("its ") + where + " are"));
    return kNoIndex;
  }

  void read_cwd(NodeIndex node) {
    if (node == kNoNode) {
      return;
    }
    const std::string where = "'cwd' of task '" + task_.name + "'";
    const auto text = read_text(reading_, node, where);
    start_.in_pipeline_folder = text == "pipeline";
    if (text && !start_.in_pipeline_folder) {
      report_value(reading_, node, where + " is '" + *text + "', which is no place to start in",
                   "write 'cwd: pipeline' for the pipeline folder, or leave it out for a directory "
                   "of the attempt's own");
    }
  }

  SpecReading& reading_;
  const YamlTree& tree_;
  SpecTask& task_;
  StartRules& start_;
};

// "SLURM_JOB_ID" or "SLURM_*".
bool is_variable_pattern(std::string_view text) {
  if (!text.empty() && text.back() == '*') {
    text.remove_suffix(1);
  }
  return is_variable_name(text);
}

void report_placed(SpecReading& reading, const SpecInput& input, const std::string& text,
                   const std::string& hint) {
  reading.diagnostics.error(reading.tree[input.as_node].mark, text, hint);
}

// $IN_x_ITEMS is the table of a list x, so an input x_ITEMS would hide it.
void refuse_items_name(SpecReading& reading, const SpecTask& task, const SpecInput& list) {
  for (const SpecInput& input : task.inputs) {
    if (input.name == list.name + "_ITEMS") {
      reading.diagnostics.error(input.mark,
                                "task '" + task.name + "': $IN_" + input.name +
                                    " would be both this input and the items of '" + list.name +
                                    "'",
                                "rename one of the two inputs");
    }
  }
}

}  // namespace

std::vector<std::string> read_keep_env(SpecReading& reading, NodeIndex keep_env,
                                       const std::string& where) {
  std::vector<std::string> names;
  if (keep_env == kNoNode) {
    return names;
  }
  const char* example = "write keep_env: [SLURM_JOB_ID] or [\"SLURM_*\"]";
  if (reading.tree[keep_env].kind != YamlNode::Kind::kList) {
    reading.diagnostics.error(reading.tree[keep_env].mark,
                              where + " must be a list of names of variables", example);
    return names;
  }
  for (const NodeIndex child : reading.tree.children(keep_env)) {
    const auto text = read_text(reading, child, "a name in " + where);
    if (text && is_variable_pattern(*text)) {
      names.push_back(*text);
    } else if (text) {
      report_value(reading, child,
                   "'" + *text + "' in " + where +
                       " is not the name of a variable, nor the "
                       "beginning of names and a '*'",
                   example);
    }
  }
  return names;
}

void check_placed_names(SpecReading& reading, const SpecTask& task) {
  std::map<std::string, std::string> names = {{"in", "the folder of the inputs"}};
  for (const SpecOutput& output : task.outputs) {
    names.emplace(output.file_name, "the file of output '" + output.name + "'");
  }
  for (size_t i = 0; i < task.inputs.size(); ++i) {
    const SpecInput& input = task.inputs[i];
    if (task.text.inputs[i].is_list) {
      refuse_items_name(reading, task, input);
    }
    if (input.placed_as.empty()) {
      continue;
    }
    const std::string where = "input '" + input.name + "' of task '" + task.name + "'";
    const bool is_value =
        input.resolved &&
        reading.tasks[input.producer].outputs[input.output].kind == scheduler::OutputKind::kValue;
    if (task.text.inputs[i].is_list) {
      report_placed(
          reading, input, where + " is a list, 'as' is for single files",
          "read the files from the list in $IN_" + input.name + " or ${{ in." + input.name + " }}");
    } else if (is_value) {
      report_placed(reading, input, where + " is a value, 'as' is for files",
                    "its text is in $IN_" + input.name + " and ${{ in." + input.name + " }}");
    }
    const auto [other, fresh] =
        names.emplace(input.placed_as, "the place of input '" + input.name + "'");
    if (!fresh) {
      report_placed(reading, input,
                    "'as' of " + where + ": '" + input.placed_as + "' is " + other->second + " too",
                    "choose another name");
    }
  }
}

void read_start_rules(SpecReading& reading, SpecTask& task) { StartReader(reading, task).run(); }

}  // namespace sluice::io
