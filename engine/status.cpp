#include "engine/status.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <tuple>

#include <nlohmann/json.hpp>

#include "engine/cli.h"
#include "engine/query.h"
#include "engine/recorded_spec.h"
#include "engine/report.h"
#include "io/files.h"

namespace sluice::engine {

namespace {

using io::LeaseView;
using io::RunLedger;
using nlohmann::json;

constexpr int kUnfinished = 4;

// status.json, if it can be believed so far.
struct Snapshot {
  std::string run_uuid;
  io::LedgerMark mark;
  std::vector<TaskStatus> tasks;
  std::vector<RunningInstance> running;
};

std::optional<Snapshot> parse_snapshot(const std::string& text) {
  const json read = json::parse(text, nullptr, false);
  if (!read.is_object()) return {};
  try {
    Snapshot snapshot;
    if (read.at("version") != 1) return {};
    read.at("run_uuid").get_to(snapshot.run_uuid);
    read.at("epoch").get_to(snapshot.mark.epoch);
    read.at("journal_bytes").get_to(snapshot.mark.bytes);
    for (const json& one : read.at("tasks")) {
      TaskStatus task;
      one.at("task").get_to(task.name);
      one.at("instances").get_to(task.instances);
      one.at("running").get_to(task.running);
      one.at("done").get_to(task.done);
      one.at("failed").get_to(task.failed);
      one.at("skipped").get_to(task.skipped);
      task.left_out = one.value("left_out", size_t{0});
      if (task.done + task.failed + task.skipped + task.left_out > task.instances) return {};
      snapshot.tasks.push_back(std::move(task));
    }
    for (const json& one : read.at("running")) {
      snapshot.running.push_back(
          {one.at("task"), one.at("item"), one.at("attempt"), one.at("host")});
    }
    return snapshot;
  } catch (const json::exception&) {
    return {};  // damaged, or not ours
  }
}

std::optional<Snapshot> read_snapshot(const RunDirectory& directory) {
  const auto text = io::real_files().read(directory.status());
  return text ? parse_snapshot(*text) : std::nullopt;
}

bool is_believed(const Snapshot& snapshot, const RunLedger& ledger) {
  const io::record::Run& run = ledger.newest().run;
  return snapshot.run_uuid == run.run_uuid && snapshot.mark.epoch == run.epoch &&
         snapshot.mark.bytes <= ledger.newest_length;
}

size_t task_index(const RunLedger& ledger, const std::string& name) {
  const auto found = std::find(ledger.tasks.begin(), ledger.tasks.end(), name);
  return static_cast<size_t>(found - ledger.tasks.begin());
}

// Snapshot and what was recorded since.
std::vector<TaskStatus> counts_since(const Snapshot& snapshot, const RunLedger& ledger) {
  std::vector<TaskStatus> tasks = snapshot.tasks;
  for (TaskStatus& task : tasks) {
    const size_t index = task_index(ledger, task.name);
    if (index == ledger.tasks.size()) continue;
    const RunLedger::Since& since = ledger.since[index];
    const auto add = [&](size_t& count, size_t more) {
      const size_t room = task.instances - task.done - task.failed - task.skipped - task.left_out;
      count += std::min(more, room);
    };
    add(task.done, since.done);
    add(task.failed, since.failed);
    add(task.skipped, since.skipped);
    task.running -= std::min(task.running, since.done + since.failed);
  }
  return tasks;
}

// By the journal alone: the last that it says about each instance.
std::vector<TaskStatus> counts_recorded(const RunLedger& ledger) {
  std::vector<TaskStatus> all(ledger.tasks.size());
  for (const RunLedger::Instance& instance : ledger.instances) {
    if (instance.gone) continue;
    TaskStatus& task = all[instance.task];
    task.done += instance.state == RunLedger::State::kDone ? 1 : 0;
    task.failed += instance.state == RunLedger::State::kFailed ? 1 : 0;
    task.skipped += instance.state == RunLedger::State::kSkipped ? 1 : 0;
    ++task.waiting;
  }
  std::vector<TaskStatus> tasks;
  for (const io::record::RunTask& asked : ledger.newest().run.tasks) {
    tasks.push_back(all[task_index(ledger, asked.name)]);
    tasks.back().name = asked.name;
    tasks.back().instances = asked.instances;
  }
  if (!tasks.empty()) return tasks;
  // A journal of a version that did not record what was asked for.
  for (size_t t = 0; t < ledger.tasks.size(); ++t) {
    all[t].name = ledger.tasks[t];
    all[t].instances = all[t].waiting;
  }
  return all;
}

void judge(RunStatus& status) {
  const auto& end = status.ledger.newest().end;
  const bool alive = status.lease && status.lease->may_run() && !end;
  if (alive) {
    const bool sure = status.lease->alive == LeaseView::Alive::kYes;
    status.state = sure ? RunStatus::State::kRunning : RunStatus::State::kPerhapsRunning;
    status.text = sure ? "running" : "perhaps running";
  } else if (end) {
    status.state = RunStatus::State::kEnded;
    status.text = end->outcome;
    status.exit_code = end->exit_code;
  } else {
    status.text = "not running";
    status.exit_code = kUnfinished;
  }
}

std::vector<FailureGroup> group_failures(const RunLedger& ledger) {
  std::map<std::tuple<uint32_t, std::string, std::string_view>, FailureGroup> groups;
  for (const RunLedger::Instance& instance : ledger.instances) {
    if (instance.state != RunLedger::State::kFailed || instance.gone) continue;
    const RunLedger::Failure& failure = ledger.failures[instance.last_failure];
    const std::string cause = cause_text(failure);
    FailureGroup& group = groups[{instance.task, cause, failure.stderr_tail}];
    group.task = ledger.tasks[instance.task];
    group.cause = cause;
    group.stderr_tail = failure.stderr_tail;
    group.failures.push_back(instance.last_failure);
  }
  std::vector<FailureGroup> sorted;
  sorted.reserve(groups.size());
  for (auto& [key, group] : groups) sorted.push_back(std::move(group));
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.failures.size() > b.failures.size();
  });
  return sorted;
}

}  // namespace

TaskStatus RunStatus::total() const {
  TaskStatus sum;
  for (const TaskStatus& task : tasks) {
    sum.instances += task.instances;
    sum.waiting += task.waiting;
    sum.running += task.running;
    sum.done += task.done;
    sum.failed += task.failed;
    sum.skipped += task.skipped;
    sum.left_out += task.left_out;
  }
  return sum;
}

std::vector<RunningInstance> running_instances(const RunDirectory& directory) {
  std::optional<Snapshot> snapshot = read_snapshot(directory);
  return snapshot ? std::move(snapshot->running) : std::vector<RunningInstance>();
}

Expected<RunStatus> read_status(const RunDirectory& directory, io::LedgerDetail detail) {
  RunStatus status;
  // In this order: what is read later is not older.
  const std::optional<Snapshot> snapshot = read_snapshot(directory);
  if (auto lease = io::view_lease(directory.path)) status.lease = *lease;
  if (!snapshot) detail = io::LedgerDetail::kAll;
  const io::LedgerMark mark = snapshot ? snapshot->mark : io::LedgerMark{};
  auto ledger = io::read_ledger(directory.path, mark, detail);
  bool believed = ledger && snapshot && is_believed(*snapshot, *ledger);
  if (ledger && !believed && detail != io::LedgerDetail::kAll) {
    ledger = io::read_ledger(directory.path, mark);
    believed = ledger && is_believed(*snapshot, *ledger);
  }
  if (!ledger) return ledger.error();
  status.ledger = std::move(*ledger);
  if (status.ledger.submissions.empty()) return status;
  judge(status);
  status.tasks = believed ? counts_since(*snapshot, status.ledger) : counts_recorded(status.ledger);
  if (believed && status.may_run()) status.running = snapshot->running;
  for (TaskStatus& task : status.tasks) {
    if (!status.may_run()) task.running = 0;
    const size_t known = task.done + task.failed + task.skipped + task.left_out + task.running;
    task.waiting = task.instances - std::min(task.instances, known);
  }
  status.failures = group_failures(status.ledger);
  return status;
}

namespace {

void show_tsv(const RunStatus& status, const RunDirectory& directory) {
  const auto pipeline = read_recorded_spec(directory, status.ledger.newest().run);
  if (!pipeline) std::cerr << "sluice: no commands: " << pipeline.error().message << "\n";
  print_status_tsv(status, pipeline ? &*pipeline : nullptr, std::cout);
}

}  // namespace

int show_status(const Options& options) {
  const RunDirectory directory = options.directory();
  const auto status =
      read_status(directory, options.tsv ? io::LedgerDetail::kAll : io::LedgerDetail::kTroubled);
  if (!status) return complain(status.error().message, kQueryEnvironment);
  if (status->ledger.submissions.empty()) return complain_no_run(directory);
  if (options.exit_code) return status->exit_code.value_or(kUnfinished);
  if (options.json) {
    std::cout << status_as_json(*status, directory);
  } else if (options.tsv) {
    show_tsv(*status, directory);
  } else {
    print_status(*status, directory, std::cout);
  }
  return kQueryDone;
}

}  // namespace sluice::engine
