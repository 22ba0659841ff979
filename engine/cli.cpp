#include "engine/cli.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "engine/cli_verbs.h"
#include "engine/cli_words.h"
#include "engine/verbs.h"
#include "io/diagnostic.h"

namespace sluice::engine {

namespace {

constexpr int kUsage = 2;

void declare_all(CLI::App& app, Options& options) {
  app.require_subcommand(0, 1);
  app.set_help_flag("-h,--help", "this text");
  app.add_flag_callback(
      "--version", [&options] { options.verb = Verb::kVersion; },
      "versions of sluice and of what it was built with");
  for (const VerbRow& row : verb_rows()) {
    CLI::App& verb = *app.add_subcommand(row.name, row.about);
    verb.group(row.group);
    verb.set_help_flag("-h,--help", "examples and options");
    row.declare(verb, options);
  }
}

CliOption words_of(const CLI::Option& option) {
  CliOption out;
  out.argument = option.get_positional();
  if (out.argument) out.names.push_back(option.get_name(true));
  for (const std::string& name : option.get_snames()) out.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) out.names.push_back("--" + name);
  out.about = option.get_description();
  out.required = option.get_required();
  if (option.get_items_expected_max() == 0) return out;
  out.default_text = option.get_default_str();
  // CLI11 puts what a value is checked for behind its type; of that only choices are for people.
  std::string type = option.get_type_name();
  const size_t check = type.find(':');
  if (check != std::string::npos && type[check + 1] == '{') {
    std::string all = type.substr(check + 2, type.find('}') - check - 2);
    std::replace(all.begin(), all.end(), ',', ' ');
    std::istringstream in(all);
    for (std::string one; in >> one;) out.choices.push_back(one);
  }
  out.value = type.substr(0, check);
  return out;
}

std::vector<CliOption> options_of(const CLI::App& app) {
  std::vector<CliOption> out;
  for (const CLI::Option* option : app.get_options()) out.push_back(words_of(*option));
  return out;
}

std::vector<std::string> verb_names() {
  std::vector<std::string> names;
  for (const VerbRow& row : verb_rows()) names.emplace_back(row.name);
  return names;
}

int complain(const std::string& text) {
  std::cerr << "sluice: error: " << text << "\n";
  return kUsage;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CliOption& option : options_of(app)) {
    if (!option.argument) names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

int complain_of_option(const std::string& verb, const std::string& name, const std::string& help) {
  return complain("'sluice " + verb + "' has no option '" + name + "'; " + help);
}

// Words that no option took. CLI11 may report what is missing because of them; they come first.
int complain_of_unknown(const CLI::App& verb, const std::string& verb_name,
                        const std::vector<std::string>& unknown) {
  const std::string help = "see 'sluice help " + verb_name + "'";
  for (const std::string& word : unknown) {
    if (word.size() < 2 || word[0] != '-') continue;
    const std::string name = word.substr(0, word.find('='));
    const std::string near = io::did_you_mean(name, option_names(verb));
    return complain_of_option(verb_name, name,
                              near.empty() ? help : "did you mean '" + near + "'?");
  }
  return complain("'sluice " + verb_name + "' does not expect '" + unknown.front() + "'; " + help);
}

int complain_of_parse(const CLI::App& app, const CLI::ParseError& error) {
  const auto parsed = app.get_subcommands();
  if (parsed.empty()) {
    const std::vector<std::string> unknown = app.remaining();
    if (unknown.empty()) return complain(std::string(error.what()) + "; see 'sluice --help'");
    const bool option = unknown.front().front() == '-';
    const std::string near =
        io::did_you_mean(unknown.front(), option ? option_names(app) : verb_names());
    return complain("'" + unknown.front() + "' is no " + (option ? "option" : "verb") +
                    " of sluice; " +
                    (near.empty() ? "see 'sluice --help'" : "did you mean '" + near + "'?"));
  }
  const std::string name = parsed.front()->get_name();
  const std::vector<std::string> unknown = app.remaining(true);
  if (!unknown.empty()) return complain_of_unknown(*parsed.front(), name, unknown);
  return complain(std::string(error.what()) + "; see 'sluice help " + name + "'");
}

// A list of commands takes the pipeline's place. Words behind it are what would follow a pipeline.
int settle_spec(Options& options, const std::string& verb) {
  const bool takes_spec = options.verb == Verb::kRun || options.verb == Verb::kCheck ||
                          options.verb == Verb::kPlan || options.verb == Verb::kWhy;
  if (!takes_spec) return -1;
  if (!options.command_list) {
    return !options.spec.empty() ? -1
                                 : complain("'sluice " + verb + "' needs a pipeline: sluice " +
                                            verb + " pipeline.yaml, or --commands list.txt");
  }
  if (options.command_list->file.empty()) {
    return complain(
        "--cpus, --memory, --timeout and --retries are for --commands; in a pipeline write "
        "'resources', 'timeout' and 'retry' in its task");
  }
  if (options.verb == Verb::kWhy && options.target.empty()) {
    options.target = options.spec.string();
  } else if (!options.spec.empty()) {
    return complain("both a pipeline, '" + options.spec.string() +
                    "', and --commands are given; run one of them");
  }
  if (!options.set.empty()) return complain("--set is for pipelines; a list has no parameters");
  options.spec = options.command_list->file;
  return -1;
}

bool is_pipeline_file(const std::filesystem::path& path) {
  const std::string extension = path.extension();
  std::error_code ignored;
  return extension == ".yaml" || extension == ".yml" ||
         std::filesystem::is_regular_file(path, ignored);
}

}  // namespace

RunDirectory Options::directory() const {
  if (!spec.empty()) return RunDirectory::for_spec(spec, run_dir);
  // A query may name the pipeline, or the list, instead of its run directory.
  if (is_pipeline_file(run_dir)) return RunDirectory::for_spec(run_dir, "");
  return RunDirectory{std::filesystem::absolute(run_dir).lexically_normal()};
}

std::string Options::command_anywhere() const {
  std::error_code ignored;
  const std::string here = std::filesystem::current_path(ignored);
  return "cd " + shell_words({here}) + " && " + command;
}

io::SpecOptions Options::spec_options() const {
  return {spec, set, directory().path, command_list, {}, set_is_recorded};
}

CliWords cli_words() {
  CLI::App app;
  Options unused;
  declare_all(app, unused);
  CliWords words;
  words.about =
      "runs a pipeline of many tasks inside one batch allocation, and continues it after any kill";
  words.examples = {{"sluice check pipeline.yaml", "find every mistake before anything runs"},
                    {"sluice run pipeline.yaml", "run it here, with all cores of this machine"},
                    {"sluice run --commands list.txt", "run each line of a file"},
                    {"srun --mpi=pmix sluice run pipeline.yaml", "on all nodes of a batch job"},
                    {"sluice status pipeline.run", "how far it is"},
                    {"sluice logs pipeline.run --failed", "what failed tasks said"}};
  words.options = options_of(app);
  for (const VerbRow& row : verb_rows()) {
    words.verbs.push_back(
        {row.name, row.group, row.about, row.examples, options_of(*app.get_subcommand(row.name))});
  }
  return words;
}

namespace {

// What continues a run does not start it over, nor force what was forced.
std::vector<std::string> without_once(const std::vector<std::string>& words) {
  std::vector<std::string> kept;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--force") {
      ++i;
    } else if (words[i] != "--fresh" && words[i].rfind("--force=", 0) != 0) {
      kept.push_back(words[i]);
    }
  }
  return kept;
}

}  // namespace

int parse_command_line(int argc, char** argv, Options& options) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  options.command = "sluice " + shell_words(without_once(words));
  CLI::App app;
  declare_all(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const auto parsed = app.get_subcommands();
    options.topic = parsed.empty() ? "" : parsed.front()->get_name();
    options.verb = Verb::kHelp;
    return run_verb(options);
  } catch (const CLI::ParseError& error) {
    return complain_of_parse(app, error);
  }
  if (options.verb == Verb::kVersion) return -1;
  const auto parsed = app.get_subcommands();
  if (parsed.empty()) {
    std::cerr << help_text(cli_words());
    return kUsage;
  }
  for (const VerbRow& row : verb_rows()) {
    if (parsed.front()->get_name() == row.name) options.verb = row.verb;
  }
  if (options.verb == Verb::kRun && options.json && !options.dry_run) {
    return complain("--json is for 'sluice run -n'; of a run 'sluice status --json' tells");
  }
  if (options.verb == Verb::kRun && options.dry_run) options.verb = Verb::kPlan;
  return settle_spec(options, parsed.front()->get_name());
}

int run_verb(const Options& options) {
  for (const VerbRow& row : verb_rows()) {
    if (row.verb == options.verb && row.act != nullptr) return row.act(options);
  }
  return kUsage;
}

std::string shell_words(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      out += word;
      continue;
    }
    out += '\'';
    for (const char c : word) {
      if (c == '\'') {
        out += "'\\''";
      } else {
        out += c;
      }
    }
    out += '\'';
  }
  return out;
}

}  // namespace sluice::engine
