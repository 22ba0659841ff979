// The verbs and options of the command line as plain data, taken from the very declarations that
// parse it: help, completion and the manual are made from this and so cannot go stale. Pure. Test:
// tests/engine/cli_words_test.cpp, tests/e2e/command_line.sh
#pragma once

#include <string>
#include <vector>

namespace sluice::engine {

struct CliExample {
  std::string command;
  std::string meaning;
};

struct CliOption {
  std::vector<std::string> names;  // "-v", "--verbose"; of an argument its name alone: "PIPELINE"
  std::string value;               // what stands behind the name: "FILE", "N"; "" of a flag
  std::string about;
  std::string default_text;          // "" of flags and of what must be given
  std::vector<std::string> choices;  // the only values there are
  bool argument = false;             // no option: known by its place
  bool required = false;

  [[nodiscard]] bool is_path() const;  // files complete it
};

struct CliVerb {
  std::string name;
  std::string group;
  std::string about;
  std::vector<CliExample> examples;
  std::vector<CliOption> options;  // as declared, arguments too
};

struct CliWords {
  std::string about;
  std::vector<CliExample> examples;
  std::vector<CliOption> options;  // of sluice itself
  std::vector<CliVerb> verbs;      // those of a group are neighbours
};

[[nodiscard]] CliWords cli_words();

// What --help prints: examples first. `verb`: one of `words.verbs`.
[[nodiscard]] std::string help_text(const CliWords& words);
[[nodiscard]] std::string verb_help_text(const CliVerb& verb);

// The script that teaches a shell to complete: "bash", "zsh" or "fish".
[[nodiscard]] std::string completion_script(const CliWords& words, const std::string& shell);

// sluice.1, in the macros of man(7).
[[nodiscard]] std::string manual_page(const CliWords& words, const std::string& version);

}  // namespace sluice::engine
