// sluice.1, from the command line's own tree.
#include "engine/cli_words.h"

namespace sluice::engine {

namespace {

// Text in which troff sees no command.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\'') {
      out += "\\(aq";
    } else {
      out += c;
    }
  }
  return out.empty() || out[0] != '.' ? out : "\\&" + out;
}

std::string examples(const std::vector<CliExample>& all) {
  std::string out;
  for (const CliExample& one : all)
    out += ".TP\n.B " + plain(one.command) + "\n" + plain(one.meaning) + "\n";
  return out;
}

std::string option(const CliOption& one) {
  std::string out = ".TP\n";
  for (size_t i = 0; i < one.names.size(); ++i)
    out += (i == 0 ? ".B " : "\n.br\n.ns\n.TP\n.B ") + plain(one.names[i]);
  if (!one.argument && !one.value.empty()) out += " " + plain(one.value);
  out += "\n" + plain(one.about);
  for (size_t i = 0; i < one.choices.size(); ++i)
    out += (i == 0 ? ": " : ", ") + plain(one.choices[i]);
  if (!one.default_text.empty()) out += " (default: " + plain(one.default_text) + ")";
  return out + "\n";
}

std::string options(const std::vector<CliOption>& all) {
  std::string out;
  for (const CliOption& one : all) out += option(one);
  return out;
}

constexpr const char* kRest = R"(.SH EXIT STATUS
.TP
.B 0
all is done
.TP
.B 1
some instance failed
.TP
.B 2
a mistake in the pipeline, the list or the command line
.TP
.B 3
the environment cannot be used
.TP
.B 4
stopped early: the same command continues the run
.TP
.B 70
a mistake of sluice itself
.TP
.B 128+n
killed by a second signal n
.SH ENVIRONMENT
.TP
.B NO_COLOR
when set to anything but nothing, nothing is coloured
.TP
.B TERM
with the value
.I dumb
progress is a plain line a minute, as it is where standard error is no terminal
.SH SIGNALS
The first SIGINT (Ctrl\-C), SIGTERM, SIGHUP or SIGUSR1 stops a run in order: nothing new starts,
running attempts get SIGTERM and their grace, what is needed is saved, the exit status is 4. A
second one ends it at once.
)";

}  // namespace

std::string manual_page(const CliWords& words, const std::string& version) {
  std::string out = ".TH SLUICE 1 \"\" \"" + plain(version) +
                    "\" \"User Commands\"\n.SH NAME\nsluice \\- " + plain(words.about) +
                    "\n.SH SYNOPSIS\n.B sluice\n.I VERB\n[options]\n.SH EXAMPLES\n" +
                    examples(words.examples);
  std::string group;
  for (const CliVerb& verb : words.verbs) {
    if (verb.group != group) out += ".SH \"" + verb.group + "\"\n";
    group = verb.group;
    out += ".SS sluice " + plain(verb.name) + "\n" + plain(verb.about) + "\n" +
           options(verb.options) + ".PP\nExamples:\n" + examples(verb.examples);
  }
  return out + ".SH OPTIONS\n" + options(words.options) + kRest;
}

}  // namespace sluice::engine
