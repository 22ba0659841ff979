// A run's status as text for people, as JSON and as TSV for programs.
#include <algorithm>
#include <array>
#include <cstdio>
#include <ostream>

#include <nlohmann/json.hpp>

#include "engine/cli.h"
#include "engine/query.h"
#include "engine/report.h"
#include "engine/status.h"

namespace sluice::engine {

namespace {

using io::RunLedger;
using nlohmann::ordered_json;

constexpr size_t kGroupsShown = 20;
constexpr size_t kLabelsShown = 3;  // per group
constexpr size_t kRunningShown = 10;

std::string counted(size_t count, const char* what) { return std::to_string(count) + " " + what; }

std::string counts_text(const TaskStatus& task) {
  std::string text = counted(task.instances, task.instances == 1 ? "instance: " : "instances: ") +
                     counted(task.done, "done");
  for (const auto& [count, what] : {std::pair{task.running, "running"},
                                    {task.waiting, "waiting"},
                                    {task.failed, "failed"},
                                    {task.skipped, "skipped"},
                                    {task.left_out, "left out"}}) {
    if (count > 0) text += ", " + counted(count, what);
  }
  return text;
}

// Seconds of the clock matter when it was lately, the day when it was not.
std::string last_alive_text(const RunStatus& status) {
  const io::LeaseOwner& owner = status.lease->owner;
  return time_text(owner.beat_unix_ms) + " (" +
         duration_text(scheduler::milliseconds(status.lease->beat_age_ms)) + " ago) on host " +
         owner.host + ", process " + std::to_string(owner.pid);
}

std::string state_text(const RunStatus& status) {
  const TaskStatus total = status.total();
  switch (status.state) {
    case RunStatus::State::kRunning:
      return "running";
    case RunStatus::State::kPerhapsRunning:
      return "perhaps running: its host cannot be asked from here; it is gone if its last sign of "
             "life gets older than 2 min";
    case RunStatus::State::kNotRunning:
      return "not running: it ended without a word (killed, or its node went down); " +
             counted(total.instances - total.done, "unfinished");
    case RunStatus::State::kEnded:
      break;
  }
  return "ended: " + status.text + ", exit " + std::to_string(status.exit_code.value_or(0));
}

void print_failures(const RunStatus& status, const RunDirectory& directory, std::ostream& out) {
  const RunLedger& ledger = status.ledger;
  for (size_t g = 0; g < std::min(status.failures.size(), kGroupsShown); ++g) {
    const FailureGroup& group = status.failures[g];
    const RunLedger::Failure& first = ledger.failures[group.failures.front()];
    out << "failed:     " << group.failures.size() << " × " << group.task << ": " << group.cause;
    if (!first.detail.empty()) out << ": " << first.detail;
    out << "\n";
    for (size_t i = 0; i < std::min(group.failures.size(), kLabelsShown); ++i) {
      const RunLedger::Failure& failure = ledger.failures[group.failures[i]];
      const std::string host = ledger.host_of(failure.attempt, failure.worker);
      out << "              " << ledger.label(ledger.instances[failure.instance])
          << (host.empty() ? "" : " on " + host) << "\n";
    }
    if (group.failures.size() > kLabelsShown) {
      out << "              … and " << group.failures.size() - kLabelsShown << " more\n";
    }
    out << quoted_lines(group.stderr_tail, "              | ");
  }
  if (status.failures.size() > kGroupsShown) {
    out << "failed:     … and " << status.failures.size() - kGroupsShown << " more kinds\n";
  }
  if (!status.failures.empty()) {
    out << "logs:       sluice logs " << shell_words({directory.path.string()}) << " --failed\n";
  }
}

void print_running(const RunStatus& status, std::ostream& out) {
  const size_t count = status.total().running;
  for (size_t i = 0; i < std::min(status.running.size(), kRunningShown); ++i) {
    const RunningInstance& one = status.running[i];
    out << "running:    " << label_text(one.task, one.item) << " on " << one.host << ", attempt "
        << one.attempt << "\n";
  }
  if (count > kRunningShown && !status.running.empty()) {
    out << "running:    … and " << count - kRunningShown << " more\n";
  }
}

ordered_json counts_json(const TaskStatus& task) {
  return {{"instances", task.instances}, {"waiting", task.waiting}, {"running", task.running},
          {"done", task.done},           {"failed", task.failed},   {"skipped", task.skipped},
          {"left_out", task.left_out}};
}

ordered_json group_json(const FailureGroup& group, const RunLedger& ledger) {
  const RunLedger::Failure& first = ledger.failures[group.failures.front()];
  ordered_json json = {{"task", group.task},
                       {"cause", first.cause},
                       {"exit_code", first.exit_code},
                       {"signal", first.signal},
                       {"detail", first.detail},
                       {"stderr_tail", group.stderr_tail},
                       {"count", group.failures.size()},
                       {"items", ordered_json::array()}};
  for (const uint32_t failure : group.failures) {
    json["items"].push_back(ledger.instances[ledger.failures[failure].instance].item);
  }
  return json;
}

const char* state_name(const RunStatus& status) {
  switch (status.state) {
    case RunStatus::State::kRunning:
      return "running";
    case RunStatus::State::kPerhapsRunning:
      return "perhaps_running";
    case RunStatus::State::kNotRunning:
      return "not_running";
    case RunStatus::State::kEnded:
      break;
  }
  return "ended";
}

const char* instance_state_name(RunLedger::State state) {
  switch (state) {
    case RunLedger::State::kOpen:
      return "waiting";
    case RunLedger::State::kDone:
      return "done";
    case RunLedger::State::kFailed:
      return "failed";
    case RunLedger::State::kSkipped:
      return "skipped";
  }
  return "unknown";
}

std::string seconds_text(int64_t ns) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", static_cast<double>(ns) / 1e9);
  return text.data();
}

// A cell holds no tab and no newline.
std::string cell(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text.empty() ? "-" : text;
}

std::string command_of(const RunLedger& ledger, const RunLedger::Instance& instance,
                       const io::Pipeline* pipeline) {
  if (pipeline == nullptr) return "";
  const auto id = pipeline->find(ledger.tasks[instance.task], std::string(instance.item));
  return id.valid() ? pipeline->command_text(id) : "";
}

// Of the last attempt; "-" where no program ended by itself.
std::string exit_text(const RunLedger::Instance& instance, const RunLedger::Failure* failure) {
  if (instance.state == RunLedger::State::kDone) return "0";
  if (failure == nullptr) return "-";
  if (failure->signal != 0) return std::to_string(128 + failure->signal);
  return failure->exit_code != 0 ? std::to_string(failure->exit_code) : "-";
}

void print_row(const RunLedger& ledger, const RunLedger::Instance& instance, std::ostream& out) {
  const bool skipped = instance.state == RunLedger::State::kSkipped;
  const bool ran = instance.attempt.valid() && !skipped;
  const bool failed = ran && instance.state != RunLedger::State::kDone;
  const RunLedger::Failure* failure = failed && instance.last_failure != RunLedger::kNone
                                          ? &ledger.failures[instance.last_failure]
                                          : nullptr;
  const int64_t end_ms = instance.unix_time_ms;
  std::string cause = failure == nullptr ? "" : std::string(failure->cause);
  if (skipped) cause = std::string(instance.because);
  out << ledger.tasks[instance.task] << '\t' << cell(std::string(instance.item)) << '\t'
      << (instance.gone ? "gone" : instance_state_name(instance.state)) << '\t' << cell(cause)
      << '\t' << exit_text(instance, failure);
  if (!ran) {
    out << "\t-\t-\t-\t-";
    return;
  }
  out << '\t' << cell(ledger.host_of(instance.attempt, instance.worker)) << '\t'
      << time_text(end_ms - instance.usage.wall.ns / 1'000'000) << '\t' << time_text(end_ms) << '\t'
      << seconds_text(instance.usage.wall.ns);
}

}  // namespace

void print_status(const RunStatus& status, const RunDirectory& directory, std::ostream& out) {
  const RunLedger& ledger = status.ledger;
  const io::record::Run& run = ledger.newest().run;
  out << "state:      " << state_text(status) << "\n";
  if (status.lease) out << "last alive: " << last_alive_text(status) << "\n";
  out << "started:    " << time_text(run.unix_time_ms) << " (submission " << run.epoch << ")\n";
  out << "all tasks:  " << counts_text(status.total()) << "\n";
  size_t width = 0;
  for (const TaskStatus& task : status.tasks) width = std::max(width, task.name.size());
  for (const TaskStatus& task : status.tasks) {
    out << "  " << task.name << std::string(width - task.name.size(), ' ') << "  "
        << counts_text(task) << "\n";
  }
  print_running(status, out);
  for (const io::record::Worker& worker : ledger.newest().set_aside) {
    out << "set aside:  worker " << worker.worker << " on " << worker.host
        << ": what failed there at once succeeded elsewhere; look at that node\n";
  }
  print_failures(status, directory, out);
  for (const std::string& text : ledger.messages) out << "note:       " << text << "\n";
  if (!status.may_run() && status.exit_code.value_or(0) != 0) {
    out << "continue:   " << (run.command.empty() ? "run the same command again" : run.command)
        << "\n";
  }
}

std::string status_as_json(const RunStatus& status, const RunDirectory& directory) {
  const RunLedger& ledger = status.ledger;
  const RunLedger::Submission& newest = ledger.newest();
  const auto optional = [](const auto& value) {
    return value ? ordered_json(*value) : ordered_json(nullptr);
  };
  ordered_json json = {{"version", 1},
                       {"run_directory", directory.path.string()},
                       {"run_uuid", newest.run.run_uuid},
                       {"state", state_name(status)}};
  json["outcome"] = newest.end && !status.may_run() ? ordered_json(newest.end->outcome) : nullptr;
  json["exit_code"] = optional(status.exit_code);
  json["submission"] = newest.run.epoch;
  json["started_ms"] = newest.run.unix_time_ms;
  json["ended_ms"] = newest.end ? ordered_json(newest.end->unix_time_ms) : nullptr;
  if (status.lease) {
    json["scheduler"] = {{"host", status.lease->owner.host},
                         {"pid", status.lease->owner.pid},
                         {"last_alive_ms", status.lease->owner.beat_unix_ms},
                         {"silent_for_ms", status.lease->beat_age_ms}};
  }
  json["continue"] = newest.run.command;
  json["counts"] = counts_json(status.total());
  json["tasks"] = ordered_json::array();
  for (const TaskStatus& task : status.tasks) {
    ordered_json one = {{"task", task.name}};
    one.update(counts_json(task));
    json["tasks"].push_back(std::move(one));
  }
  json["running"] = ordered_json::array();
  for (const RunningInstance& one : status.running) {
    json["running"].push_back(
        {{"task", one.task}, {"item", one.item}, {"attempt", one.attempt}, {"host", one.host}});
  }
  json["workers_set_aside"] = ordered_json::array();
  for (const io::record::Worker& worker : newest.set_aside) {
    json["workers_set_aside"].push_back({{"worker", worker.worker}, {"host", worker.host}});
  }
  json["failures"] = ordered_json::array();
  for (const FailureGroup& group : status.failures) {
    json["failures"].push_back(group_json(group, ledger));
  }
  json["notes"] = ledger.messages;
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void print_status_tsv(const RunStatus& status, const io::Pipeline* pipeline, std::ostream& out) {
  out << "task\titem\tstate\tcause\texit\thost\tstart\tend\twall_s\tcommand\n";
  for (const RunLedger::Instance& instance : status.ledger.instances) {
    print_row(status.ledger, instance, out);
    out << '\t' << cell(command_of(status.ledger, instance, pipeline)) << '\n';
  }
}

}  // namespace sluice::engine
