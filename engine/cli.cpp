#include "engine/cli.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "engine/verbs.h"

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

void add_spec(CLI::App& verb, Options& options, std::vector<std::string>& settings) {
  verb.add_option("PIPELINE", options.spec, "the pipeline's YAML file")->required();
  verb.add_option("--set", settings, "name=value: a parameter of the pipeline, may be repeated")
      ->allow_extra_args(false);
  verb.add_option("--run-dir", options.run_dir,
                  "run directory (default: <pipeline>.run beside the pipeline)");
}

void add_run_dir(CLI::App& verb, Options& options) {
  verb.add_option("RUN_DIR", options.run_dir, "run directory, or the pipeline's YAML file")
      ->required();
}

}  // namespace

RunDirectory Options::directory() const {
  if (!spec.empty()) return RunDirectory::for_spec(spec, run_dir);
  // A query may name the pipeline instead of its run directory.
  const std::string extension = run_dir.extension();
  if (extension == ".yaml" || extension == ".yml") return RunDirectory::for_spec(run_dir, "");
  return RunDirectory{std::filesystem::absolute(run_dir).lexically_normal()};
}

int parse_command_line(int argc, char** argv, Options& options) {
  CLI::App app(
      "Sluice: runs a pipeline of many tasks inside one batch allocation, and continues it after "
      "any kill");
  app.set_version_flag("--version", version_text());
  app.require_subcommand(1);
  std::vector<std::string> settings;

  CLI::App& run = *app.add_subcommand("run", "run what is unfinished; idempotent");
  add_spec(run, options, settings);
  run.add_option("--reserve-cores", options.reserve_cores, "cores kept free on rank 0's node")
      ->check(CLI::NonNegativeNumber);
  run.add_option("--lost-after", options.lost_after_s,
                 "seconds of silence after which a worker counts as lost (default: 30)")
      ->check(CLI::Range(4, 3600));
  CLI::App& check = *app.add_subcommand("check", "find every mistake in the pipeline, run nothing");
  add_spec(check, options, settings);
  CLI::App& plan = *app.add_subcommand("plan", "what would run, and why");
  add_spec(plan, options, settings);
  plan.add_flag("-v,--verbose", options.verbose, "each instance with its command");
  plan.add_flag("--json", options.json, "for programs");
  CLI::App& status = *app.add_subcommand("status", "how far a run is; true after any kill");
  add_run_dir(status, options);
  status.add_flag("--json", options.json, "for programs");
  status.add_flag("--exit-code", options.exit_code,
                  "say nothing, exit as the run did (4: unfinished)");
  CLI::App& logs = *app.add_subcommand("logs", "what tasks wrote");
  add_run_dir(logs, options);
  logs.add_option("TASK", options.target, "task, or 'task[item]' (default: all)");
  logs.add_flag("--stderr", options.errors, "only stderr");
  logs.add_flag("--failed", options.failed, "only attempts that failed");
  CLI::App& why = *app.add_subcommand("why", "why an instance ran, runs, waits or failed");
  add_spec(why, options, settings);
  why.add_option("TASK", options.target, "task, or 'task[item]'");
  CLI::App& stop = *app.add_subcommand("stop", "ask a run to stop in order");
  add_run_dir(stop, options);
  CLI::App& replay = *app.add_subcommand("replay", "replay a run's decisions and compare digests");
  add_run_dir(replay, options);

  try {
    app.parse(argc, argv);
    options.set = split_settings(settings);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : kUsage;
  }
  const std::pair<CLI::App*, Verb> verbs[] = {
      {&run, Verb::kRun},   {&check, Verb::kCheck}, {&plan, Verb::kPlan}, {&status, Verb::kStatus},
      {&logs, Verb::kLogs}, {&why, Verb::kWhy},     {&stop, Verb::kStop}, {&replay, Verb::kReplay}};
  for (const auto& [parsed, verb] : verbs) {
    if (parsed->parsed()) options.verb = verb;
  }
  options.command = "sluice run " + options.spec.string();
  if (!options.run_dir.empty() && !options.spec.empty())
    options.command += " --run-dir " + options.run_dir.string();
  for (const std::string& one : settings) options.command += " --set " + one;
  return -1;
}

int run_verb(const Options& options) {
  switch (options.verb) {
    case Verb::kCheck:
      return check_pipeline(options);
    case Verb::kPlan:
      return plan_pipeline(options);
    case Verb::kStatus:
      return show_status(options);
    case Verb::kLogs:
      return show_logs(options);
    case Verb::kWhy:
      return show_why(options);
    case Verb::kStop:
      return stop_run(options);
    case Verb::kReplay:
      return replay_run(options);
    case Verb::kRun:
    case Verb::kNone:
      break;
  }
  return kUsage;
}

}  // namespace sluice::engine
