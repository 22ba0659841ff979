#include "io/spec_syntax.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace sluice::io {

namespace {

using Lines = std::vector<std::string_view>;

bool is_blank(char c) { return c == ' ' || c == '\t'; }

Lines lines_of(std::string_view source) {
  Lines lines;
  for (size_t begin = 0; begin <= source.size();) {
    const size_t end = std::min(source.find('\n', begin), source.size());
    lines.push_back(source.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

// yaml-cpp's words for what goes wrong, and ours.
struct SyntaxWords {
  std::string_view theirs;  // how its message begins
  std::string_view text;
  std::string_view hint;
};
constexpr SyntaxWords kSyntaxWords[] = {
    {"illegal map value", "this ':' would begin a map where none can be",
     "put a text with ': ' in it into quotes"},
    {"unknown token", "a text cannot begin with this character", "put the text into quotes"},
    {"the referenced anchor", "'*' would begin an alias, which a spec does not have",
     "put a text that begins with '*' into quotes"},
    {"end of map not found", "this does not go on with the map above",
     "keys of one map stand in one column; nothing may follow a closing quote"},
    {"end of sequence not found", "this does not go on with the list above",
     "the dashes of one list stand in one column"},
    {"end of map flow not found", "expected ',' or '}' before this",
     "a map in braces is {key: value, key: value}"},
    {"end of sequence flow not found", "expected ',' or ']' before this",
     "a list in brackets is [one, two]"},
    {"illegal flow end", "this bracket closes none that is open", ""},
    {"illegal block entry", "a list with dashes cannot begin here",
     "begin it in a line of its own, or write [one, two]"},
    {"illegal map key", "a key cannot begin here", "put the text into quotes"},
    {"illegal EOF in scalar", "the quote that is open here is never closed", ""},
    {"unknown escape character", "there is no such escape in double quotes",
     "write \\\\ for a backslash, or use single quotes"},
    {"bad file", "lists and maps are nested too deep", ""},
};

// The end of the file, reached while something is open.
bool at_end(const Lines& lines, Mark mark) {
  return mark.line >= lines.size() && lines.back().empty();
}

// The line above `line` that has `key:value` without a blank, or 0.
size_t line_without_blank(const Lines& lines, size_t line) {
  while (line > 1) {
    const std::string_view text = lines[--line - 1];
    const size_t word = text.find_first_not_of(" \t");
    if (word == std::string_view::npos || text[word] == '#') {
      continue;
    }
    const size_t colon = text.find(':');
    const bool joined = colon != std::string_view::npos && colon + 1 < text.size() &&
                        !is_blank(text[colon + 1]) &&
                        text.substr(word, colon - word).find(' ') == std::string_view::npos;
    return joined ? line : 0;
  }
  return 0;
}

// What yaml-cpp's message means, in our words.
void report_message(const Lines& lines, Mark mark, const std::string& message,
                    Diagnostics& diagnostics) {
  if (at_end(lines, mark)) {
    diagnostics.error(mark, "not valid YAML: the file ends while a quote or a bracket is open",
                      "look for a '\"', ''', '[' or '{' that is not closed");
    return;
  }
  if (const size_t line = line_without_blank(lines, mark.line);
      line > 0 && message == "illegal map value") {
    const size_t colon = lines[line - 1].find(':');
    diagnostics.error({static_cast<uint32_t>(line), static_cast<uint32_t>(colon + 1)},
                      "not valid YAML: there is no blank behind this ':'", "write 'key: value'");
    return;
  }
  for (const SyntaxWords& words : kSyntaxWords) {
    if (message.compare(0, words.theirs.size(), words.theirs) == 0) {
      diagnostics.error(mark, "not valid YAML: " + std::string(words.text),
                        std::string(words.hint));
      return;
    }
  }
  diagnostics.error(mark, "not valid YAML: " + message);
}

// A `${{` that YAML took for the beginning of a map, or whose text ended at a quote within it.
bool report_expression(std::string_view line, Mark mark, Diagnostics& diagnostics) {
  constexpr std::string_view kOpen = "${{";
  const size_t at = mark.column - 1;
  const size_t open = line.rfind(kOpen, at);
  if (open == std::string_view::npos || line.substr(open, at - open).find("}}") < at) {
    return false;
  }
  const bool quoted = line.find('"', open) < at;
  diagnostics.error(mark,
                    quoted ? "not valid YAML: the quote in this expression ends the text"
                           : "not valid YAML: this '{' would begin a map",
                    quoted ? "use single quotes within double ones: \"${{ max(1, '2') }}\""
                           : "put a text with ${{ }} into double quotes: \"${{ name }}\"");
  return true;
}

// Tabs in the indentation of the line of the failure, or of the one above it.
bool report_tab(const Lines& lines, size_t last, Diagnostics& diagnostics) {
  for (size_t line = last; line > 0 && line + 2 > last; --line) {
    const std::string_view text = lines[line - 1];
    const size_t tab = text.substr(0, text.find_first_not_of(" \t")).find('\t');
    if (tab != std::string_view::npos) {
      diagnostics.error({static_cast<uint32_t>(line), static_cast<uint32_t>(tab + 1)},
                        "tab used for indentation, use spaces");
      return true;
    }
  }
  return false;
}

}  // namespace

void report_syntax(std::string_view source, Mark mark, const std::string& message,
                   Diagnostics& diagnostics) {
  const Lines lines = lines_of(source);
  const size_t last = std::min<size_t>(mark.line, lines.size());
  if (last == 0) {
    diagnostics.error(mark, "not valid YAML: " + message);
  } else if (!report_tab(lines, last, diagnostics) &&
             !report_expression(lines[last - 1], mark, diagnostics)) {
    report_message(lines, mark, message, diagnostics);
  }
}

}  // namespace sluice::io
