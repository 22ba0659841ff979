#include "engine/cli_verbs.h"

#include <iostream>
#include <variant>

#include "engine/clean.h"
#include "engine/logs.h"
#include "engine/plan.h"
#include "engine/run_report.h"
#include "engine/shell.h"
#include "engine/status.h"
#include "engine/verbs.h"
#include "io/diagnostic.h"
#include "io/spec_json_schema.h"
#include "io/spec_values.h"

namespace sluice::engine {

namespace {

constexpr int kUsage = 2;

std::vector<std::pair<std::string, std::string>> split_settings(
    const std::vector<std::string>& settings) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::string& one : settings) {
    const size_t equals = one.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw CLI::ValidationError("--set", "'" + one + "' has no '='; write --set name=value");
    }
    out.emplace_back(one.substr(0, equals), one.substr(equals + 1));
  }
  return out;
}

template <class T>
T checked(const char* option, const io::ParsedValue<T>& parsed) {
  if (const auto* error = std::get_if<io::ValueError>(&parsed)) {
    throw CLI::ValidationError(option,
                               error->text + (error->hint.empty() ? "" : "; " + error->hint));
  }
  return std::get<T>(parsed);
}

// -- options that several verbs have

void declare_json(CLI::App& app, Options& options) {
  app.add_flag("--json", options.json, "for programs: JSON, and nothing else, on stdout");
}

void declare_spec(CLI::App& app, Options& options) {
  app.add_option("PIPELINE", options.spec, "the pipeline's YAML file")->type_name("FILE");
  app.add_option_function<std::string>(
         "--commands",
         [&options](const std::string& file) {
           if (!options.command_list) options.command_list.emplace();
           options.command_list->file = file;
         },
         "instead of a pipeline: a list of commands, one on each line")
      ->type_name("FILE")
      ->default_str("none");
  app.add_option_function<std::vector<std::string>>(
         "--set",
         [&options](const std::vector<std::string>& settings) {
           options.set = split_settings(settings);
         },
         "a parameter of the pipeline; may be repeated")
      ->type_name("NAME=VALUE")
      ->default_str("as in the pipeline")
      ->allow_extra_args(false);
  app.add_option("--run-dir", options.run_dir, "run directory")
      ->type_name("DIR")
      ->default_str("<pipeline>.run beside the pipeline");
}

// What a spec says per task; a list of commands has no other place for it.
void declare_command_list(CLI::App& app, Options& options) {
  const auto list = [&options]() -> io::CommandListOptions& {
    if (!options.command_list) options.command_list.emplace();
    return *options.command_list;
  };
  app.add_option_function<int32_t>(
         "--cpus", [list](int32_t count) { list().cpus = count; }, "with --commands: cores of each")
      ->type_name("N")
      ->default_str("1")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option_function<std::string>(
         "--memory",
         [list](const std::string& text) {
           list().memory_bytes = checked("--memory", io::parse_memory(text));
         },
         "with --commands: memory of each, such as 8GiB")
      ->type_name("SIZE")
      ->default_str("not counted");
  app.add_option_function<std::string>(
         "--timeout",
         [list](const std::string& text) {
           list().timeout = checked("--timeout", io::parse_duration(text));
         },
         "with --commands: one that takes longer, say 45m, is stopped")
      ->type_name("TIME")
      ->default_str("none");
  app.add_option_function<int32_t>(
         "--retries", [list](int32_t count) { list().retries = count; },
         "with --commands: how often one that fails is tried again")
      ->type_name("N")
      ->default_str("0")
      ->check(CLI::Range(0, 100));
}

// Which part of the pipeline; engine/selection.h.
void declare_selection(CLI::App& app, Options& options) {
  const auto add = [&app](const char* name, std::vector<std::string>& targets, const char* about,
                          const char* type, const char* otherwise) {
    app.add_option(name, targets, about)
        ->type_name(type)
        ->default_str(otherwise)
        ->allow_extra_args(false);
  };
  add("--only", options.selection.only, "only these and what they need; may be repeated",
      "TASK[ITEM]", "all");
  add("--until", options.selection.until, "only this task and what it needs; may be repeated",
      "TASK", "all");
  add("--force", options.selection.force,
      "these again although they are up to date; may be repeated", "TASK[ITEM]", "none");
}

void declare_run_dir(CLI::App& app, Options& options) {
  app.add_option("RUN_DIR", options.run_dir, "run directory, or the pipeline or list it belongs to")
      ->type_name("DIR")
      ->required();
}

// -- verbs

void declare_run(CLI::App& app, Options& options) {
  declare_spec(app, options);
  declare_command_list(app, options);
  declare_selection(app, options);
  app.add_option("--max-failures", options.failures_max,
                 "start nothing new after so many failed instances: a number, or a share such as "
                 "5%")
      ->type_name("N")
      ->default_str("no bound");
  app.add_flag("--fresh", options.fresh, "start over: nothing of earlier runs is reused");
  app.add_flag("-n,--dry-run", options.dry_run, "run nothing, show the plan");
  app.add_flag("--json", options.json, "with -n: the plan for programs");
  app.add_option("--reserve-cores", options.reserve_cores, "cores kept free on rank 0's node")
      ->type_name("N")
      ->default_str("1 on nodes of 16 cores or more, else 0")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--lost-after", options.lost_after_s,
                 "seconds of silence after which a worker counts as lost")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(CLI::Range(4, 3600));
}

void declare_check(CLI::App& app, Options& options) {
  declare_spec(app, options);
  declare_command_list(app, options);
  declare_json(app, options);
}

void declare_plan(CLI::App& app, Options& options) {
  declare_spec(app, options);
  declare_command_list(app, options);
  declare_selection(app, options);
  app.add_flag("-v,--verbose", options.verbosity,
               "what was read of each task, and its first commands; -vv: all commands");
  app.add_option("--workers", options.workers, "estimate for so many workers")
      ->type_name("N")
      ->default_str("1")
      ->check(CLI::Range(1, 100'000));
  app.add_option("--cores", options.cores, "estimate for so many cores of each worker")
      ->type_name("N")
      ->default_str("those of this machine")
      ->check(CLI::Range(1, 100'000));
  declare_json(app, options);
}

void declare_status(CLI::App& app, Options& options) {
  declare_run_dir(app, options);
  declare_json(app, options);
  app.add_flag("--tsv", options.tsv, "one line per instance that has ended");
  app.add_flag("--exit-code", options.exit_code,
               "say nothing, exit as the run did (4: unfinished)");
}

void declare_logs(CLI::App& app, Options& options) {
  declare_run_dir(app, options);
  app.add_option("TASK", options.target, "task, or 'task[item]'")->default_str("all");
  app.add_flag("--stderr", options.errors, "only stderr");
  app.add_flag("--failed", options.failed, "only attempts that failed; equal ones once");
  app.add_option("--attempt", options.attempt,
                 "the N-th of each instance, -1 the last; or one by its number, as 1.17")
      ->type_name("N")
      ->default_str("all")
      ->check([](const std::string& text) {
        return is_attempt_choice(text)
                   ? std::string()
                   : "'" + text + "' is no attempt: write 2, -1, or 1.17 as status and logs do";
      });
  app.add_option("--tail", options.tail, "only the last lines of each stream")
      ->type_name("N")
      ->default_str("all")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("-f,--follow", options.follow,
               "print also what comes, until the run ends; at once where it runs on this node");
  app.add_flag("--paths", options.paths, "where the bytes are, as a table; not the bytes");
  declare_json(app, options);
}

void declare_why(CLI::App& app, Options& options) {
  declare_spec(app, options);
  declare_selection(app, options);
  app.add_option("TASK", options.target, "task, or 'task[item]'")->default_str("all");
  declare_json(app, options);
}

void declare_report(CLI::App& app, Options& options) {
  declare_run_dir(app, options);
  declare_json(app, options);
  app.add_option("--provenance", options.provenance, "where a result comes from, up to the sources")
      ->type_name("FILE")
      ->default_str("none");
}

void declare_shell(CLI::App& app, Options& options) {
  declare_run_dir(app, options);
  app.add_option("TASK", options.target, "task, or 'task[item]'")->required();
  app.add_option("-c", options.shell_command, "run this command instead, and leave")
      ->type_name("COMMAND")
      ->default_str("none");
}

void declare_clean(CLI::App& app, Options& options) {
  declare_run_dir(app, options);
  app.add_flag("--dry-run", options.dry_run, "print what would go, remove nothing");
  app.add_flag("--logs", options.old_logs, "logs of older submissions too");
  app.add_flag("--stale", options.stale,
               "move results of instances that the spec no longer has to stale/");
}

void declare_hw(CLI::App& app, Options& options) { declare_json(app, options); }

void declare_help(CLI::App& app, Options& options) {
  app.add_option("VERB", options.topic, "a verb")->default_str("all verbs");
}

int show_help(const Options& options) {
  const CliWords words = cli_words();
  if (options.topic.empty()) {
    std::cout << help_text(words);
    return 0;
  }
  std::vector<std::string> names;
  for (const CliVerb& verb : words.verbs) {
    if (verb.name == options.topic) {
      std::cout << verb_help_text(verb);
      return 0;
    }
    names.push_back(verb.name);
  }
  std::cerr << "sluice: error: '" << options.topic << "' is no verb; "
            << io::suggestion(options.topic, names, "verbs:") << "\n";
  return kUsage;
}

void declare_completion(CLI::App& app, Options& options) {
  app.add_option("SHELL", options.topic, "the shell")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

int show_completion(const Options& options) {
  std::cout << completion_script(cli_words(), options.topic);
  return 0;
}

void declare_nothing(CLI::App& app, Options& options) {
  (void)app;
  (void)options;
}

int show_schema(const Options& options) {
  (void)options;
  std::cout << io::spec_json_schema();
  return 0;
}

int show_manual(const Options& options) {
  (void)options;
  std::cout << manual_page(cli_words(), "sluice " SLUICE_VERSION);
  return 0;
}

const char* const kWatching = "Watch and understand";
const char* const kBefore = "Before a run";
const char* const kRunning = "Run";
const char* const kMore = "Help";

}  // namespace

const std::vector<VerbRow>& verb_rows() {
  static const std::vector<VerbRow> kRows = {
      {Verb::kRun,
       "run",
       kRunning,
       "run what is unfinished; the same command continues a run that was stopped or killed",
       {{"sluice run pipeline.yaml", "run it, or continue it"},
        {"sluice run pipeline.yaml --set tol=1e-6", "with another value of a parameter"},
        {"sluice run --commands list.txt --cpus 2", "each line of list.txt, with two cores"},
        {"srun --mpi=pmix sluice run pipeline.yaml", "on all nodes of a batch job"}},
       declare_run,
       nullptr},
      {Verb::kStop,
       "stop",
       kRunning,
       "ask a run to stop in order: what runs is stopped, what is needed is saved",
       {{"sluice stop pipeline.run", "from any machine that sees the directory"}},
       declare_run_dir,
       stop_run},
      {Verb::kCheck,
       "check",
       kBefore,
       "find every mistake in the pipeline, run nothing",
       {{"sluice check pipeline.yaml", "all mistakes at once, with line and column"},
        {"sluice check --commands list.txt", "the same for a list of commands"}},
       declare_check,
       check_pipeline},
      {Verb::kPlan,
       "plan",
       kBefore,
       "what would run, and why",
       {{"sluice plan pipeline.yaml", "counts and reasons for each task"},
        {"sluice plan pipeline.yaml -v", "with each command"}},
       declare_plan,
       plan_pipeline},
      {Verb::kHw,
       "hw",
       kBefore,
       "what a run may use of this machine: cores, memory, NUMA nodes",
       {{"sluice hw", "for people"},
        {"sluice hw --json", "for programs"},
        {"srun --ntasks-per-node=1 sluice hw", "of each node of a batch job"}},
       declare_hw,
       show_hardware},
      {Verb::kSchema,
       "schema",
       kBefore,
       "the spec's JSON schema, for editors that check while you type",
       {{"sluice schema >pipeline.schema.json", "for an editor to read"}},
       declare_nothing,
       show_schema},
      {Verb::kStatus,
       "status",
       kWatching,
       "how far a run is; true after any kill",
       {{"sluice status pipeline.run", "for people"},
        {"sluice status pipeline.run --json", "for programs"},
        {"sluice status pipeline.run --tsv", "one line per instance"},
        {"sluice status pipeline.run --exit-code", "for job scripts: exits as the run did"}},
       declare_status,
       show_status},
      {Verb::kLogs,
       "logs",
       kWatching,
       "what tasks wrote",
       {{"sluice logs pipeline.run --failed", "of all attempts that failed"},
        {"sluice logs pipeline.run 'simulate[grid=64]'", "of one instance"}},
       declare_logs,
       show_logs},
      {Verb::kWhy,
       "why",
       kWatching,
       "why an instance ran, runs, waits or failed",
       {{"sluice why pipeline.yaml simulate", "of each instance of a task"},
        {"sluice why pipeline.yaml 'simulate[grid=64]'", "of one instance"}},
       declare_why,
       show_why},
      {Verb::kReport,
       "report",
       kWatching,
       "what a run did: times and bounds, use of resources, failures, provenance",
       {{"sluice report pipeline.run", "all submissions of a run"},
        {"sluice report pipeline.run --provenance p.run/results/mean/mean.h5", "what made a file"}},
       declare_report,
       show_report},
      {Verb::kShell,
       "shell",
       kWatching,
       "a shell as an attempt would find things: directory, inputs, environment",
       {{"sluice shell pipeline.run 'simulate[grid=64]'", "look around, try its command"},
        {"sluice shell pipeline.run mesh -c 'env'", "run one command there"}},
       declare_shell,
       open_shell},
      {Verb::kClean,
       "clean",
       kWatching,
       "remove what a run left behind; never current results",
       {{"sluice clean pipeline.run --dry-run", "what would go"}},
       declare_clean,
       clean_run},
      {Verb::kReplay,
       "replay",
       kWatching,
       "replay a run's decisions and compare digests",
       {{"sluice replay pipeline.run", "did this version decide as the run did?"}},
       declare_run_dir,
       replay_run},
      {Verb::kHelp,
       "help",
       kMore,
       "how a verb is used",
       {{"sluice help run", "the same as sluice run --help"}},
       declare_help,
       show_help},
      {Verb::kCompletion,
       "completion",
       kMore,
       "a script that teaches a shell to complete verbs, options and files",
       {{"source <(sluice completion bash)", "in ~/.bashrc"},
        {"source <(sluice completion zsh)", "in ~/.zshrc"},
        {"sluice completion fish | source", "in ~/.config/fish/config.fish"}},
       declare_completion,
       show_completion},
      {Verb::kMan,
       "man",
       kMore,
       "the manual page sluice.1",
       {{"sluice man | man -l -", "read it"}},
       declare_nothing,
       show_manual},
  };
  return kRows;
}

}  // namespace sluice::engine
