// run:, sh: and env: of a task.
#include <algorithm>
#include <cctype>
#include <set>

#include "io/spec_reader.h"
#include "io/spec_schema.h"
#include "io/spec_values.h"

namespace sluice::io {

namespace {

bool is_identifier_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool begins_with(std::string_view text, std::string_view begin) {
  return text.substr(0, begin.size()) == begin;
}

template <class T>
bool has_name(const std::vector<T>& all, std::string_view name) {
  return std::any_of(all.begin(), all.end(), [&](const T& one) { return one.name == name; });
}

class CommandReader {
 public:
  CommandReader(SpecReading& reading, SpecTask& task)
      : reading_(reading), tree_(reading.tree), task_(task), command_(task.templates.command) {}

  void run() {
    const NodeIndex run = tree_.find(task_.node, "run");
    const NodeIndex sh = tree_.find(task_.node, "sh");
    read_env(tree_.find(task_.node, "env"));
    read_setup(tree_.find(task_.node, "setup"));
    if (run != kNoNode && sh != kNoNode) {
      reading_.diagnostics.error(tree_[sh].key_mark,
                                 "task '" + task_.name + "' has both 'run' and 'sh'",
                                 "keep one of them");
      return;
    }
    if (run == kNoNode && sh == kNoNode) {
      if (!has_later_way()) {
        reading_.diagnostics.error(
            task_.mark, "task '" + task_.name + "' has no command",
            "add 'run:' for a program and its arguments, or 'sh:' for a script");
      }
      return;
    }
    task_.command_node = run != kNoNode ? run : sh;
    if (run != kNoNode) {
      read_run(run);
    } else {
      read_script(sh);
    }
  }

 private:
  // A way to run that is known but not supported: reported as such.
  [[nodiscard]] bool has_later_way() const {
    return tree_.find(task_.node, "kernel") != kNoNode || tree_.find(task_.node, "call") != kNoNode;
  }

  static AllowedNames everything() { return {true, true, true, true}; }

  void check_comment(NodeIndex node, const char* key) {
    if (const auto mark = tree_.comment_behind(node)) {
      reading_.diagnostics.error(
          *mark,
          std::string("YAML takes what begins here for a comment, it is not part of '") + key + "'",
          "put the whole command into quotes or under '" + std::string(key) +
              ": |', or the comment on a line of its own");
    }
  }

  void read_run(NodeIndex node) {
    if (tree_[node].kind == YamlNode::Kind::kList) {
      read_word_list(node);
    } else if (tree_[node].kind == YamlNode::Kind::kMap) {
      reading_.diagnostics.error(
          tree_[node].mark,
          "'run' of task '" + task_.name + "' must be a text or a list of texts, found a map",
          "a text with ': ' in it needs quotes");
    } else {
      read_command_line(node);
    }
  }

  void read_command_line(NodeIndex node) {
    check_comment(node, "run");
    task_.text.run_text = tree_[node].text;
    ParsedCommand parsed = split_command(tree_[node].text);
    report(reading_, node, parsed.errors);
    for (Template& word : parsed.words) {
      add_word(node, std::move(word));
    }
  }

  void read_word_list(NodeIndex node) {
    for (const NodeIndex child : tree_.children(node)) {
      const YamlNode& word = tree_[child];
      if (word.kind != YamlNode::Kind::kScalar || word.style == YamlNode::Style::kAbsent) {
        reading_.diagnostics.error(word.mark,
                                   "a word of 'run' of task '" + task_.name + "' must be a text",
                                   "write \"\" for an empty word");
        continue;
      }
      check_comment(child, "run");
      task_.text.run_text += (task_.text.run_text.empty() ? "" : " ") + word.text;
      ParsedTemplate parsed = parse_template(word.text);
      report(reading_, child, parsed.errors);
      add_word(child, std::move(parsed.parts));
    }
    if (tree_[node].count == 0) {
      reading_.diagnostics.error(tree_[node].mark, "'run' of task '" + task_.name + "' is empty",
                                 "write a program and its arguments");
    }
  }

  void add_word(NodeIndex node, Template parts) {
    classify(reading_, &task_, node, parts, everything());
    for (const TemplatePart& part : parts) {
      if (part.use == TemplatePart::Use::kInputPaths && parts.size() > 1) {
        reading_.diagnostics.error(
            tree_.place(node, part.offset),
            "'" + part.expression.front().names()[0].text() +
                "' becomes several words, so it must stand alone in its word",
            "for one word use the list file ${{ in.NAME }}");
      }
    }
    command_.words.push_back(std::move(parts));
    task_.word_nodes.push_back(node);
  }

  void read_script(NodeIndex node) {
    if (!is_script(node, "sh")) {
      return;
    }
    command_.is_script = true;
    command_.script = tree_[node].text;
    task_.text.run_text = command_.script;
    find_variables(node);
  }

  void read_setup(NodeIndex node) {
    if (node != kNoNode && is_script(node, "setup")) {
      task_.templates.start.setup = tree_[node].text;
      find_variables(node);
    }
  }

  bool is_script(NodeIndex node, const std::string& key) {
    const YamlNode& script = tree_[node];
    if (script.kind != YamlNode::Kind::kScalar ||
        script.text.find_first_not_of(" \n\t") == std::string::npos) {
      reading_.diagnostics.error(
          script.mark,
          "'" + key + "' of task '" + task_.name + "' must be a script, found " +
              (script.kind == YamlNode::Kind::kScalar ? "nothing" : "a list or a map"),
          "write '" + key + ": |' and the script indented below");
      return false;
    }
    check_comment(node, key.c_str());
    if (const size_t at = script.text.find("${{"); at != std::string::npos) {
      reading_.diagnostics.error(
          tree_.place(node, at),
          "'${{' in '" + key + "': a script is taken as it is, nothing is inserted",
          "use the variables $IN_x, $OUT_x, $PARAM_x and $ITEM_x");
    }
    return true;
  }

  // A name counts wherever it stands, also in a Python text within the script: it must be in the
  // key.
  void find_variables(NodeIndex node) {
    const std::string& text = tree_[node].text;
    for (size_t begin = 0; begin < text.size();) {
      if (!is_identifier_character(text[begin])) {
        ++begin;
        continue;
      }
      size_t end = begin;
      while (end < text.size() && is_identifier_character(text[end])) {
        ++end;
      }
      variable(node, begin, std::string_view(text).substr(begin, end - begin));
      begin = end;
    }
  }

  void variable(NodeIndex node, size_t begin, std::string_view name) {
    const size_t split = name.find('_');
    if (split == std::string_view::npos || split + 1 == name.size()) {
      return;
    }
    const std::string_view prefix = name.substr(0, split + 1);
    const std::string member(name.substr(split + 1));
    if (prefix == "PARAM_") {
      note(node, begin, name, command_.script_params, reading_.param_names, member);
    } else if (prefix == "ITEM_") {
      note(node, begin, name, command_.script_keys, task_.text.keys, member);
    } else if (prefix == "IN_") {
      check_input(node, begin, name, member);
    } else if (prefix == "OUT_") {
      check_member(node, begin, name, member, names_of(task_.outputs));
    }
  }

  void note(NodeIndex node, size_t begin, std::string_view name, std::vector<uint32_t>& used,
            const std::vector<std::string>& known, const std::string& member) {
    const auto found = std::find(known.begin(), known.end(), member);
    if (found == known.end()) {
      check_member(node, begin, name, member, known);
      return;
    }
    const auto index = static_cast<uint32_t>(found - known.begin());
    if (std::find(used.begin(), used.end(), index) == used.end()) {
      used.push_back(index);
      std::sort(used.begin(), used.end());
    }
  }

  void check_input(NodeIndex node, size_t begin, std::string_view name, const std::string& member) {
    constexpr std::string_view kItems = "_ITEMS";
    const bool items = member.size() > kItems.size() &&
                       member.compare(member.size() - kItems.size(), kItems.size(), kItems) == 0;
    if (items && has_name(task_.inputs, member.substr(0, member.size() - kItems.size()))) {
      return;
    }
    check_member(node, begin, name, member, names_of(task_.inputs));
  }

  // `$OUT_feild`: the script would stop there, for bash -u. Only what is read as a variable and not
  // set by the script itself.
  void check_member(NodeIndex node, size_t begin, std::string_view name, const std::string& member,
                    const std::vector<std::string>& known) {
    const std::string& text = tree_[node].text;
    const std::string_view before = std::string_view(text).substr(0, begin);
    const bool in_braces = before.ends_with("${");
    const size_t end = begin + name.size();
    const bool has_default = end < text.size() && in_braces &&
                             (text[end] == ':' || text[end] == '-' || text[end] == '+');
    if (!(in_braces || before.ends_with('$')) || has_default ||
        std::find(known.begin(), known.end(), member) != known.end() ||
        is_set_by_user(text, name) || is_set_by_user(task_.templates.start.setup, name)) {
      return;
    }
    const std::string prefix(name.substr(0, name.find('_') + 1));
    std::string hint = suggestion(member, known, "known here:", "$" + prefix);
    if (hint.empty()) {
      hint = "declare it, or write ${" + std::string(name) + ":-} if it may be unset";
    }
    reading_.diagnostics.error(tree_.place(node, begin),
                               "the script reads '$" + std::string(name) + "', which nothing sets",
                               hint);
  }

  [[nodiscard]] static bool is_set_by_user(const std::string& text, std::string_view name) {
    const std::string assigned = std::string(name) + "=";
    for (size_t at = text.find(assigned); at != std::string::npos;
         at = text.find(assigned, at + 1)) {
      if (at == 0 || !is_identifier_character(text[at - 1])) {
        return true;
      }
    }
    return text.find("read ") != std::string::npos ||
           text.find("for " + std::string(name)) != std::string::npos;
  }

  void read_env(NodeIndex env) {
    if (env == kNoNode ||
        !expect_map(reading_, env, "'env' of task '" + task_.name + "'", "env: {LEVEL: \"3\"}")) {
      return;
    }
    for (const NodeIndex child : tree_.children(env)) {
      const YamlNode& node = tree_[child];
      const std::string where = "env '" + node.key + "' of task '" + task_.name + "'";
      if (!check_variable_name(node, where)) {
        continue;
      }
      if (node.kind != YamlNode::Kind::kScalar || node.style == YamlNode::Style::kAbsent) {
        reading_.diagnostics.error(node.mark, where + " must be a text",
                                   "write \"\" for an empty text");
        continue;
      }
      ParsedTemplate parsed = parse_template(node.text);
      report(reading_, child, parsed.errors);
      AllowedNames allowed = everything();
      allowed.paths = false;
      classify(reading_, &task_, child, parsed.parts, allowed);
      command_.environment.emplace_back(node.key, std::move(parsed.parts));
      task_.environment_nodes.push_back(child);
    }
  }

  bool check_variable_name(const YamlNode& node, const std::string& where) {
    const std::string& name = node.key;
    if (!is_variable_name(name)) {
      reading_.diagnostics.error(node.key_mark, where + ": not the name of a variable",
                                 "letters, digits and _ are allowed, no digit first");
      return false;
    }
    for (const std::string_view prefix : {"IN_", "OUT_", "PARAM_", "ITEM_", "SLUICE_"}) {
      if (begins_with(name, prefix)) {
        reading_.diagnostics.error(
            node.key_mark,
            where + ": names that begin with " + std::string(prefix) + " are set by sluice",
            "choose another name");
        return false;
      }
    }
    if (name == "PIPELINE_DIR" || name == "TMPDIR") {
      reading_.diagnostics.error(node.key_mark, where + ": this variable is set by sluice",
                                 "choose another name");
      return false;
    }
    return true;
  }

  SpecReading& reading_;
  const YamlTree& tree_;
  SpecTask& task_;
  CommandTemplate& command_;
};

// in.x alone, where x is a list of values or the value is one.
bool is_list_input(const SpecReading& reading, const SpecTask& task, const TemplatePart& part) {
  const Expression& expression = part.expression.front();
  if (!expression.is_name() || expression.names().front().parts.size() != 2) {
    return false;
  }
  const std::string& name = expression.names().front().parts[1];
  for (size_t i = 0; i < task.inputs.size(); ++i) {
    const SpecInput& input = task.inputs[i];
    if (input.name != name || input.is_source || !input.resolved) {
      continue;
    }
    const SpecOutput& output = reading.tasks[input.producer].outputs[input.output];
    const bool is_joined = i < task.text.inputs.size();  // else its join is in error
    return (is_joined && task.text.inputs[i].is_list) || output.value_type == ValueType::kList;
  }
  return false;
}

}  // namespace

// Only the least size is known before the run; staging looks at the true one.
void check_path_words(SpecReading& reading, const SpecTask& task) {
  constexpr size_t kPathBytesMin = 30;  // "/sluice.0.1.1.89abcdef.0/o/12", final NUL included
  const auto& words = task.templates.command.words;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].size() != 1 || words[i][0].use != TemplatePart::Use::kInputPaths) {
      continue;
    }
    size_t count = 0;
    const JoinGroups& groups = task.groups[words[i][0].index];
    for (size_t group = 0; group < groups.size(); ++group) {
      count = std::max(count, groups.producers_of(group).size());
    }
    if (count * kPathBytesMin > kInputWordsBytesMax) {
      const std::string& name = task.inputs[words[i][0].index].name;
      reading.diagnostics.error(reading.tree.place(task.word_nodes[i], words[i][0].offset),
                                "task '" + task.name + "': 'in." + name + ".paths' would be " +
                                    std::to_string(count) +
                                    " words, more than fit on a command line",
                                "write ${{ in." + name + " }}, a file with one path per line");
    }
  }
}

// A list that is known only in a run, such as the gathered values of in.x: one word each, or none.
void check_list_words(SpecReading& reading, const SpecTask& task) {
  const auto check = [&](const Template& parts, NodeIndex node, bool in_word) {
    if (in_word && parts.size() == 1) {
      return;
    }
    for (const TemplatePart& part : parts) {
      if (part.use == TemplatePart::Use::kRunTime && is_list_input(reading, task, part)) {
        const Expression::Name& name = part.expression.front().names().front();
        reading.diagnostics.error(
            reading.tree.place(node, part.offset + name.offset),
            "task '" + task.name + "': '" + name.text() + "' is a list, not one text",
            in_word ? "put blanks around the expression: a list becomes words of its own"
                    : "only words of 'run' can be lists; $IN_x is a file with all of them");
      }
    }
  };
  const CommandTemplate& command = task.templates.command;
  for (size_t i = 0; i < command.words.size(); ++i) {
    check(command.words[i], task.word_nodes[i], true);
  }
  for (size_t i = 0; i < command.environment.size(); ++i) {
    check(command.environment[i].second, task.environment_nodes[i], false);
  }
}

bool is_variable_name(std::string_view text) {
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::all_of(text.begin(), text.end(), is_identifier_character);
}

void read_command(SpecReading& reading, SpecTask& task) { CommandReader(reading, task).run(); }

}  // namespace sluice::io
