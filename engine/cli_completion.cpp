// Scripts that teach a shell the verbs and options: words from the command line's own tree, files
// where a path belongs.
#include "engine/cli_words.h"

namespace sluice::engine {

namespace {

std::string joined(const std::vector<std::string>& words, const char* between) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : between) + word;
  return out;
}

std::string option_names(const std::vector<CliOption>& options) {
  std::string out;
  for (const CliOption& option : options) {
    if (!option.argument) out += (out.empty() ? "" : " ") + joined(option.names, " ");
  }
  return out;
}

std::string verb_names(const CliWords& words) {
  std::string out;
  for (const CliVerb& verb : words.verbs) out += (out.empty() ? "" : " ") + verb.name;
  return out;
}

// What the arguments of a verb may be, if that is known: of 'help' the verbs.
std::vector<std::string> argument_words(const CliWords& words, const CliVerb& verb) {
  for (const CliOption& option : verb.options) {
    if (!option.argument) continue;
    if (!option.choices.empty()) return option.choices;
    if (option.names[0] != "VERB") continue;
    std::vector<std::string> names;
    for (const CliVerb& one : words.verbs) names.push_back(one.name);
    return names;
  }
  return {};
}

// `text` within single quotes, for bash, zsh and fish alike.
std::string quoted(std::string text, const char* quote) {
  for (size_t at = text.find('\''); at != std::string::npos; at = text.find('\'', at)) {
    text.replace(at, 1, quote);
    at += std::string(quote).size();
  }
  return "'" + text + "'";
}

// -- bash

// What may follow an option of `verb` that takes a value.
std::string bash_values(const CliVerb& verb) {
  std::string paths;
  std::string others;
  std::string out;
  for (const CliOption& option : verb.options) {
    if (option.argument || option.value.empty()) continue;
    const std::string pattern = joined(option.names, "|");
    if (!option.choices.empty()) {
      out += "        " + pattern + ") words=\"" + joined(option.choices, " ") + "\" ;;\n";
    } else {
      std::string& patterns = option.is_path() ? paths : others;
      patterns += (patterns.empty() ? "" : "|") + pattern;
    }
  }
  if (!paths.empty()) out += "        " + paths + ") files=1 ;;\n";
  if (!others.empty()) out += "        " + others + ") return ;;\n";
  return out;
}

std::string bash_verb(const CliWords& words, const CliVerb& verb) {
  const std::vector<std::string> arguments = argument_words(words, verb);
  return "    " + verb.name + ")\n      case $previous in\n" + bash_values(verb) +
         "        *)\n          if [[ $current == -* ]]; then words=\"" +
         option_names(verb.options) + "\"\n          else " +
         (arguments.empty() ? "files=1" : "words=\"" + joined(arguments, " ") + "\"") +
         "\n          fi ;;\n      esac ;;\n";
}

std::string bash_script(const CliWords& words) {
  std::string out = R"(# Completion of sluice for bash: source <(sluice completion bash)
_sluice() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local verb='' words='' files='' i
  # --option=value comes as three words.
  if [[ $current == '=' ]]; then
    current=''
  elif [[ $previous == '=' ]]; then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ ${COMP_WORDS[i]} != -* ]]; then
      verb=${COMP_WORDS[i]}
      break
    fi
  done
  COMPREPLY=()
  case $verb in
    '') words=")";
  out += verb_names(words) + " " + option_names(words.options) + "\" ;;\n";
  for (const CliVerb& verb : words.verbs) out += bash_verb(words, verb);
  out += R"(  esac
  if [[ $files ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    compopt -o filenames 2>/dev/null
  elif [[ $words ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  fi
}
complete -F _sluice sluice
)";
  return out;
}

// -- zsh

// Within the words of _arguments, where : and [ ] have a meaning.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == ':' || c == '[' || c == ']') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_value(const CliOption& option) {
  if (option.value.empty()) return "";
  const std::string name = ":" + zsh_text(option.value) + ":";
  if (!option.choices.empty()) return name + "(" + joined(option.choices, " ") + ")";
  return name + (option.is_path() ? "_files" : "");
}

std::string zsh_options(const std::vector<CliOption>& options) {
  std::string out;
  for (const CliOption& option : options) {
    if (option.argument) continue;
    for (const std::string& name : option.names) {
      out += " \\\n        " +
             quoted("*" + name + "[" + zsh_text(option.about) + "]" + zsh_value(option), "'\\''");
    }
  }
  return out;
}

std::string zsh_script(const CliWords& words) {
  std::string out = R"(#compdef sluice
# Completion of sluice for zsh: source <(sluice completion zsh), or as _sluice in $fpath
_sluice() {
  local context state line
  local -a verbs
  verbs=()";
  for (const CliVerb& verb : words.verbs)
    out += "\n    " + quoted(verb.name + ":" + verb.about, "'\\''");
  out += "\n  )\n  _arguments -C" + zsh_options(words.options) +
         " \\\n        '1:verb:->verb' '*::argument:->argument'\n  case $state in\n"
         "    verb) _describe verb verbs ;;\n    argument)\n      case $words[1] in\n";
  for (const CliVerb& verb : words.verbs) {
    const std::vector<std::string> arguments = argument_words(words, verb);
    out += "      " + verb.name + ") _arguments" + zsh_options(verb.options) + " \\\n        " +
           (arguments.empty() ? "'*:file:_files'" : "'1:word:(" + joined(arguments, " ") + ")'") +
           " ;;\n";
  }
  out += R"(      esac ;;
  esac
}
if [[ $funcstack[1] == _sluice ]]; then _sluice "$@"; else compdef _sluice sluice; fi
)";
  return out;
}

// -- fish

std::string fish_option(const std::string& condition, const CliOption& option) {
  std::string out = "complete -c sluice -n " + quoted(condition, "\\'");
  for (const std::string& name : option.names) {
    out += name[1] == '-' ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (!option.choices.empty()) {
    out += " -x -a " + quoted(joined(option.choices, " "), "\\'");
  } else if (!option.value.empty()) {
    out += option.is_path() ? " -r -F" : " -x";
  }
  return out + " -d " + quoted(option.about, "\\'") + "\n";
}

std::string fish_script(const CliWords& words) {
  std::string out = "# Completion of sluice for fish: sluice completion fish | source\n";
  const std::string no_verb = "not __fish_seen_subcommand_from " + verb_names(words);
  for (const CliOption& option : words.options) out += fish_option(no_verb, option);
  for (const CliVerb& verb : words.verbs) {
    out += "complete -c sluice -f -n " + quoted(no_verb, "\\'") + " -a " + verb.name + " -d " +
           quoted(verb.about, "\\'") + "\n";
    const std::string seen = "__fish_seen_subcommand_from " + verb.name;
    const std::vector<std::string> arguments = argument_words(words, verb);
    if (!arguments.empty()) {
      out += "complete -c sluice -f -n " + quoted(seen, "\\'") + " -a " +
             quoted(joined(arguments, " "), "\\'") + "\n";
    }
    for (const CliOption& option : verb.options) {
      if (!option.argument) out += fish_option(seen, option);
    }
  }
  return out;
}

}  // namespace

std::string completion_script(const CliWords& words, const std::string& shell) {
  if (shell == "zsh") return zsh_script(words);
  return shell == "fish" ? fish_script(words) : bash_script(words);
}

}  // namespace sluice::engine
