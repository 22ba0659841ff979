// Help for people: examples first.
#include <algorithm>

#include "engine/cli_words.h"

namespace sluice::engine {

namespace {

constexpr size_t kColumnsMax = 100;
constexpr size_t kLeftMax = 28;  // what is longer has its meaning on the next line

std::string option_label(const CliOption& option) {
  std::string text;
  for (const std::string& name : option.names) text += (text.empty() ? "" : ", ") + name;
  if (!option.argument && !option.value.empty()) text += " " + option.value;
  return text;
}

std::string option_meaning(const CliOption& option) {
  std::string text = option.about;
  for (size_t i = 0; i < option.choices.size(); ++i)
    text += (i == 0 ? ": " : ", ") + option.choices[i];
  if (!option.default_text.empty()) text += " (default: " + option.default_text + ")";
  return text;
}

// `left` and behind it `right`, wrapped at blanks.
std::string row(const std::string& left, const std::string& right, size_t width) {
  const std::string indent(width + 4, ' ');
  std::string out = "  " + left;
  out += left.size() > width ? "\n" + indent : std::string(width + 2 - left.size(), ' ');
  size_t column = indent.size();
  for (size_t begin = 0; begin < right.size();) {
    const size_t end = std::min(right.find(' ', begin), right.size());
    if (column + end - begin > kColumnsMax && column > indent.size()) {
      out += "\n" + indent;
      column = indent.size();
    } else if (column > indent.size()) {
      out += ' ';
      ++column;
    }
    out.append(right, begin, end - begin);
    column += end - begin;
    begin = end + 1;
  }
  return out + "\n";
}

std::string rows(const std::vector<std::pair<std::string, std::string>>& all, size_t left_max) {
  size_t width = 0;
  for (const auto& [left, right] : all) {
    if (left.size() <= left_max) width = std::max(width, left.size());
  }
  std::string out;
  for (const auto& [left, right] : all) out += row(left, right, width);
  return out;
}

std::string example_rows(const std::vector<CliExample>& examples) {
  std::vector<std::pair<std::string, std::string>> all;
  all.reserve(examples.size());
  for (const CliExample& one : examples) all.emplace_back(one.command, one.meaning);
  return rows(all, kColumnsMax);
}

std::string option_rows(const std::vector<CliOption>& options, bool arguments) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const CliOption& option : options) {
    if (option.argument == arguments)
      all.emplace_back(option_label(option), option_meaning(option));
  }
  return rows(all, kLeftMax);
}

}  // namespace

bool CliOption::is_path() const { return value == "FILE" || value == "DIR"; }

std::string help_text(const CliWords& words) {
  std::string out = "sluice " + words.about + "\n\nExamples:\n" + example_rows(words.examples);
  out += "\nUsage: sluice VERB [options]; 'sluice help VERB' tells more\n";
  std::string group;
  std::vector<std::pair<std::string, std::string>> all;
  for (const CliVerb& verb : words.verbs) all.emplace_back(verb.name, verb.about);
  size_t width = 0;
  for (const auto& [name, about] : all) width = std::max(width, name.size());
  for (const CliVerb& verb : words.verbs) {
    if (verb.group != group) out += "\n" + verb.group + ":\n";
    group = verb.group;
    out += row(verb.name, verb.about, width);
  }
  return out + "\nOptions:\n" + option_rows(words.options, false);
}

std::string verb_help_text(const CliVerb& verb) {
  std::string out =
      "sluice " + verb.name + ": " + verb.about + "\n\nExamples:\n" + example_rows(verb.examples);
  out += "\nUsage: sluice " + verb.name + " [options]";
  bool arguments = false;
  for (const CliOption& option : verb.options) {
    if (!option.argument) continue;
    arguments = true;
    out += option.required ? " " + option.names[0] : " [" + option.names[0] + "]";
  }
  out += "\n";
  if (arguments) out += "\n" + option_rows(verb.options, true);
  return out + "\nOptions:\n" + option_rows(verb.options, false);
}

}  // namespace sluice::engine
