// The full attempt of an instance, and its command for people.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "io/command_list.h"
#include "io/pipeline.h"
#include "io/pipeline_hidden.h"

namespace sluice::io {

namespace {

using scheduler::InstanceId;
using scheduler::ObjectId;
using scheduler::OutputKind;
using Use = TemplatePart::Use;

constexpr size_t kLineWordBytesMax = 100'000;

// Where the item of a JSON array that begins at `begin` ends: at its comma or the closing bracket.
size_t item_end(const std::string& array, size_t begin) {
  int depth = 0;
  for (size_t at = begin; at < array.size(); ++at) {
    const char c = array[at];
    if (c == '"') {
      for (++at; at < array.size() && array[at] != '"'; ++at) at += array[at] == '\\' ? 1 : 0;
    } else if (c == '[' || c == '{') {
      ++depth;
    } else if (depth == 0 && (c == ',' || c == ']')) {
      return at;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return array.size();
}

// The items of a JSON array: texts without their quotes, all else as it was written.
Value list_from_json(const std::string& text, bool& ok) {
  constexpr const char* kBlanks = " \t\n\r";
  ok = nlohmann::json::parse(text, nullptr, false).is_array();
  std::vector<std::string> items;
  size_t begin = ok ? text.find('[') + 1 : text.size();
  for (size_t end = 0; begin < text.size() && text[end] != ']'; begin = end + 1) {
    end = item_end(text, begin);
    const size_t first = text.find_first_not_of(kBlanks, begin);
    if (first == end) break;  // an empty array
    std::string item = text.substr(first, text.find_last_not_of(kBlanks, end - 1) + 1 - first);
    if (item.front() == '"') item = nlohmann::json::parse(item).get<std::string>();
    items.push_back(std::move(item));
  }
  return Value::of_list(std::move(items));
}

// The value that a producer wrote, for expressions.
Expected<Value> produced_value(ValueType type, const std::string& text, const std::string& input) {
  bool ok = true;
  std::optional<Value> value;
  if (type == ValueType::kList) {
    value = list_from_json(text, ok);
  } else {
    value = Value::of_type(type, text);
    // "nan" and "1e-400" are floats, but no numbers to compute with.
    if (!value && type == ValueType::kFloat) value = Value::of_type(ValueType::kString, text);
  }
  if (!ok || !value) {
    return Error{"value '" + text + "' of input '" + input + "' is not of its declared type"};
  }
  return *value;
}

// Appends to the last piece where both are text.
void append_text(Word& word, std::string_view text) {
  if (word.empty() || word.back().kind != Piece::Kind::kText) {
    word.push_back({Piece::Kind::kText, 0, ""});
  }
  word.back().text += text;
}

Error expression_failed(const TemplatePart& part, const std::string& text,
                        const std::string& hint) {
  return Error{"in '${{" + part.text + "}}': " + text + (hint.empty() ? "" : "; " + hint)};
}

class AttemptRenderer {
 public:
  AttemptRenderer(const Pipeline& pipeline, InstanceId instance, const Pipeline::ValueText& values)
      : pipeline_(pipeline),
        instance_(instance),
        task_(pipeline.graph.task_of(instance)),
        text_(pipeline.tasks[task_.index()]),
        templates_(pipeline.hidden->tasks[task_.index()]),
        item_(pipeline.graph.item_of(instance)),
        values_(values),
        scope_(pipeline.hidden->params, text_, item_) {}

  Expected<AttemptSpec> run() {
    spec_.label = pipeline_.label(instance_);
    spec_.pipeline_folder = pipeline_.folder.string();
    const auto& request = pipeline_.graph.requests()[pipeline_.graph.task(task_).request];
    spec_.cpus = request.resources.cpus;
    add_start_rules();
    add_outputs();
    for (const auto step : {&AttemptRenderer::add_inputs, &AttemptRenderer::add_environment,
                            &AttemptRenderer::add_command}) {
      if (const Status status = (this->*step)(); !status) {
        return status.error();
      }
    }
    return std::move(spec_);
  }

 private:
  void add_start_rules() {
    const StartRules& start = templates_.start;
    spec_.stdin_input = start.stdin_input;
    spec_.stdout_output = start.stdout_output;
    spec_.setup = start.setup;
    spec_.in_pipeline_folder = start.in_pipeline_folder;
    spec_.keep_environment = start.keep_environment;
  }

  void add_outputs() {
    const auto& outputs = pipeline_.graph.task(task_).outputs;
    for (size_t i = 0; i < outputs.size(); ++i) {
      AttemptOutput output;
      output.name = outputs[i].name;
      output.kind = outputs[i].kind;
      output.value_type = text_.outputs[i].value_type;
      output.file_name = text_.outputs[i].file_name;
      output.object = pipeline_.graph.object(instance_, i);
      output.result = outputs[i].result;
      spec_.outputs.push_back(std::move(output));
    }
  }

  Status add_inputs() {
    for (size_t i = 0; i < text_.inputs.size(); ++i) {
      const TaskInput& declared = text_.inputs[i];
      InputSpec input;
      input.name = declared.name;
      input.is_list = declared.is_list;
      input.placed_as = templates_.start.placed_as[i];
      input.view = view_of(templates_.views[i], text_, item_);
      const Status status =
          declared.join == JoinKind::kSource ? add_source(i, input) : add_objects(i, input);
      if (!status) {
        return status;
      }
      spec_.inputs.push_back(std::move(input));
    }
    return Done{};
  }

  Status add_source(size_t index, InputSpec& input) {
    const Expected<Word> word = render_word(templates_.source_paths[index]);
    if (!word) {
      return word.error();
    }
    const std::string text = word->empty() ? "" : word->front().text;
    if (!input.view.whole()) input.kind = OutputKind::kH5;
    InputFile file;
    const std::filesystem::path path = in_folder(pipeline_.folder, text);
    file.source_path = path.string();
    file.file_name = link_name(path.filename().string());
    input.files.push_back(std::move(file));
    return Done{};
  }

  // A name with control characters is linked under an encoded one.
  static std::string link_name(const std::string& name) {
    for (const char c : name) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
        return percent_encoded(name, " ");
      }
    }
    return name;
  }

  Status add_objects(size_t index, InputSpec& input) {
    const TaskInput& declared = text_.inputs[index];
    const TaskText& producer = pipeline_.tasks[declared.producer.index()];
    const auto group = pipeline_.graph.inputs(instance_)[templates_.group_order[index]];
    const scheduler::OutputSpec& output =
        pipeline_.graph.task(declared.producer).outputs[declared.output];
    input.kind = output.kind;
    if (input.is_list) input.keys = producer.keys;
    input.value_type = producer.outputs[declared.output].value_type;
    for (const ObjectId object : pipeline_.graph.group_objects(group)) {
      InputFile file;
      file.object = object;
      file.item = pipeline_.item(pipeline_.graph.producer(object));
      const std::string& name = producer.outputs[declared.output].file_name;
      file.file_name = input.is_list && !file.item.empty() ? list_name(object) : name;
      if (output.kind == OutputKind::kValue) {
        file.value = values_(object);
      }
      input.files.push_back(std::move(file));
    }
    return output.kind == OutputKind::kValue ? set_value(input) : Status(Done{});
  }

  // Unique among the files of a list: "grid=64,alpha=0.1.field.h5", as in results.
  [[nodiscard]] std::string list_name(ObjectId object) const {
    return std::filesystem::path(pipeline_.result_path(object)).filename().string();
  }

  Status set_value(const InputSpec& input) {
    if (!input.is_list) {
      Expected<Value> value =
          produced_value(input.value_type, input.files.front().value, input.name);
      if (!value) {
        return value.error();
      }
      scope_.set_input(input.name, std::move(*value));
      return Done{};
    }
    std::vector<std::string> texts;
    for (const InputFile& file : input.files) {
      texts.push_back(file.value);
    }
    scope_.set_input(input.name, Value::of_list(std::move(texts)));
    return Done{};
  }

  Status add_environment() {
    const CommandTemplate& command = templates_.command;
    for (const auto& [name, value] : command.environment) {
      const Expected<Word> word = render_word(value);
      if (!word) {
        return Error{"env '" + name + "': " + word.error().message};
      }
      spec_.environment.emplace_back(name, word->empty() ? "" : word->front().text);
    }
    for (const uint32_t index : command.script_params) {
      const Param& param = pipeline_.hidden->params[index];
      spec_.environment.emplace_back("PARAM_" + param.name, variable_text(param.value));
    }
    for (const uint32_t key : command.script_keys) {
      spec_.environment.emplace_back("ITEM_" + text_.keys[key], text_.items[item_][key]);
    }
    return Done{};
  }

  // A list in a variable: one item per line.
  static std::string variable_text(const Value& value) {
    if (value.kind != Value::Kind::kList) {
      return value.text;
    }
    std::string text;
    for (const std::string& item : value.list) {
      text += (text.empty() ? "" : "\n") + item;
    }
    return text;
  }

  Status add_command() {
    const CommandTemplate& command = templates_.command;
    if (command.is_line) {
      add_line();
      return Done{};
    }
    spec_.script = command.script;
    for (const Template& parts : command.words) {
      if (parts.size() == 1 && (parts[0].use == Use::kValue || parts[0].use == Use::kRunTime)) {
        if (const Status status = add_value_words(parts[0]); !status) {
          return status;
        }
        continue;
      }
      Expected<Word> word = render_word(parts);
      if (!word) {
        return word.error();
      }
      spec_.words.push_back(std::move(*word));
    }
    find_program();
    return Done{};
  }

  // A line longer than a word may be is a script of one line.
  void add_line() {
    const std::string_view line = line_of_item(text_.items[item_].front());
    std::vector<std::string> words = line_words(line);
    if (std::any_of(words.begin(), words.end(),
                    [](const std::string& word) { return word.size() > kLineWordBytesMax; })) {
      spec_.script = line;
      return;
    }
    if (is_folder_program(words.front())) {
      words.front() = in_folder(pipeline_.folder, words.front()).string();
    }
    for (std::string& word : words) {
      spec_.words.push_back({{Piece::Kind::kText, 0, std::move(word)}});
    }
  }

  // A value alone in its word: a list becomes as many words.
  Status add_value_words(const TemplatePart& part) {
    const auto result = scope_.evaluate(part);
    if (const auto* error = std::get_if<ExpressionError>(&result)) {
      return expression_failed(part, error->text, error->hint);
    }
    const auto& value = std::get<Value>(result);
    if (value.kind != Value::Kind::kList) {
      spec_.words.push_back({{Piece::Kind::kText, 0, value.text}});
    }
    for (const std::string& item : value.list) {
      spec_.words.push_back({{Piece::Kind::kText, 0, item}});
    }
    return Done{};
  }

  Expected<Word> render_word(const Template& parts) {
    Word word;
    if (parts.empty()) {
      append_text(word, "");  // '' is a word too
    }
    for (const TemplatePart& part : parts) {
      switch (part.use) {
        case Use::kText:
          append_text(word, part.text);
          break;
        case Use::kFolder:
          append_text(word, pipeline_.folder.string());
          break;
        case Use::kInput:
          word.push_back({Piece::Kind::kInput, part.index, ""});
          break;
        case Use::kInputPaths:
          word.push_back({Piece::Kind::kInputPaths, part.index, ""});
          break;
        case Use::kOutput:
          word.push_back({Piece::Kind::kOutput, part.index, ""});
          break;
        default: {
          const auto result = scope_.evaluate(part);
          if (const auto* error = std::get_if<ExpressionError>(&result)) {
            return expression_failed(part, error->text, error->hint);
          }
          if (std::get<Value>(result).kind == Value::Kind::kList) {
            return expression_failed(part, "a list must stand alone in its word", "");
          }
          append_text(word, std::get<Value>(result).text);
        }
      }
    }
    return word;
  }

  void find_program() {
    if (spec_.words.empty() || spec_.words[0].empty()) {
      return;
    }
    Piece& first = spec_.words[0][0];
    if (first.kind == Piece::Kind::kText && is_folder_program(first.text)) {
      first.text = in_folder(pipeline_.folder, first.text).string();
    }
  }

  const Pipeline& pipeline_;
  InstanceId instance_;
  scheduler::TaskId task_;
  const TaskText& text_;
  const TaskTemplates& templates_;
  uint32_t item_;
  const Pipeline::ValueText& values_;
  Scope scope_;
  AttemptSpec spec_;
};

// As one would type it in a shell; what is not known yet stands there as in the spec. `text` is the
// part that is known.
std::string word_for_people(const std::string& word, const std::string& text) {
  const bool plain =
      !word.empty() && text.find_first_of(" \t\n'\"\\|><;&`*?[]{}()!#$~") == std::string::npos;
  if (plain) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace

Scope::Scope(const std::vector<Param>& params, const TaskText& task, uint32_t item, bool as_typed)
    : params_(params), task_(task), as_typed_(as_typed) {
  items_.reserve(task.keys.size());
  for (const std::string& text : task.items[item]) {
    items_.push_back(Value::of_text(text));
  }
}

const Value* Scope::find(const Expression::Name& name) const {
  if (name.parts.size() != 2) {
    return nullptr;
  }
  const std::string& member = name.parts[1];
  if (name.parts[0] == "params") {
    const auto found = std::find_if(params_.begin(), params_.end(),
                                    [&](const Param& param) { return param.name == member; });
    return found == params_.end() ? nullptr : as_typed_ ? &found->typed : &found->value;
  }
  if (name.parts[0] == "item") {
    const auto found = std::find(task_.keys.begin(), task_.keys.end(), member);
    return found == task_.keys.end() ? nullptr
                                     : &items_[static_cast<size_t>(found - task_.keys.begin())];
  }
  const auto found = inputs_.find(member);
  return found == inputs_.end() ? nullptr : &found->second;
}

std::variant<Value, ExpressionError> Scope::evaluate(const TemplatePart& part) const {
  return part.expression.front().evaluate(
      [this](const Expression::Name& name) { return find(name); });
}

Expected<AttemptSpec> Pipeline::render(InstanceId instance, const ValueText& values) const {
  return AttemptRenderer(*this, instance, values).run();
}

std::string Pipeline::command_text(InstanceId instance) const {
  const scheduler::TaskId id = graph.task_of(instance);
  const CommandTemplate& command = hidden->tasks[id.index()].command;
  if (command.is_script) {
    return command.script;
  }
  if (command.is_line) {
    return std::string(line_of_item(tasks[id.index()].items[graph.item_of(instance)].front()));
  }
  const Scope scope(hidden->params, tasks[id.index()], graph.item_of(instance));
  std::string out;
  for (const Template& parts : command.words) {
    bool is_list = false;
    std::string word;
    std::string known;
    const auto add_known = [&](const std::string& text) {
      word += text;
      known += text;
    };
    for (const TemplatePart& part : parts) {
      if (part.use == Use::kText) {
        add_known(part.text);
        continue;
      }
      if (part.use == Use::kFolder) {
        add_known(folder.string());
        continue;
      }
      const auto result = part.use == Use::kValue ? scope.evaluate(part) : ExpressionError();
      if (const auto* value = std::get_if<Value>(&result)) {
        if (value->kind == Value::Kind::kList) {  // as many words, and alone
          for (const std::string& item : value->list) {
            out += (out.empty() ? "" : " ") + word_for_people(item, item);
          }
          is_list = true;
        }
        add_known(value->text);
      } else {
        const size_t begin = part.text.find_first_not_of(' ');
        const size_t end = part.text.find_last_not_of(' ') + 1;
        word += "${{ " + part.text.substr(begin, end - begin) + " }}";
      }
    }
    if (is_list) {
      continue;
    }
    out += (out.empty() ? "" : " ") + word_for_people(word, known);
  }
  return out;
}

}  // namespace sluice::io
