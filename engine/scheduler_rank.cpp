#include "engine/scheduler_rank.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/item_tables.h"
#include "engine/run_status.h"
#include "engine/turn_watch.h"
#include "io/spec_describe.h"
#include "io/spec_values.h"
#include "scheduler/overloaded.h"

namespace sluice::engine {

using scheduler::AttemptId;
using scheduler::Destination;
using scheduler::InstanceId;
using scheduler::Instant;
using scheduler::ObjectId;
using scheduler::Outcome;
using scheduler::OutputKind;
using scheduler::WorkerId;
namespace decision = scheduler::decision;
namespace event = scheduler::event;
namespace message = io::message;

namespace {

constexpr scheduler::Duration kLeaveMax = scheduler::seconds(5);
constexpr scheduler::Duration kStatusEvery = scheduler::seconds(1);
constexpr scheduler::Duration kStatusPerInstance =
    scheduler::microseconds(5);  // looking at each costs about a thousandth of it
constexpr scheduler::Duration kPingEvery = scheduler::seconds(1);
constexpr size_t kRecordsPendingMax =
    20'000;  // above it nothing new is started until the disk has caught up

// What follows the attempt: what it had and what the next one gets, where these differ. `retries`:
// how often its task tries again after this cause.
std::string next_text(const decision::AttemptEnded& ended, int retries) {
  if (ended.elsewhere) return "; not charged, another worker tries it";
  const auto memory = [](const scheduler::Grant& grant) {
    return io::print_memory(grant.resources.memory_bytes) + " memory";
  };
  if (ended.no_larger) return "; it had " + memory(ended.had) + ", no worker has more";
  if (ended.final) return retries > 0 ? "; no attempt is left" : "";
  std::string text;
  if (ended.next.resources != ended.had.resources) {
    text += "; it had " + memory(ended.had) + ", the next attempt gets " + memory(ended.next);
  }
  if (ended.next.timeout != ended.had.timeout) {
    text += "; the next attempt may take " + io::print_duration(ended.next.timeout);
  }
  if (ended.delay > scheduler::Duration{}) {
    text += "; tried again in " + io::print_duration(ended.delay);
  }
  return text;
}

}  // namespace

int exit_code_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kAllDone:
      return 0;
    case Outcome::kFailed:
      return 1;
    case Outcome::kDisk:
      return 3;
    case Outcome::kStopped:
    case Outcome::kStuck:
      return 4;
  }
  return 70;
}

const char* outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kAllDone:
      return "done";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kDisk:
      return "disk";
    case Outcome::kStopped:
      return "stopped";
    case Outcome::kStuck:
      return "stuck";
  }
  return "unknown";
}

SchedulerRank::SchedulerRank(SchedulerOptions options, const io::Pipeline& pipeline,
                             io::Transport& transport, RecordKeeper& keeper, Report& report)
    : options_(std::move(options)),
      pipeline_(pipeline),
      transport_(transport),
      keeper_(keeper),
      report_(report),
      core_(pipeline.graph, options_.core),
      key_parts_(pipeline, [this](ObjectId object) { return core_.content(object); }) {}

void SchedulerRank::begin(Instant now, const std::vector<scheduler::Event>& opening,
                          std::map<ObjectId, std::string> durable_paths,
                          std::set<InstanceId> overtaken) {
  durable_paths_ = std::move(durable_paths);
  overtaken_ = std::move(overtaken);
  for (const scheduler::Event& given : opening) {
    if (const auto* fact = std::get_if<event::Restored>(&given)) {
      for (size_t i = 0; i < fact->outputs.size(); ++i) {
        const ObjectId object = pipeline_.graph.object(fact->instance, i);
        if (is_value(object)) values_[object] = fact->outputs[i].value;
        known_[object] = fact->outputs[i];
      }
    }
    apply(now, given);
  }
  begun_ = true;
  apply(now, event::Begin{});
}

// -- events
// ---------------------------------------------------------------------------------------------------------

void SchedulerRank::apply(Instant now, const scheduler::Event& happened) {
  if (records_failed_) return;  // nothing that follows would last
  keeper_.trace(io::TraceWriter::event_block(now, happened));
  std::vector<scheduler::Decision> decisions;
  core_.apply(now, happened, decisions);
  unscheduled_ = true;
  carry_out(now, decisions);
  if (core_.waits_for_sync()) ask_for_sync();
}

void SchedulerRank::ask_for_sync() {
  if (sync_asked_) return;
  sync_asked_ = true;
  keeper_.after_sync([this, decisions = core_.decision_count()] {
    sync_asked_ = false;
    post_event(event::RecordsSynced{decisions});
  });
}

void SchedulerRank::schedule(Instant now) {
  if (!begun_ || !unscheduled_ || ended_ || keeper_.pending() > kRecordsPendingMax) return;
  unscheduled_ = false;
  std::vector<scheduler::Decision> decisions;
  core_.schedule(now, decisions);
  keeper_.trace(io::TraceWriter::schedule_block(now, core_.digest()));
  carry_out(now, decisions);
  if (!impossible_checked_ && workers_.size() >= options_.workers_expected) check_impossible();
}

void SchedulerRank::post_event(scheduler::Event happened) {
  posted_.push_back(std::move(happened));
}

void SchedulerRank::on_message(Instant now, WorkerId from, const io::Message& received) {
  std::visit(Overloaded{
                 [&](const message::Hello& m) { joined(now, from, m); },
                 [&](const message::Report& m) { apply(now, m.event); },
                 [&](const message::Log& m) {
                   const char* level = m.level == 0 ? "info" : m.level == 1 ? "warn" : "error";
                   report_.line(level, workers_[from].hello.host + ": " + m.text);
                 },
                 [&](const message::Left&) { workers_[from].left = true; },
                 [](const auto&) {},  // what only workers receive
             },
             received);
}

void SchedulerRank::joined(Instant now, WorkerId worker, const message::Hello& hello) {
  if (std::find(lost_seen_.begin(), lost_seen_.end(), worker.value) != lost_seen_.end()) {
    send(worker, message::Leave{});  // its end was seen before its first word was read
    return;
  }
  const auto node =
      nodes_.try_emplace(hello.node_key, scheduler::NodeId(nodes_.size())).first->second;
  message::Welcome welcome{options_.run_uuid, options_.directory.path, options_.core.epoch, {}};
  const message::Peer self{worker, hello.node_key, hello.store_path};
  for (const auto& [peer, facts] : workers_) {
    welcome.peers.push_back({peer, facts.hello.node_key, facts.hello.store_path});
    if (!facts.lost) send(peer, self);
  }
  workers_[worker].hello = hello;
  send(worker, welcome);
  keeper_.append(io::record::Worker{worker.value, "joined", hello.host, hello.resources,
                                    Clock::unix_time_ms()});
  if (ended_) {
    send(worker, message::Leave{});
    return;
  }
  apply(now, event::WorkerJoined{worker, node, hello.resources});
  if (workers_.size() == options_.workers_expected) {
    int64_t cores = 0;
    for (const auto& [id, facts] : workers_) cores += facts.hello.resources.cpus;
    report_.workers(workers_.size(), nodes_.size(), cores);
  }
}

void SchedulerRank::on_mail(Instant now, const Mail& mail) {
  if (mail.stop_requested) request_stop(now, "'sluice stop'");
  for (const uint32_t rank : mail.lost_ranks) {
    if (std::find(lost_seen_.begin(), lost_seen_.end(), rank) != lost_seen_.end()) continue;
    lost_seen_.push_back(rank);
    const WorkerId worker{rank};
    if (!workers_[worker].left && !ended_ && rank < transport_.size())
      apply(now, event::WorkerLost{worker});
    workers_[worker].left = true;  // it is not waited for at the end
  }
}

void SchedulerRank::request_stop(Instant now, const std::string& why) {
  if (stop_requested_ || ended_) return;
  stop_requested_ = true;
  report_.line("info", "stopping because of " + why +
                           ": nothing new starts, what runs is stopped, what is needed is saved");
  apply(now, event::StopRequested{});
}

void SchedulerRank::records_failed(Instant now, const Error& error) {
  if (records_failed_) return;
  records_failed_ = true;
  report_.line(
      "error",
      "the journal cannot be written: " + error.message +
          "; the run ends here, everything recorded so far is kept: make room, then run again");
  exit_code_ = 3;
  ended_ = closed_ = true;
  leave_deadline_ = now + kLeaveMax;
  send_all(message::Leave{});
}

void SchedulerRank::check_impossible() {
  impossible_checked_ = true;
  std::map<std::string, size_t> by_task;
  for (const InstanceId instance : core_.impossible()) {
    ++by_task[pipeline_.graph.task(pipeline_.graph.task_of(instance)).name];
  }
  for (const auto& [task, count] : by_task) {
    const auto spec = std::find_if(pipeline_.graph.tasks().begin(), pipeline_.graph.tasks().end(),
                                   [&name = task](const auto& one) { return one.name == name; });
    const scheduler::Resources need = pipeline_.graph.requests()[spec->request].resources;
    scheduler::Resources most;
    for (const auto& [id, facts] : workers_) {
      most.cpus = std::max(most.cpus, facts.hello.resources.cpus);
      most.memory_bytes = std::max(most.memory_bytes, facts.hello.resources.memory_bytes);
    }
    std::ostringstream text;
    text << "task '" << task << "' (" << count << (count == 1 ? " instance" : " instances")
         << ") asks for " << need.cpus << (need.cpus == 1 ? " cpu" : " cpus");
    if (need.memory_bytes > 0) text << " and " << need.memory_bytes / (1 << 20) << " MiB";
    text << "; no worker has that: the largest has " << most.cpus
         << (most.cpus == 1 ? " cpu" : " cpus") << ", and " << most.memory_bytes / (1 << 20)
         << " MiB is the most memory of one; lower the request or run on larger nodes; other work "
            "goes on";
    report_.line("error", text.str());
  }
}

// -- decisions
// ------------------------------------------------------------------------------------------------------

void SchedulerRank::carry_out(Instant now, const std::vector<scheduler::Decision>& decisions) {
  for (const scheduler::Decision& one : decisions) carry_out(now, one);
}

void SchedulerRank::carry_out(Instant now, const scheduler::Decision& decided) {
  std::visit(Overloaded{
                 [&](const decision::StartAttempt& d) { start_attempt(d); },
                 [&](const decision::TakeBack& d) { send(d.worker, message::TakeBack{d.attempt}); },
                 [&](const decision::StopAttempt& d) { send(d.worker, message::Stop{d.attempt}); },
                 [&](const decision::SaveObject& d) { save_object(d); },
                 [&](const decision::DropObject& d) { send(d.worker, message::Drop{d.object}); },
                 [&](const decision::CommitObject& d) { commit_object(d); },
                 [&](const decision::RemoveSaved& d) {
                   const InstanceId producer = pipeline_.graph.producer(d.object);
                   keeper_.append(io::record::Removed{
                       pipeline_.graph.task(pipeline_.graph.task_of(producer)).name,
                       pipeline_.item(producer), pipeline_.graph.output(d.object).name});
                   keeper_.remove(final_path(d.object, Destination::kObjects));
                   durable_paths_.erase(d.object);
                 },
                 [&](const decision::InstanceDone& d) { instance_done(d); },
                 [&](const decision::AttemptEnded& d) { attempt_ended(d); },
                 [&](const decision::InstanceSkipped& d) { instance_skipped(d); },
                 [&](const decision::WorkerChanged& d) { worker_changed(d); },
                 [&](const decision::NotReproducible& d) { not_reproducible(d); },
                 [&](const decision::StopBegan& d) { stop_began(d); },
                 [&](const decision::RunEnded& d) { run_ended(now, d.outcome); },
             },
             decided);
}

void SchedulerRank::start_attempt(const decision::StartAttempt& start) {
  const auto& task = pipeline_.graph.task(pipeline_.graph.task_of(start.instance));
  auto spec = pipeline_.render(
      start.instance, [this](ObjectId object) -> const std::string& { return values_[object]; });
  if (!spec) {
    event::AttemptFailed failed;
    failed.worker = start.worker;
    failed.attempt = start.attempt;
    failed.cause = scheduler::Cause::kSetup;
    failed.detail = spec.error().message;
    post_event(failed);
    return;
  }
  message::Start given;
  given.decision = start;
  given.grace = task.grace;
  given.spec = std::move(*spec);
  for (const scheduler::InputPlace& place : start.inputs) {
    given.durable_paths.push_back(place.source.valid() ? std::string()
                                                       : durable_paths_[place.object]);
  }
  send(start.worker, given);
}

std::string SchedulerRank::temporary_path(AttemptId save, Destination destination) const {
  const char* folder = destination == Destination::kResults ? "results/.tmp/" : "objects/.tmp/";
  return folder + std::to_string(save.value);
}

std::string SchedulerRank::final_path(ObjectId object, Destination destination) const {
  return destination == Destination::kResults ? pipeline_.result_path(object)
                                              : pipeline_.saved_path(object);
}

void SchedulerRank::save_object(const decision::SaveObject& save) {
  send(save.worker,
       message::Save{save.object, save.save, temporary_path(save.save, save.destination)});
}

void SchedulerRank::commit_object(const decision::CommitObject& commit) {
  const InstanceId producer = pipeline_.graph.producer(commit.object);
  io::record::Durable durable;
  durable.task = pipeline_.graph.task(pipeline_.graph.task_of(producer)).name;
  durable.item = pipeline_.item(producer);
  durable.output = pipeline_.graph.output(commit.object).name;
  durable.path = final_path(commit.object, commit.destination);
  durable.temporary = temporary_path(commit.save, commit.destination);
  durable.content = known_[commit.object].content;
  durable.bytes = known_[commit.object].bytes;
  durable_paths_[commit.object] = durable.path;
  keeper_.commit(durable, [this, object = commit.object](const Status& status) {
    if (status) {
      post_event(event::ObjectCommitted{object});
    } else {
      post_event(event::ObjectCommitFailed{object, status.error().message});
    }
  });
}

void SchedulerRank::instance_done(const decision::InstanceDone& done) {
  const auto& task = pipeline_.graph.task(pipeline_.graph.task_of(done.instance));
  io::record::DoneRecord record;
  for (size_t i = 0; i < done.outputs.size(); ++i) {
    const ObjectId object = pipeline_.graph.object(done.instance, i);
    const scheduler::OutputReport& output = done.outputs[i];
    known_[object] = output;
    if (is_value(object)) values_[object] = output.value;
    record.outputs.push_back(
        {task.outputs[i].name, output.content, output.bytes, is_value(object), output.value});
  }
  if (!done.attempt.valid()) {  // restored: the journal has it
    if (overtaken_.erase(done.instance) > 0)
      keeper_.append(io::record::Restored{task.name, pipeline_.item(done.instance)});
    publish_values(done.instance);
    return;
  }
  record.task = task.name;
  record.item = pipeline_.item(done.instance);
  record.attempt = done.attempt;
  record.key = done.key;
  record.static_key = pipeline_.graph.static_key(done.instance);
  record.parts = key_parts_.digits(done.instance);
  record.usage = done.usage;
  record.worker = done.worker.value;
  record.unix_time_ms = Clock::unix_time_ms();
  append_done(done.instance, std::move(record));
  publish_values(done.instance);
  report_.attempt_done(done.usage.wall, pipeline_.graph.requests()[task.request].resources.cpus);
}

void SchedulerRank::append_done(InstanceId instance, io::record::DoneRecord record) {
  RecordKeeper::Sources sources;
  for (const io::TaskInput& input :
       pipeline_.tasks[pipeline_.graph.task_of(instance).index()].inputs) {
    if (input.join != io::JoinKind::kSource) continue;
    const auto known = options_.sources.find(io::source_path(pipeline_, instance, input.name));
    if (known != options_.sources.end()) sources.emplace_back(*known);
  }
  if (sources.empty()) {
    keeper_.append(std::move(record));
    return;
  }
  keeper_.append_done(std::move(record), std::move(sources), [this](const std::string& file) {
    if (!changed_sources_.insert(file).second) return;
    report_.line("warn", "'" + file +
                             "' changed while the run went: what reads it runs again when the same "
                             "command is given again");
  });
}

void SchedulerRank::publish_values(InstanceId instance) {
  const auto& task = pipeline_.graph.task(pipeline_.graph.task_of(instance));
  for (size_t i = 0; i < task.outputs.size(); ++i) {
    const ObjectId object = pipeline_.graph.object(instance, i);
    if (!is_value(object) || !task.outputs[i].result) continue;
    publish_text(pipeline_.result_path(object), values_[object] + "\n");
  }
}

// What the journal has, as a file for people: that it could not be written is told, and no more.
void SchedulerRank::publish_text(const std::string& path, std::string text) {
  keeper_.publish_text(path, std::move(text), [this](const Status& published) {
    if (!published) report_.line("warn", published.error().message);
  });
}

void SchedulerRank::attempt_ended(const decision::AttemptEnded& ended) {
  const auto& task = pipeline_.graph.task(pipeline_.graph.task_of(ended.instance));
  const event::AttemptFailed& failed = ended.report;
  const auto& codes = task.retry.exit_codes;
  const bool is_listed = failed.cause != scheduler::Cause::kExit || codes.empty() ||
                         std::find(codes.begin(), codes.end(), failed.exit_code) != codes.end();
  const int retries = is_listed ? task.retry.max[static_cast<size_t>(failed.cause)] : 0;
  const std::string detail = failed.detail + next_text(ended, retries);
  io::record::Attempt record;
  record.task = task.name;
  record.item = pipeline_.item(ended.instance);
  record.attempt = failed.attempt;
  record.cause = scheduler::cause_name(failed.cause);
  record.exit_code = failed.exit_code;
  record.signal = failed.signal;
  record.detail = detail;
  record.stderr_tail = failed.stderr_tail;
  record.final = ended.final;
  record.worker = failed.worker.value;
  record.usage = failed.usage;
  record.unix_time_ms = Clock::unix_time_ms();
  keeper_.append(std::move(record));
  // "exit 3" says it all.
  const bool is_plain = detail == "exited with " + std::to_string(failed.exit_code);
  report_.failed({pipeline_.label(ended.instance), task.name, failed.attempt,
                  cause_text(scheduler::cause_name(failed.cause), failed.exit_code, failed.signal),
                  workers_[failed.worker].hello.host, is_plain ? "" : detail, failed.stderr_tail,
                  ended.final});
}

void SchedulerRank::instance_skipped(const decision::InstanceSkipped& skipped) {
  const auto& task = pipeline_.graph.task(pipeline_.graph.task_of(skipped.instance));
  const std::string because = pipeline_.label(skipped.because);
  const scheduler::TaskId held = pipeline_.graph.task_of(skipped.instance);
  if (held == pipeline_.graph.task_of(skipped.because) && held_.insert(held).second) {
    report_.line("warn", "task '" + task.name + "' is held: " +
                             std::to_string(options_.core.failures_without_success_max) +
                             " instances failed and none succeeded, so the others are skipped");
  }
  keeper_.append(io::record::Skipped{task.name, pipeline_.item(skipped.instance), because});
  report_.skipped(pipeline_.label(skipped.instance), because);
}

void SchedulerRank::worker_changed(const decision::WorkerChanged& changed) {
  WorkerFacts& facts = workers_[changed.worker];
  const std::string who =
      "worker " + std::to_string(changed.worker.value) + " on " + facts.hello.host;
  const char* state = "alive";
  if (changed.state == decision::WorkerState::kLost) {
    state = "lost";
    facts.lost = facts.left = true;
    // Silent, it may be stopped or cut off and come back: it finds that it is to leave. To one that
    // is known to be dead nothing is sent.
    const bool is_dead =
        std::find(lost_seen_.begin(), lost_seen_.end(), changed.worker.value) != lost_seen_.end();
    if (!is_dead) send(changed.worker, message::Leave{});
    transport_.forget(changed.worker);
    for (const auto& [peer, other] : workers_) {
      if (!other.lost) send(peer, message::PeerLost{changed.worker});
    }
    report_.line("warn", who + " is lost; its attempts run again elsewhere");
  } else if (changed.state == decision::WorkerState::kSetAside) {
    state = "set aside";
    report_.line("warn", who +
                             " is set aside: its last attempts failed within a second each, one "
                             "after another, and succeed elsewhere; it gets only what no other "
                             "worker can run: look at that node's disks, mounts and modules");
  } else if (changed.state == decision::WorkerState::kSilent) {
    state = "silent";
    report_.line("warn", who + " is silent; it gets no new work until it answers");
  } else {
    report_.line("info", who + " answers again");
  }
  keeper_.append(io::record::Worker{changed.worker.value, state, facts.hello.host,
                                    facts.hello.resources, Clock::unix_time_ms()});
}

void SchedulerRank::stop_began(const decision::StopBegan& began) {
  const std::string label = pipeline_.label(began.because);
  if (began.reason == decision::StopReason::kFailure) {
    report_.line("warn",
                 "stopping because '" + label +
                     "' failed, whose task has 'on_failure: stop': nothing new starts, what "
                     "runs is stopped");
  } else {
    report_.line("warn", "enough instances failed, the last one '" + label +
                             "' (--max-failures): nothing new starts, what runs is finished");
  }
}

// Once per output of a task: what holds for one instance holds for most.
void SchedulerRank::not_reproducible(const decision::NotReproducible& found) {
  const InstanceId producer = pipeline_.graph.producer(found.object);
  const scheduler::TaskId task = pipeline_.graph.task_of(producer);
  const scheduler::OutputSpec& output = pipeline_.graph.output(found.object);
  if (!not_reproducible_.emplace(task, output.name).second) return;
  std::string text = pipeline_.label(producer) + " is not reproducible: output '" + output.name +
                     "' was computed again and has other bytes; what was made from the first "
                     "stays valid; other instances of '" +
                     pipeline_.graph.task(task).name + "' are not named again";
  if (output.kind == scheduler::OutputKind::kH5)
    text += " (HDF5 notes the time in each dataset unless H5Pset_obj_track_times switches it off)";
  report_.line("warn", text);
}

// What nobody consumes first: it is what the run was for; then what was kept on the way.
std::vector<std::string> SchedulerRank::result_paths() const {
  std::map<std::pair<bool, ObjectId>, std::string> sorted;
  const auto add = [&](ObjectId object, const std::string& path) {
    sorted.try_emplace({!pipeline_.graph.object_groups(object).empty(), object}, path);
  };
  for (const auto& [object, path] : durable_paths_) {
    if (pipeline_.graph.output(object).result) add(object, path);
  }
  for (const auto& [object, value] : values_) {
    if (pipeline_.graph.output(object).result) add(object, pipeline_.result_path(object));
  }
  std::vector<std::string> paths;
  paths.reserve(sorted.size());
  for (const auto& [key, path] : sorted) paths.push_back(path);
  return paths;
}

void SchedulerRank::run_ended(Instant now, Outcome outcome) {
  ended_ = true;
  outcome_ = outcome;
  exit_code_ = exit_code_of(outcome);
  leave_deadline_ = now + kLeaveMax;
  send_all(message::Leave{});
  const auto is_done = [this](InstanceId instance) {
    return core_.state(instance) == scheduler::InstanceState::kDone;
  };
  const auto value = [this](ObjectId object) -> const std::string& { return values_[object]; };
  for (ItemTable& table : item_tables(pipeline_, is_done, value))
    publish_text(table.path, std::move(table.text));
  write_status();
  keeper_.close({outcome_name(outcome), exit_code_, Clock::unix_time_ms()},
                [this, now](const Status& status) {
                  closed_ = true;
                  if (!status) records_failed(now, status.error());
                });
  report_.summary(now, core_.counts(), outcome, exit_code_, result_paths());
}

// -- time
// -----------------------------------------------------------------------------------------------------------

void SchedulerRank::tick(Instant now) {
  std::vector<scheduler::Event> posted;
  posted.swap(posted_);
  for (const scheduler::Event& one : posted) apply(now, one);
  absence_.turn(now);
  if (begun_ && !ended_ && now >= next_tick()) apply(now, event::Tick{});
  if (now >= next_ping_) {
    next_ping_ = now + kPingEvery;
    send_all(message::Ping{});
  }
  if (ended_) return;
  int64_t cores = 0;
  for (const auto& [id, facts] : workers_) cores += facts.lost ? 0 : facts.hello.resources.cpus;
  report_.progress(now, core_.counts(), cores);
  if (now >= next_status_) {
    const auto instances = static_cast<int64_t>(pipeline_.graph.instance_count());
    next_status_ = now + kStatusEvery + kStatusPerInstance * instances;
    write_status();
  }
}

// The core counts a worker as silent by what it heard, and it heard nothing while we were stopped.
Instant SchedulerRank::next_tick() const {
  return std::max(core_.next_deadline(), absence_.grace_end());
}

Instant SchedulerRank::next_deadline() const {
  if (!posted_.empty()) return {0};
  if (ended_) return leave_deadline_;
  if (unscheduled_ && keeper_.pending() <= kRecordsPendingMax) return {0};
  return std::min({next_tick(), next_status_, next_ping_});
}

bool SchedulerRank::finished(Instant now) const {
  if (!ended_ || !closed_) return false;
  if (now >= leave_deadline_) return true;
  return std::all_of(workers_.begin(), workers_.end(), [](const auto& w) { return w.second.left; });
}

void SchedulerRank::write_status() {
  const auto host_of = [this](WorkerId worker) {
    const auto found = workers_.find(worker);
    return found == workers_.end() ? std::string() : found->second.hello.host;
  };
  const RunStatus status{options_.run_uuid,
                         options_.core.epoch,
                         ended_ ? outcome_name(outcome_) : "running",
                         workers_.size(),
                         host_of,
                         options_.watch};
  keeper_.write_status([json = status_json(status, pipeline_, core_)](uint64_t bytes) mutable {
    json["journal_bytes"] = bytes;
    return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  });
}

bool SchedulerRank::is_value(ObjectId object) const {
  return pipeline_.graph.output(object).kind == OutputKind::kValue;
}

void SchedulerRank::send(WorkerId to, const io::Message& given) {
  transport_.send(to, io::Channel::kControl, io::encode(given));
}

void SchedulerRank::send_all(const io::Message& given) {
  for (const auto& [worker, facts] : workers_) {
    if (!facts.lost && !facts.left) send(worker, given);
  }
}

}  // namespace sluice::engine
