#include "engine/verbs.h"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>

#include <nlohmann/json.hpp>

#include "engine/cli.h"
#include "engine/forecast.h"
#include "engine/replay.h"
#include "engine/report.h"
#include "io/journal.h"
#include "io/lease.h"
#include "io/log_pack.h"
#include "io/sources.h"
#include "io/spec.h"
#include "io/spec_describe.h"

#ifndef SLUICE_VERSION
#define SLUICE_VERSION "unknown"
#endif

namespace sluice::engine {

using scheduler::InstanceId;
using scheduler::TaskId;

namespace {

constexpr int kDone = 0;
constexpr int kUsage = 2;
constexpr int kEnvironmentUnusable = 3;
constexpr int kUnfinished = 4;
constexpr int kFailedReplay = 1;

int complain(const std::string& text, int code) {
  std::cerr << "sluice: error: " << text << "\n";
  return code;
}

std::optional<io::Pipeline> read_quietly(const Options& options, io::Diagnostics& diagnostics) {
  io::FileSourceIds sources(options.directory().sources_cache());
  auto pipeline = io::read_pipeline({options.spec, options.set}, sources, diagnostics);
  diagnostics.print(std::cerr);
  return pipeline;
}

// "task" or "task[item]" against (task, item).
bool matches(const std::string& target, const std::string& task, const std::string& item) {
  if (target.empty() || target == task) return true;
  return target == task + "[" + item + "]";
}

int no_run(const RunDirectory& directory) {
  return complain(
      "no run in " + directory.path.string() + ": no journal is there; start one with 'sluice run'",
      kUsage);
}

}  // namespace

std::string version_text() { return "sluice " SLUICE_VERSION; }

// -- check, plan, why
// -------------------------------------------------------------------------------------------------

int check_pipeline(const Options& options) {
  io::Diagnostics diagnostics;
  const auto pipeline = read_quietly(options, diagnostics);
  if (!pipeline) return kUsage;
  std::cout << pipeline->name << ": " << io::count_text(*pipeline) << ", no mistakes found\n";
  return kDone;
}

int plan_pipeline(const Options& options) {
  io::Diagnostics diagnostics;
  const auto pipeline = read_quietly(options, diagnostics);
  if (!pipeline) return kUsage;
  const auto forecast = make_forecast(*pipeline, options.directory());
  if (!forecast) return complain(forecast.error().message, kEnvironmentUnusable);
  const std::vector<io::TaskDescription> descriptions = io::describe(*pipeline);
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (size_t t = 0; t < pipeline->graph.task_count(); ++t) {
    const scheduler::TaskSpec& task = pipeline->graph.task(TaskId(t));
    std::map<std::string, size_t> verdicts;
    std::map<std::string, size_t> reasons;
    for (uint32_t i = 0; i < task.instance_count; ++i) {
      const Verdict& verdict = forecast->verdicts[pipeline->graph.instance(TaskId(t), i).index()];
      ++verdicts[verdict_name(verdict.kind)];
      if (verdict.kind != Verdict::Kind::kUpToDate) ++reasons[verdict.reason];
    }
    if (options.json) {
      json.push_back({{"task", task.name},
                      {"instances", task.instance_count},
                      {"verdicts", verdicts},
                      {"reasons", reasons}});
      continue;
    }
    std::cout << task.name << ": " << task.instance_count
              << (task.instance_count == 1 ? " instance" : " instances");
    for (const auto& [name, count] : verdicts) std::cout << ", " << count << " " << name;
    std::cout << "\n";
    for (const auto& [reason, count] : reasons)
      std::cout << "    " << count << " × " << reason << "\n";
    for (const io::InputDescription& in : descriptions[t].inputs) {
      std::cout << "    " << in.name << ": " << in.source << ", " << in.join << "\n";
    }
    for (uint32_t i = 0; options.verbose && i < task.instance_count; ++i) {
      const InstanceId instance = pipeline->graph.instance(TaskId(t), i);
      std::cout << "    " << pipeline->label(instance) << ": " << pipeline->command_text(instance)
                << "\n";
    }
  }
  if (options.json) std::cout << json.dump(2) << "\n";
  return kDone;
}

int show_why(const Options& options) {
  io::Diagnostics diagnostics;
  const auto pipeline = read_quietly(options, diagnostics);
  if (!pipeline) return kUsage;
  const auto forecast = make_forecast(*pipeline, options.directory());
  if (!forecast) return complain(forecast.error().message, kEnvironmentUnusable);
  size_t shown = 0;
  for (size_t i = 0; i < pipeline->graph.instance_count(); ++i) {
    const InstanceId instance(i);
    const std::string& task = pipeline->graph.task(pipeline->graph.task_of(instance)).name;
    if (!matches(options.target, task, pipeline->item(instance))) continue;
    const Verdict& verdict = forecast->verdicts[i];
    std::cout << pipeline->label(instance) << ": " << verdict_name(verdict.kind) << ": "
              << verdict.reason << "\n";
    for (const std::string& line : verdict.history) std::cout << "    " << line << "\n";
    ++shown;
  }
  if (shown > 0) return kDone;
  std::vector<std::string> names;
  for (const scheduler::TaskSpec& task : pipeline->graph.tasks()) names.push_back(task.name);
  const std::string near =
      io::did_you_mean(options.target.substr(0, options.target.find('[')), names);
  return complain(
      "'" + options.target + "' is no task or instance of " + options.spec.string() +
          (near.empty() ? "; write TASK or 'TASK[key=value,…]'" : "; did you mean '" + near + "'?"),
      kUsage);
}

// -- status, logs
// -----------------------------------------------------------------------------------------------------

namespace {

struct StatusFacts {
  io::JournalState journal;
  std::optional<io::LeaseView> lease;
  bool running = false;
  size_t done = 0, failed = 0, skipped = 0;
  int exit_code = kUnfinished;
  std::string state;
};

StatusFacts gather_status(io::JournalState journal, const RunDirectory& directory) {
  StatusFacts facts;
  facts.journal = std::move(journal);
  if (auto lease = io::view_lease(directory.path)) facts.lease = *lease;
  facts.running = facts.lease && !facts.lease->owner.released &&
                  facts.lease->alive != io::LeaseView::Alive::kNo && !facts.journal.end;
  for (const auto& [name, instance] : facts.journal.instances) {
    const bool failed = instance.last_failure && instance.last_failure->final;
    if (failed) {
      ++facts.failed;
    } else if (instance.done) {
      ++facts.done;
    } else if (!instance.skipped_because.empty()) {
      ++facts.skipped;
    }
  }
  if (facts.running) {
    facts.state = facts.lease->alive == io::LeaseView::Alive::kYes ? "running" : "perhaps running";
  } else if (facts.journal.end) {
    facts.state = facts.journal.end->outcome;
    facts.exit_code = facts.journal.end->exit_code;
  } else {
    facts.state = "not running";
  }
  return facts;
}

void print_status(const StatusFacts& facts, const RunDirectory& directory) {
  const io::record::Run& run = facts.journal.last_run;
  std::cout << "state:     " << facts.state << "\n";
  if (facts.lease) {
    const io::LeaseOwner& owner = facts.lease->owner;
    std::cout << "scheduler: " << owner.host << ", pid " << owner.pid << ", submission "
              << owner.epoch << ", last alive "
              << duration_text(scheduler::milliseconds(facts.lease->beat_age_ms)) << " ago\n";
  }
  std::cout << "started:   " << time_text(run.unix_time_ms) << " (this submission)\n";
  std::cout << "instances: " << run.instances << ", " << facts.done << " done, " << facts.failed
            << " failed, " << facts.skipped << " skipped\n";
  for (const auto& [name, instance] : facts.journal.instances) {
    if (!instance.last_failure || !instance.last_failure->final) continue;
    const io::record::Attempt& failure = *instance.last_failure;
    std::cout << "failed:    " << name.first << (name.second.empty() ? "" : "[" + name.second + "]")
              << ": " << failure.cause
              << (failure.cause == "exit" ? " " + std::to_string(failure.exit_code) : "")
              << (failure.detail.empty() ? "" : ": " + failure.detail) << "\n";
  }
  for (const std::string& text : facts.journal.messages) std::cout << "note:      " << text << "\n";
  if (!facts.running && facts.exit_code != kDone) {
    std::cout << "continue:  run the same command again; logs: sluice logs "
              << directory.path.string() << "\n";
  }
}

nlohmann::ordered_json status_json(const StatusFacts& facts) {
  nlohmann::ordered_json json;
  json["state"] = facts.state;
  json["running"] = facts.running;
  json["exit_code"] =
      facts.running ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(facts.exit_code);
  json["run_uuid"] = facts.journal.run_uuid;
  json["epoch"] = facts.journal.epoch;
  json["instances"] = facts.journal.last_run.instances;
  json["done"] = facts.done;
  json["failed"] = facts.failed;
  json["skipped"] = facts.skipped;
  if (facts.lease) {
    json["scheduler"] = {{"host", facts.lease->owner.host},
                         {"pid", facts.lease->owner.pid},
                         {"last_alive_ms", facts.lease->beat_age_ms}};
  }
  return json;
}

std::string header(const io::LogEntry& entry, const char* stream, int64_t written,
                   int64_t dropped) {
  std::string text = "== " + entry.task + (entry.item.empty() ? "" : "[" + entry.item + "]") +
                     ", attempt " + std::to_string(entry.attempt.epoch()) + "." +
                     std::to_string(entry.attempt.number()) + ", worker " +
                     std::to_string(entry.worker) + ", " + entry.outcome + ", " + stream + ", " +
                     std::to_string(written) + " bytes";
  if (dropped > 0) text += " (" + std::to_string(dropped) + " dropped from the middle)";
  return text + "\n";
}

void print_stream(const io::LogEntry& entry, bool err) {
  const int64_t written = err ? entry.err_written_bytes : entry.out_written_bytes;
  if (written == 0) return;
  const auto text = io::read_log(entry, err);
  std::cout << header(entry, err ? "stderr" : "stdout", written,
                      err ? entry.err_dropped_bytes : entry.out_dropped_bytes);
  if (text) {
    std::cout << *text;
    if (!text->empty() && text->back() != '\n') std::cout << "\n";
  } else {
    std::cerr << "sluice: error: " << text.error().message << "\n";
  }
}

}  // namespace

int show_status(const Options& options) {
  const RunDirectory directory = options.directory();
  auto journal = io::read_journal(directory.path);
  if (!journal) return complain(journal.error().message, kEnvironmentUnusable);
  if (journal->epoch == 0) return no_run(directory);
  const StatusFacts facts = gather_status(std::move(*journal), directory);
  if (options.exit_code) return facts.running ? kUnfinished : facts.exit_code;
  if (options.json) {
    std::cout << status_json(facts).dump(2, ' ', false, nlohmann::json::error_handler_t::replace)
              << "\n";
  } else {
    print_status(facts, directory);
  }
  return kDone;
}

int show_logs(const Options& options) {
  const RunDirectory directory = options.directory();
  const auto entries = io::read_log_index(directory.logs());
  if (!entries) return complain(entries.error().message, kEnvironmentUnusable);
  if (entries->empty()) {
    return complain("no task has written anything into " + directory.logs().string() +
                        ": no attempt has ended there; 'sluice status' tells how far the run is",
                    kUsage);
  }
  size_t shown = 0;
  int64_t bytes = 0;
  for (const io::LogEntry& entry : *entries) {
    if (!matches(options.target, entry.task, entry.item)) continue;
    if (options.failed && entry.outcome == "done") continue;
    ++shown;
    bytes += (options.errors ? 0 : entry.out_written_bytes) + entry.err_written_bytes;
    if (!options.errors) print_stream(entry, false);
    print_stream(entry, true);
  }
  if (shown > 0 && bytes == 0)
    std::cerr << "sluice: " << shown << (shown == 1 ? " attempt" : " attempts")
              << " wrote nothing\n";
  if (shown > 0) return kDone;
  const std::string what = options.target.empty() ? "any task" : "'" + options.target + "'";
  return complain("no output of " + what + " in " + directory.logs().string() +
                      ": no attempt of that name has ended; 'sluice status' tells what has",
                  kUsage);
}

// -- stop, replay
// -----------------------------------------------------------------------------------------------------

int stop_run(const Options& options) {
  const RunDirectory directory = options.directory();
  const auto lease = io::view_lease(directory.path);
  if (!lease) return complain(lease.error().message, kEnvironmentUnusable);
  if (lease->owner.epoch == 0 || lease->owner.released ||
      lease->alive == io::LeaseView::Alive::kNo) {
    return complain("no run is going on in " + directory.path.string() + ": nothing to stop",
                    kUsage);
  }
  std::ofstream request(directory.stop_request());
  if (!(request << "stop\n" << std::flush)) {
    return complain("the request could not be left at " + directory.stop_request().string() +
                        ": may you write to the run directory?",
                    kEnvironmentUnusable);
  }
  std::cerr << "sluice: asked the run on " << lease->owner.host << " to stop in order\n";
  return kDone;
}

int replay_run(const Options& options) {
  const RunDirectory directory = options.directory();
  const auto result = replay_trace(directory.trace(), true);
  if (!result) return complain(result.error().message, kEnvironmentUnusable);
  std::cout << "digest " << std::hex << result->digest << std::dec << ", " << result->events
            << " events, " << result->schedules << " schedule calls"
            << (result->complete ? "" : " (the trace ends early)") << "\n";
  if (result->first_difference == 0) {
    std::cout << "the replay decided as the run did\n";
    return kDone;
  }
  return complain("the replay decided otherwise at schedule call " +
                      std::to_string(result->first_difference) +
                      ": the trace was recorded by another version of sluice, or this is our bug",
                  kFailedReplay);
}

}  // namespace sluice::engine
