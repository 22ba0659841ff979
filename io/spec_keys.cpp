// The static part of an instance's key: XXH3-128 over a canonical text of all that decides what the
// instance computes, but for the contents of other tasks' outputs, which the engine adds. Every
// text has its length before it, so that no two instances share one serialisation by accident.
//
// On the way every source file is looked at, and every missing one reported.
#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "io/spec_reader.h"

namespace sluice::io {

namespace {

using scheduler::Hash128;
using Use = TemplatePart::Use;

constexpr size_t kMissingNamedMax = 20;

class Serial {
 public:
  void text(std::string_view value) {
    number(value.size());
    bytes_ += value;
  }
  void number(uint64_t value) {
    for (unsigned shift = 0; shift < 64; shift += 8) {
      bytes_ += static_cast<char>((value >> shift) & 0xFFU);
    }
  }
  void tag(char c) { bytes_ += c; }
  void hash(Hash128 value) {
    number(value.high);
    number(value.low);
  }
  [[nodiscard]] Hash128 digest() const { return hash_text(bytes_); }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

  // What follows belongs to that part; a part may be gone on with later.
  void part(std::string name) { begins_.push_back({std::move(name), bytes_.size()}); }
  // Calls function(name, hash) for each stretch that is not empty.
  template <class F>
  void each_part(F&& function) const {
    for (size_t i = 0; i < begins_.size(); ++i) {
      const size_t begin = begins_[i].at;
      const size_t end = i + 1 < begins_.size() ? begins_[i + 1].at : bytes_.size();
      if (end > begin) {
        function(begins_[i].name, hash_text(std::string_view(bytes_).substr(begin, end - begin)));
      }
    }
  }

 private:
  struct Begin {
    std::string name;
    size_t at = 0;
  };
  std::string bytes_;
  std::vector<Begin> begins_;
};

// Gathers the parts of all items' keys into the task's table.
class PartTable {
 public:
  explicit PartTable(TaskText& task) : task_(task) {}

  void add(const Serial& serial) {
    row_.assign(task_.key_parts.size(), 0);
    serial.each_part([this](const std::string& name, Hash128 hash) {
      uint32_t& part = row_[index_of(name)];
      part = static_cast<uint32_t>(scheduler::mix64(part ^ hash.low)) & kKeyPartMask;
      part += part == 0 ? 1 : 0;
    });
    if (row_.size() > width_) {
      widen();
    }
    task_.key_part_hashes.insert(task_.key_part_hashes.end(), row_.begin(), row_.end());
    ++rows_;
  }

 private:
  size_t index_of(const std::string& name) {
    const auto& names = task_.key_parts;
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) {
      return static_cast<size_t>(found - names.begin());
    }
    task_.key_parts.push_back(name);
    row_.push_back(0);
    return row_.size() - 1;
  }

  // An item has a part that those before it had not.
  void widen() {
    std::vector<uint32_t> wider(rows_ * row_.size());
    for (size_t r = 0; r < rows_; ++r) {
      for (size_t i = 0; i < width_; ++i) {
        wider[r * row_.size() + i] = task_.key_part_hashes[r * width_ + i];
      }
    }
    task_.key_part_hashes = std::move(wider);
    width_ = row_.size();
  }

  TaskText& task_;
  std::vector<uint32_t> row_;
  size_t rows_ = 0;
  size_t width_ = 0;
};

class KeyMaker {
 public:
  KeyMaker(SpecReading& reading, SpecTask& task)
      : reading_(reading), task_(task), parts_(task.text) {}

  std::vector<Hash128> run() {
    common_ = common();
    for (const SpecInput& input : task_.inputs) forms_.push_back(form_of(input));
    environment_order_.resize(task_.templates.command.environment.size());
    std::iota(environment_order_.begin(), environment_order_.end(), size_t{0});
    std::sort(environment_order_.begin(), environment_order_.end(), [this](size_t a, size_t b) {
      const auto& all = task_.templates.command.environment;
      return all[a].first < all[b].first;
    });
    std::vector<Hash128> keys;
    keys.reserve(task_.text.items.size());
    for (uint32_t item = 0; item < task_.text.items.size(); ++item) {
      if (!failed_) {
        keys.push_back(key(item));
      } else {  // the other items' files are worth a look all the same
        Serial ignored;
        add_sources(ignored, Scope(reading_.params, task_.text, item), item);
      }
    }
    if (missing_count_ > kMissingNamedMax) {
      reading_.diagnostics.error(task_.mark, "task '" + task_.name + "': " +
                                                 std::to_string(missing_count_ - kMissingNamedMax) +
                                                 " more source files cannot be read");
    }
    return keys;
  }

 private:
  // What all items have in common.
  Serial common() {
    Serial serial;
    serial.part("command");
    serial.text("sluice key 1");
    serial.text(task_.templates.command.is_script ? "sh" : "run");
    serial.text(task_.templates.command.script);
    serial.number(task_.inputs.size());
    for (const SpecInput& input : task_.inputs) {
      serial.text(input.name);
    }
    serial.part("outputs");
    serial.number(task_.outputs.size());
    for (const SpecOutput& output : task_.outputs) {
      serial.text(output.name);
      serial.number(static_cast<uint64_t>(output.kind));
      serial.number(static_cast<uint64_t>(output.value_type));
      serial.text(output.file_name);
    }
    for (const auto& [name, id] : task_.uses) {
      serial.part("uses " + name);
      serial.number(1);
      serial.text(name);
      serial.hash(id);
    }
    serial.part("outputs");
    serial.number(0);  // no more
    add_start_rules(serial);
    return serial;
  }

  // Name and text of each, so that what is not there takes no space.
  void add_start_rules(Serial& serial) const {
    const StartRules& start = task_.templates.start;
    if (start.stdin_input != kNoIndex) {
      serial.text("stdin");
      serial.text(task_.inputs[start.stdin_input].name);
    }
    if (!start.setup.empty()) {
      serial.text("setup");
      serial.text(start.setup);
    }
    if (start.in_pipeline_folder) {
      serial.text("cwd");
      serial.text("pipeline");
    }
    for (const SpecInput& input : task_.inputs) {
      if (!input.placed_as.empty()) {
        serial.text("as " + input.name);
        serial.text(input.placed_as);
      }
    }
    if (start.stdout_output != kNoIndex) {
      serial.text("stdout");
      serial.text(task_.outputs[start.stdout_output].name);
    }
  }

  Hash128 key(uint32_t item) {
    const Scope typed(reading_.params, task_.text, item, true);
    const Scope actual(reading_.params, task_.text, item);
    const CommandTemplate& command = task_.templates.command;
    Serial serial = common_;
    serial.part("command");
    serial.number(command.words.size());
    for (size_t i = 0; i < command.words.size(); ++i) {
      serial.part("command");
      add_template(serial, command.words[i], typed, task_.word_nodes[i], true);
      serial.part("file in word " + std::to_string(i + 1));
      add_named_file(serial, command.words[i], actual, i, item);
    }
    serial.part("environment");
    serial.number(command.environment.size());
    for (const size_t i : environment_order_) {
      const auto& [name, value] = command.environment[i];
      serial.part("environment");
      serial.text(name);
      add_template(serial, value, typed, task_.environment_nodes[i], false);
      serial.part("file in variable " + name);
      add_named_file(serial, value, actual, std::nullopt, item);
    }
    for (const uint32_t index : command.script_params) {
      if (index >= reading_.params.size()) {
        break;  // a param was refused
      }
      serial.part("param " + reading_.params[index].name);
      serial.text(reading_.params[index].name);
      add_value(serial, reading_.params[index].typed);
    }
    serial.part("command");
    for (const uint32_t index : command.script_keys) {
      serial.text(task_.text.keys[index]);
      serial.text(task_.text.items[item][index]);
    }
    add_sources(serial, actual, item);
    add_input_forms(serial, item);
    add_views(serial, item);
    parts_.add(serial);
    return serial.digest();
  }

  // What a program sees of an input beside the contents that other tasks make: its kind, and of a
  // list which items it is made of, since $IN_x_ITEMS names them.
  struct InputForm {
    std::string part;                  // "" of a source
    std::string text;                  // what all groups have in common
    std::vector<Hash128> group_items;  // of lists: by group
    std::vector<uint32_t> group_of;    // of lists: by item
  };

  [[nodiscard]] InputForm form_of(const SpecInput& input) const {
    InputForm form;
    const auto index = static_cast<size_t>(&input - task_.inputs.data());
    const bool is_joined = input.resolved && index < task_.text.inputs.size() &&
                           index < task_.groups.size();  // else its join is in error
    if (input.is_source || !is_joined) return form;
    const SpecTask& producer = reading_.tasks[input.producer];
    const SpecOutput& output = producer.outputs[input.output];
    const bool is_list = task_.text.inputs[index].is_list;
    form.part = "form of input " + input.name;
    Serial common;
    common.number(static_cast<uint64_t>(output.kind));
    common.number(static_cast<uint64_t>(output.value_type));
    common.number(is_list ? 1 : 0);
    if (is_list) {
      for (const std::string& key : producer.text.keys) common.text(key);
      add_group_items(producer, task_.groups[index], form);
    }
    form.text = common.bytes();
    return form;
  }

  void add_group_items(const SpecTask& producer, const JoinGroups& groups, InputForm& form) const {
    form.group_of.resize(task_.text.items.size());
    for (size_t group = 0; group < groups.size(); ++group) {
      Hash128 items{1, 1};
      for (const uint32_t item : groups.producers_of(group)) {
        Serial values;
        for (const std::string& value : producer.text.items[item]) values.text(value);
        items = combine(items, values.digest());
      }
      form.group_items.push_back(items);
      for (const uint32_t item : groups.consumers_of(group))
        form.group_of[item] = static_cast<uint32_t>(group);
    }
  }

  void add_input_forms(Serial& serial, uint32_t item) const {
    for (const InputForm& form : forms_) {
      if (form.part.empty()) continue;
      serial.part(form.part);
      serial.text(form.text);
      if (!form.group_items.empty()) serial.hash(form.group_items[form.group_of[item]]);
    }
  }

  // Nothing of an input that is its files as they are.
  void add_views(Serial& serial, uint32_t item) const {
    for (size_t i = 0; i < task_.inputs.size(); ++i) {
      const H5View view = view_of(task_.templates.views[i], task_.text, item);
      if (view.whole()) {
        continue;
      }
      serial.part("form of input " + task_.inputs[i].name);
      serial.text("view");
      serial.text(view.dataset);
      serial.number(static_cast<uint64_t>(view.first_row));
      serial.number(static_cast<uint64_t>(view.end_row));
      serial.number(view.shard);
      serial.number(view.shards);
      serial.number(static_cast<uint64_t>(view.gather));
    }
  }

  static void add_value(Serial& serial, const Value& value) {
    if (value.kind != Value::Kind::kList) {
      serial.tag('t');
      serial.text(value.text);
      return;
    }
    serial.tag('l');
    serial.number(value.list.size());
    for (const std::string& text : value.list) {
      serial.text(text);
    }
  }

  // Symbolic where the text depends on the attempt or on other tasks. Values known now are in it as
  // text, so that neighbouring text and value are one.
  void add_template(Serial& serial, const Template& parts, const Scope& scope, NodeIndex node,
                    bool list_allowed) {
    std::string text;
    serial.tag('(');
    for (const TemplatePart& part : parts) {
      if (part.use == Use::kText) {
        text += part.text;
      } else if (part.use == Use::kValue) {
        const std::optional<Value> value = evaluate(part, scope, node);
        if (!value) {
          return;
        }
        if (value->kind == Value::Kind::kList) {
          if (!list_allowed || parts.size() > 1) {
            fail(
                node, part.offset,
                "a list of " + std::to_string(value->list.size()) + " must stand alone in its word",
                list_allowed ? "put blanks around the expression"
                             : "only words of 'run' can be lists");
            return;
          }
          add_value(serial, *value);
        } else {
          text += value->text;
        }
      } else {
        serial.tag('t');
        serial.text(text);
        text.clear();
        add_symbol(serial, part, scope);
      }
    }
    serial.tag('t');
    serial.text(text);
    serial.tag(')');
  }

  void add_symbol(Serial& serial, const TemplatePart& part, const Scope& scope) {
    switch (part.use) {
      case Use::kFolder:
        serial.tag('d');
        break;
      case Use::kInput:
        serial.tag('i');
        serial.text(task_.inputs[part.index].name);
        break;
      case Use::kInputPaths:
        serial.tag('p');
        serial.text(task_.inputs[part.index].name);
        break;
      case Use::kOutput:
        serial.tag('o');
        serial.text(task_.outputs[part.index].name);
        break;
      default:  // computed from values of inputs: the expression and what is known of its names
        serial.tag('e');
        serial.text(part.text);
        for (const Expression::Name& name : part.expression.front().names()) {
          if (const Value* value = scope.find(name)) {
            add_value(serial, *value);
          }
        }
    }
  }

  std::optional<Value> evaluate(const TemplatePart& part, const Scope& scope, NodeIndex node) {
    if (!has_values(scope, part)) {
      failed_ = true;
      return std::nullopt;
    }
    auto result = scope.evaluate(part);
    if (auto* error = std::get_if<ExpressionError>(&result)) {
      fail(node, part.offset + error->offset, error->text, error->hint);
      return std::nullopt;
    }
    return std::move(std::get<Value>(result));
  }

  // The first item that fails speaks for the others.
  void fail(NodeIndex node, size_t offset, const std::string& text, const std::string& hint) {
    reading_.diagnostics.error(reading_.tree.place(node, offset),
                               "task '" + task_.name + "': " + text, hint);
    failed_ = true;
  }

  // The content of a file that a text names, when it means a file of the pipeline folder. `word`:
  // which word of the command it is, if any.
  void add_named_file(Serial& serial, const Template& parts, const Scope& scope,
                      std::optional<size_t> word, uint32_t item) {
    size_t folder_at = std::string::npos;
    const std::optional<std::string> text = known_text(parts, scope, folder_at);
    if (!text) {
      return;
    }
    if (word == 0U && is_folder_program(*text)) {
      check_program(*text);
      add_file(serial, in_folder(reading_.folder, *text));
    } else if (folder_at != std::string::npos) {
      add_file(serial, std::filesystem::path(text->substr(folder_at)).lexically_normal());
    } else if (text->rfind(reading_.folder.string() + "/", 0) == 0) {
      add_file(serial, std::filesystem::path(*text).lexically_normal());
    } else if (word && !text->empty() && text->front() != '/') {
      add_relative(serial, *text, *word, item);
    }
  }

  // The text of a template, when all of it is known now; and where the pipeline folder stands in
  // it.
  std::optional<std::string> known_text(const Template& parts, const Scope& scope,
                                        size_t& folder_at) const {
    std::string text;
    for (const TemplatePart& part : parts) {
      if (part.use == Use::kFolder) {
        folder_at = text.size();
        text += reading_.folder.string();
      } else if (part.use == Use::kText) {
        text += part.text;
      } else if (part.use == Use::kValue) {
        const auto result = scope.evaluate(part);
        const auto* value = std::get_if<Value>(&result);
        if (value == nullptr || value->kind == Value::Kind::kList) {
          return std::nullopt;
        }
        text += value->text;
      } else {
        return std::nullopt;  // a path of the attempt
      }
    }
    return text;
  }

  // Asks the file system once for each name, not once for each item.
  void add_file(Serial& serial, const std::filesystem::path& path) {
    const auto [known, fresh] = is_file_.emplace(path.string(), false);
    if (fresh) {
      std::error_code ignored;
      known->second = std::filesystem::is_regular_file(path, ignored);
    }
    if (!known->second) {
      return;
    }
    if (const Expected<Hash128>& id = content_id(path)) {
      serial.tag('f');
      serial.hash(*id);
    }
  }

  void check_program(const std::string& text) {
    const std::filesystem::path path = in_folder(reading_.folder, text);
    if (!checked_programs_.emplace(path.string(), true).second) {
      return;
    }
    const Mark mark = reading_.tree[task_.command_node].mark;
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(path, ignored)) {
      reading_.diagnostics.error(
          mark,
          "task '" + task_.name + "': the program '" + text + "' is no file of the pipeline folder",
          "a program with '/' is looked up in the pipeline folder, one without in PATH");
    } else if (::access(path.c_str(), X_OK) != 0) {
      reading_.diagnostics.error(
          mark, "task '" + task_.name + "': the program '" + text + "' is not executable",
          "chmod +x " + text);
    }
  }

  // A word that names a file of the pipeline folder, for a program that starts there.
  void add_relative(Serial& serial, const std::string& text, size_t word, uint32_t item) {
    if (task_.templates.start.in_pipeline_folder && word > 0) {
      add_file(serial, in_folder(reading_.folder, text));
    } else if (item == 0) {
      warn_of_relative(text, word);
    }
  }

  // Programs start in an empty directory, where this word names nothing.
  void warn_of_relative(const std::string& text, size_t word) {
    const Template& parts = task_.templates.command.words[word];
    const bool plain = std::all_of(parts.begin(), parts.end(),
                                   [](const TemplatePart& part) { return part.use == Use::kText; });
    std::error_code ignored;
    if (!plain || !std::filesystem::is_regular_file(in_folder(reading_.folder, text), ignored)) {
      return;
    }
    // In a list of words the word begins where its node does.
    const bool in_list = task_.word_nodes[word] != task_.command_node;
    const Mark mark = reading_.tree.place(task_.word_nodes[word], in_list ? 0 : parts[0].offset);
    const std::string is_file =
        "task '" + task_.name + "': '" + text + "' is a file of the pipeline folder, but ";
    if (word == 0) {
      reading_.diagnostics.warning(mark, is_file + "a program without '/' is looked up in PATH",
                                   "write ./" + text);
    } else {
      reading_.diagnostics.warning(
          mark, is_file + "programs start in a directory of their own",
          "write ${{ dir }}/" + text + ", or make it an input: {file: " + text + "}");
    }
  }

  void add_sources(Serial& serial, const Scope& scope, uint32_t item) {
    for (size_t i = 0; i < task_.inputs.size(); ++i) {
      const SpecInput& input = task_.inputs[i];
      if (!input.is_source) {
        continue;
      }
      const std::optional<std::string> text = source_text(input, scope);
      if (!text) {
        return;
      }
      const std::filesystem::path path = in_folder(reading_.folder, *text);
      if (task_.text.inputs[i].source_path.empty()) {
        task_.text.inputs[i].source_path = path.string();
      }
      const bool known = content_ids_.count(path.string()) != 0;
      const Expected<Hash128>& id = content_id(path);
      if (id) {
        serial.part("input " + input.name);
        serial.text(input.name);
        serial.hash(*id);
      } else if (!known && ++missing_count_ <= kMissingNamedMax) {
        reading_.diagnostics.error(
            reading_.tree[input.node].mark,
            "task '" + label(input, item) + "', input '" + input.name + "': " + id.error().message,
            "paths are relative to the folder of the spec, " + reading_.folder.string());
      }
    }
  }

  // The instance, where which file it reads depends on the item.
  [[nodiscard]] std::string label(const SpecInput& input, uint32_t item) const {
    const bool depends =
        std::any_of(input.path.begin(), input.path.end(),
                    [](const TemplatePart& part) { return part.use != Use::kText; });
    const std::string text = depends ? item_text(task_.text, item) : "";
    return text.empty() ? task_.name : task_.name + "[" + text + "]";
  }

  std::optional<std::string> source_text(const SpecInput& input, const Scope& scope) {
    std::string text;
    for (const TemplatePart& part : input.path) {
      if (part.use == Use::kText) {
        text += part.text;
        continue;
      }
      const std::optional<Value> value = evaluate(part, scope, input.node);
      if (!value) {
        return std::nullopt;
      }
      if (value->kind == Value::Kind::kList) {
        fail(input.node, part.offset, "a list cannot be a path", "an input is one file");
        return std::nullopt;
      }
      text += value->text;
    }
    return text;
  }

  const Expected<Hash128>& content_id(const std::filesystem::path& path) {
    const auto known = content_ids_.find(path.string());
    if (known != content_ids_.end()) {
      return known->second;
    }
    return content_ids_.emplace(path.string(), reading_.sources.content_id(path)).first->second;
  }

  SpecReading& reading_;
  SpecTask& task_;
  std::vector<InputForm> forms_;           // by input
  std::vector<size_t> environment_order_;  // by name: their order in the spec is no matter
  Serial common_;
  PartTable parts_;
  bool failed_ = false;
  size_t missing_count_ = 0;
  std::unordered_map<std::string, Expected<Hash128>> content_ids_;
  std::unordered_map<std::string, bool> is_file_;
  std::map<std::string, bool> checked_programs_;
};

}  // namespace

void read_uses(SpecReading& reading, SpecTask& task) {
  const NodeIndex uses = reading.tree.find(task.node, "uses");
  if (uses == kNoNode) {
    return;
  }
  if (reading.tree[uses].kind != YamlNode::Kind::kList) {
    reading.diagnostics.error(reading.tree[uses].mark,
                              "'uses' of task '" + task.name + "' must be a list of files",
                              "write uses: [model.py]");
    return;
  }
  for (const NodeIndex child : reading.tree.children(uses)) {
    const auto text = read_text(reading, child, "a file in 'uses' of task '" + task.name + "'");
    if (!text) {
      continue;
    }
    const auto id = reading.sources.content_id(in_folder(reading.folder, *text));
    if (id) {
      task.uses.emplace_back(*text, *id);
    } else {
      reading.diagnostics.error(
          reading.tree[child].mark, "task '" + task.name + "', uses: " + id.error().message,
          "paths are relative to the folder of the spec, " + reading.folder.string());
    }
  }
}

std::vector<Hash128> static_keys(SpecReading& reading, SpecTask& task) {
  return KeyMaker(reading, task).run();
}

}  // namespace sluice::io
