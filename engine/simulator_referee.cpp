#include "engine/simulator_referee.h"

#include <algorithm>
#include <utility>

namespace sluice::engine {

using scheduler::Amount;
using scheduler::AttemptId;
using scheduler::GateId;
using scheduler::Graph;
using scheduler::GroupId;
using scheduler::Hash128;
using scheduler::InstanceId;
using scheduler::LimitUse;
using scheduler::ObjectId;
using scheduler::OutputReport;
using scheduler::Resources;
using scheduler::WorkerId;

namespace {

std::string text(AttemptId attempt) {
  return "attempt " + std::to_string(attempt.epoch()) + "." + std::to_string(attempt.number());
}
std::string text(InstanceId instance) { return "instance " + std::to_string(instance.value); }
std::string text(WorkerId worker) { return "worker " + std::to_string(worker.value); }
std::string text(ObjectId object) { return "object " + std::to_string(object.value); }

}  // namespace

Referee::Referee(const Graph& graph)
    : launches(graph.instance_count()),
      completions(graph.instance_count()),
      graph_(graph),
      progress_(graph.instance_count()),
      limits_used_(graph.limits().size()),
      contents_(graph.object_count()),
      replicas_(graph.object_count()),
      durable_(graph.object_count()) {}

void Referee::problem(std::string what) {
  constexpr size_t kProblemsMax = 50;
  if (problems_.size() < kProblemsMax) problems_.push_back(std::move(what));
}

// -- rank 0 ---------------------------------------------------------------------------------------

void Referee::worker_joined(WorkerId worker, const Resources& resources) {
  machines_[worker].resources = resources;
}

void Referee::worker_lost(WorkerId worker) {
  lost_.insert(worker);
  std::vector<AttemptId> over;
  for (const auto& [attempt, open] : open_) {
    if (open.worker == worker) over.push_back(attempt);
  }
  for (const AttemptId attempt : over) attempt_over(attempt);
  for (auto& holders : replicas_) holders.erase(worker);
  for (auto entry = saves_.begin(); entry != saves_.end();) {
    entry = entry->second == worker ? saves_.erase(entry) : std::next(entry);
  }
}

void Referee::restored(const scheduler::event::Restored& fact) {
  size_t index = 0;
  for (const ObjectId object : graph_.objects_of(fact.instance)) {
    contents_[object.index()] = fact.outputs[index].content;
    durable(object, fact.durable[index++]);
  }
}

bool Referee::available(ObjectId object) const {
  return durable_[object.index()] || !replicas_[object.index()].empty() ||
         graph_.output(object).kind == scheduler::OutputKind::kValue;
}

bool Referee::all_available(InstanceId instance) const {
  for (const ObjectId object : graph_.objects_of(instance)) {
    if (!available(object)) return false;
  }
  return true;
}

// Somebody who has not had all of its attempts reads an output that is gone, over any number of
// steps, or a result of it is gone.
bool Referee::needed(InstanceId instance, std::set<InstanceId>& seen) const {
  if (!seen.insert(instance).second) return false;
  for (const ObjectId object : graph_.objects_of(instance)) {
    if (available(object)) continue;
    if (graph_.output(object).result) return true;
    for (const GroupId group : graph_.object_groups(object)) {
      for (const InstanceId consumer : graph_.group_consumers(group)) {
        if (!progress_[consumer.index()].done || needed(consumer, seen)) return true;
      }
    }
  }
  return false;
}

void Referee::check_inputs(const scheduler::decision::StartAttempt& start) {
  for (const GroupId group : graph_.inputs(start.instance)) {
    for (const ObjectId object : graph_.group_objects(group)) {
      if (!progress_[graph_.producer(object).index()].sealed) {
        problem(text(start.instance) + " starts before its input " + text(object) + " is sealed");
      }
    }
  }
  for (const GateId gate : graph_.gates_before(start.instance)) {
    for (const InstanceId predecessor : graph_.gate_predecessors(gate)) {
      if (!progress_[predecessor.index()].sealed) {
        problem(text(start.instance) + " starts before " + text(predecessor) + " was done");
      }
    }
  }
}

void Referee::count_limits(InstanceId instance, int64_t sign) {
  const auto& request = graph_.requests()[graph_.task(graph_.task_of(instance)).request];
  for (const LimitUse& use : request.limits) {
    Amount& used = limits_used_[use.limit.index()];
    used += sign * use.amount;
    if (used > graph_.limits()[use.limit.index()].total) {
      problem("limit '" + graph_.limits()[use.limit.index()].name + "' is exceeded by " +
              text(instance));
    }
  }
}

void Referee::attempt_started(const scheduler::decision::StartAttempt& start) {
  Progress& progress = progress_[start.instance.index()];
  if (start.attempt <= last_attempt_) problem(text(start.attempt) + " is not a new number");
  last_attempt_ = start.attempt;
  if (lost_.count(start.worker) > 0 || machines_.count(start.worker) == 0) {
    problem(text(start.attempt) + " is given to " + text(start.worker) + ", which is not there");
  }
  if (!selected_.empty() && !selected_[start.instance.index()]) {
    problem(text(start.instance) + " is started although it is not selected");
  }
  if (progress.open_attempt.valid()) {
    problem(text(start.instance) + " is started as " + text(start.attempt) + " while " +
            text(progress.open_attempt) + " is open");
  }
  if (progress.done && all_available(start.instance)) {
    problem(text(start.instance) + " is started again although it is done and nothing was lost");
  } else if (std::set<InstanceId> seen; progress.done && !needed(start.instance, seen)) {
    problem(text(start.instance) + " is started again although nobody needs what was lost of it");
  }
  progress.done = false;
  check_inputs(start);
  progress.open_attempt = start.attempt;
  open_[start.attempt] = {start.worker, start.instance, start.inputs};
  count_limits(start.instance, 1);
}

void Referee::attempt_over(AttemptId attempt) {
  const auto entry = open_.find(attempt);
  if (entry == open_.end()) return;
  const InstanceId instance = entry->second.instance;
  progress_[instance.index()].open_attempt = {};
  count_limits(instance, -1);
  open_.erase(entry);
}

void Referee::attempt_finished(WorkerId worker, AttemptId attempt) {
  const auto entry = open_.find(attempt);
  if (entry == open_.end()) return;
  for (const ObjectId object : graph_.objects_of(entry->second.instance)) {
    replica_added(worker, object);
  }
  attempt_over(attempt);
}

void Referee::attempt_returned(AttemptId attempt, ObjectId missing) {
  const auto entry = open_.find(attempt);
  if (entry == open_.end()) return;
  for (const scheduler::InputPlace& place : entry->second.inputs) {
    if (place.object != missing) continue;
    if (place.source.valid()) {
      replica_gone(place.source, missing);
    } else {
      durable(missing, false);
    }
  }
  attempt_over(attempt);
}

void Referee::instance_done(InstanceId instance, AttemptId attempt,
                            const std::vector<OutputReport>& outputs) {
  Progress& progress = progress_[instance.index()];
  if (progress.done) problem(text(instance) + " is done twice although nothing was lost");
  for (size_t i = 0; i < outputs.size(); ++i) {
    Hash128& content = contents_[graph_.object(instance, i).index()];
    if (content.known() && content != outputs[i].content) {
      problem(text(instance) + " has another content than the first time");
    }
    content = outputs[i].content;
  }
  progress.sealed = true;
  progress.done = true;
  if (attempt.valid()) ++completions[instance.index()];
}

void Referee::replica_added(WorkerId worker, ObjectId object) {
  const bool value = graph_.output(object).kind == scheduler::OutputKind::kValue;
  if (!value && lost_.count(worker) == 0) replicas_[object.index()].insert(worker);
}

void Referee::replica_gone(WorkerId worker, ObjectId object) {
  replicas_[object.index()].erase(worker);
}

void Referee::durable(ObjectId object, bool is) { durable_[object.index()] = is; }

void Referee::save_asked(WorkerId worker, AttemptId save) {
  if (lost_.count(worker) == 0) saves_[save] = worker;
}

void Referee::save_answered(AttemptId save) { saves_.erase(save); }

Hash128 Referee::value(ObjectId object) const {
  const Progress& progress = progress_[graph_.producer(object).index()];
  return progress.sealed ? contents_[object.index()] : Hash128{};
}

// -- machines -------------------------------------------------------------------------------------

void Referee::launched(WorkerId worker, AttemptId attempt, const Resources& request,
                       const std::vector<int32_t>& cores) {
  Machine& machine = machines_[worker];
  if (cores.size() != static_cast<size_t>(request.cpus)) {
    problem(text(attempt) + " gets " + std::to_string(cores.size()) + " cores instead of " +
            std::to_string(request.cpus));
  }
  for (const int32_t core : cores) {
    const bool exists = core >= 0 && core < machine.resources.cpus;
    if (!exists || !machine.cores.insert(core).second) {
      problem("core " + std::to_string(core) + " of " + text(worker) +
              (exists ? " is given twice, to " : " does not exist, given to ") + text(attempt));
    }
  }
  machine.memory_bytes += request.memory_bytes;
  if (machine.memory_bytes > machine.resources.memory_bytes) {
    problem(text(attempt) + " exceeds the memory of " + text(worker));
  }
  machine.processes[attempt] = {request, cores};
  cores_ += request.cpus;
  running_max = std::max(running_max, ++running_);
  cores_max = std::max(cores_max, cores_);
  if (const auto open = open_.find(attempt); open != open_.end()) {
    ++launches[open->second.instance.index()];
  }
}

void Referee::process_gone(WorkerId worker, AttemptId attempt) {
  Machine& machine = machines_[worker];
  const auto entry = machine.processes.find(attempt);
  if (entry == machine.processes.end()) {
    problem(text(attempt) + " ends on " + text(worker) + " without having run");
    return;
  }
  for (const int32_t core : entry->second.cores) machine.cores.erase(core);
  machine.memory_bytes -= entry->second.request.memory_bytes;
  cores_ -= entry->second.request.cpus;
  --running_;
  machine.processes.erase(entry);
}

void Referee::machine_gone(WorkerId worker) {
  dead_.insert(worker);
  std::vector<AttemptId> gone;
  for (const auto& [attempt, process] : machines_[worker].processes) gone.push_back(attempt);
  for (const AttemptId attempt : gone) process_gone(worker, attempt);
}

void Referee::ended() {
  for (const auto& [attempt, open] : open_) {
    problem(text(attempt) + " of " + text(open.instance) + " on " + text(open.worker) +
            " is open at the end");
  }
  for (const auto& [save, worker] : saves_) {
    // Its object may have been found elsewhere, or made again, before it counts as lost.
    if (dead_.count(worker) > 0) continue;
    problem("save " + text(save) + " on " + text(worker) + " was not answered");
  }
  for (const auto& [worker, machine] : machines_) {
    if (lost_.count(worker) > 0) continue;  // it stood still for so long that nobody waits for it
    for (const auto& [attempt, process] : machine.processes) {
      problem(text(attempt) + " still runs on " + text(worker) + " at the end");
    }
  }
}

}  // namespace sluice::engine
