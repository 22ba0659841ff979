#include "io/command_list.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "io/pipeline_hidden.h"
#include "io/sources.h"
#include "io/spec_source.h"
#include "io/template.h"

namespace sluice::io {

namespace {

constexpr size_t kFindingsMax = 20;  // of a kind
constexpr std::string_view kBlanks = " \t";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// What bash does itself, or takes for syntax, when it stands first. Where a program of that name
// does the same (echo, true, false) it is not here.
constexpr std::array kShellWords = {
    ".",       ":",        "alias",   "bg",        "bind",     "break",    "builtin",  "caller",
    "case",    "cd",       "command", "compgen",   "compopt",  "complete", "continue", "coproc",
    "declare", "dirs",     "disown",  "do",        "done",     "elif",     "else",     "enable",
    "esac",    "eval",     "exec",    "exit",      "export",   "fc",       "fg",       "fi",
    "for",     "function", "getopts", "hash",      "help",     "history",  "if",       "in",
    "jobs",    "kill",     "let",     "local",     "logout",   "mapfile",  "popd",     "printf",
    "pushd",   "pwd",      "read",    "readarray", "readonly", "return",   "select",   "set",
    "shift",   "shopt",    "source",  "suspend",   "test",     "then",     "time",     "times",
    "trap",    "type",     "typeset", "ulimit",    "umask",    "unalias",  "unset",    "until",
    "wait",    "while"};

bool is_shell_word(std::string_view word) {
  return std::find(kShellWords.begin(), kShellWords.end(), word) != kShellWords.end();
}

std::string_view trimmed(std::string_view line) {
  const size_t begin = line.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  const size_t end = line.find_last_not_of(kBlanks) + 1;
  // A blank behind a backslash is part of the last word.
  const bool escaped = end < line.size() && line[end - 1] == '\\';
  return line.substr(begin, end - begin + (escaped ? 1 : 0));
}

// The words of a line without anything that only a shell knows; none: a shell must see it.
std::vector<std::string> plain_words(std::string_view line) {
  if (line.find_first_of("\\$`") != std::string_view::npos) return {};
  const ParsedCommand parsed = split_command(line);
  if (!parsed.errors.empty()) return {};
  std::vector<std::string> words;
  for (const Template& parts : parsed.words) {
    std::string word;
    for (const TemplatePart& part : parts) word += part.text;
    words.push_back(std::move(word));
  }
  const std::string& first = words.front();
  if (first.empty() || first.find('=') != std::string::npos || is_shell_word(first)) return {};
  return words;
}

class ListReader {
 public:
  ListReader(std::string_view text, Diagnostics& diagnostics)
      : text_(text), diagnostics_(diagnostics) {}

  // The items, in the order of their lines.
  std::vector<std::vector<std::string>> run() {
    if (text_.starts_with(kByteOrderMark)) text_.remove_prefix(kByteOrderMark.size());
    for (size_t begin = 0; begin < text_.size();) {
      const size_t end = std::min(text_.find('\n', begin), text_.size());
      ++line_;
      read_line(text_.substr(begin, end - begin));
      begin = end + 1;
    }
    tell_rest();
    return std::move(items_);
  }

 private:
  void read_line(std::string_view line) {
    if (!line.empty() && line.back() == '\r') {
      line.remove_suffix(1);
      if (carriage_returns_++ == 0) first_carriage_return_ = line_;
    }
    const std::string_view command = trimmed(line);
    if (command.empty() || command.front() == '#') return;
    if (!is_sound(line, command)) return;
    const uint32_t occurrence = ++occurrences_[command];
    std::string item(command);
    if (occurrence > 1) item.insert(0, "#" + std::to_string(occurrence) + " ");
    items_.push_back({std::move(item)});
  }

  bool is_sound(std::string_view line, std::string_view command) {
    if (const size_t at = line.find('\0'); at != std::string_view::npos) {
      error({line_, static_cast<uint32_t>(at + 1)}, "the line holds a NUL byte: this is no text",
            "give a list of commands, one on each line");
      return false;
    }
    if (command.back() == '\\') {
      error({line_, static_cast<uint32_t>(command.data() + command.size() - line.data())},
            "the line ends with '\\', but each line is a command of its own",
            "write the whole command on one line, or put it into a script");
      return false;
    }
    return true;
  }

  void error(Mark mark, std::string text, std::string hint) {
    if (++errors_ <= kFindingsMax) diagnostics_.error(mark, std::move(text), std::move(hint));
  }

  void tell_rest() {
    if (errors_ > kFindingsMax) {
      diagnostics_.error({line_, 1},
                         "so are " + std::to_string(errors_ - kFindingsMax) + " more lines");
    }
    if (carriage_returns_ > 0) {
      diagnostics_.warning({first_carriage_return_, 1},
                           std::to_string(carriage_returns_) +
                               (carriage_returns_ == 1 ? " line ends" : " lines end") +
                               " with a carriage return, as on Windows; it is dropped",
                           "dos2unix makes them plain");
    }
  }

  std::string_view text_;
  Diagnostics& diagnostics_;
  uint32_t line_ = 0;
  size_t errors_ = 0;
  size_t carriage_returns_ = 0;
  uint32_t first_carriage_return_ = 0;
  std::unordered_map<std::string_view, uint32_t> occurrences_;
  std::vector<std::vector<std::string>> items_;
};

scheduler::Hash128 key_of(std::string_view line) {
  return hash_text("sluice command 1\n" + std::string(line));
}

Pipeline build(std::vector<std::vector<std::string>> items, const CommandListOptions& options) {
  Pipeline pipeline;
  scheduler::GraphBuilder builder;
  scheduler::Request request;
  request.resources = {options.cpus, options.memory_bytes};
  scheduler::TaskSpec spec;
  spec.name = "command";
  spec.request = builder.request(request);
  spec.timeout = options.timeout;
  spec.retry.max.fill(static_cast<uint8_t>(options.retries));
  std::vector<scheduler::Hash128> keys;
  keys.reserve(items.size());
  for (const auto& item : items) keys.push_back(key_of(line_of_item(item[0])));
  const scheduler::TaskId id = builder.task(std::move(spec), keys);
  pipeline.graph = builder.build();
  TaskText text;
  text.keys = {"line"};
  text.items = std::move(items);
  text.run_text = "each line of the list";
  TaskTemplates templates;
  templates.command.is_line = true;
  templates.start.in_pipeline_folder = true;
  templates.item_index = ItemIndex(text);
  pipeline.hidden->task_ids.emplace("command", id);
  pipeline.tasks.push_back(std::move(text));
  pipeline.hidden->tasks.push_back(std::move(templates));
  return pipeline;
}

}  // namespace

std::optional<Pipeline> read_command_list(const CommandListOptions& options,
                                          Diagnostics& diagnostics) {
  std::error_code code;
  const std::filesystem::path file =
      std::filesystem::absolute(options.file, code).lexically_normal();
  diagnostics.set_source(options.file.string(), "");
  std::optional<std::string> source =
      read_spec_source(file, "a list of commands",
                       "give the path of a list: sluice run --commands list.txt", diagnostics);
  if (!source) return std::nullopt;
  std::vector<std::vector<std::string>> items = ListReader(*source, diagnostics).run();
  if (items.empty() && diagnostics.errors() == 0) {
    diagnostics.error({}, "the list holds no command",
                      "write one command on each line; lines that begin with # are skipped");
  }
  // A million lines are copied only when one of them is to be shown.
  if (!diagnostics.all().empty()) diagnostics.set_source(options.file.string(), *source);
  if (diagnostics.errors() > 0) return std::nullopt;
  Pipeline pipeline = build(std::move(items), options);
  pipeline.name = file.stem().string();
  pipeline.file = file;
  pipeline.folder = options.folder.empty() ? file.parent_path() : options.folder;
  pipeline.source = std::move(*source);
  pipeline.is_command_list = true;
  return pipeline;
}

std::vector<std::string> line_words(std::string_view line) {
  std::vector<std::string> words = plain_words(line);
  if (words.empty()) words = {"bash", "-euo", "pipefail", "-c", std::string(line)};
  return words;
}

std::string_view line_of_item(std::string_view item) {
  return item.starts_with('#') ? item.substr(item.find(' ') + 1) : item;
}

}  // namespace sluice::io
