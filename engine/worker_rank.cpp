#include "engine/worker_rank.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <utility>

#include "engine/environment.h"
#include "engine/memory_kills.h"
#include "io/fault.h"
#include "scheduler/overloaded.h"

namespace sluice::engine {

using scheduler::AttemptId;
using scheduler::Cause;
using scheduler::Instant;
using scheduler::ObjectId;
using scheduler::OutputKind;
using scheduler::WorkerId;
namespace effect = scheduler::effect;
namespace input = scheduler::input;
namespace message = io::message;

namespace {

constexpr int64_t kFailedDirectoryBytesMax = 64LL << 20U;
constexpr scheduler::Duration kMemoryKillsAge = scheduler::seconds(1);

bool disk_is_full(const Error& error) { return error.code == ENOSPC || error.code == EDQUOT; }

scheduler::AgentOptions agent_options(const WorkerOptions& options, WorkerId self) {
  scheduler::AgentOptions agent;
  agent.worker = self;
  agent.resources = {static_cast<int32_t>(options.cores.size()), options.memory_bytes};
  return agent;
}

constexpr size_t kShownLineBytesMax = 120;

std::string nth_line(const std::string& text, size_t number) {
  size_t begin = 0;
  for (; number > 1 && begin < text.size(); --number) {
    begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
  }
  const size_t first = std::min(text.find_first_not_of(" \t", begin), text.size());
  std::string line = text.substr(first, std::min(text.find('\n', first), text.size()) - first);
  if (line.size() <= kShownLineBytesMax) return line;
  size_t end = kShownLineBytesMax;
  while (end > 0 && (static_cast<unsigned char>(line[end]) & 0xC0U) == 0x80U) --end;  // UTF-8
  return line.substr(0, end) + "...";
}

// " at line 2 of its script: 'cp a b'", when bash could tell; and what the message means.
std::string failure_note(const io::AttemptSpec& spec, const io::StagedAttempt& staged,
                         const input::Exited& exited) {
  std::string note;
  if (exited.in_setup && exited.exit_code == 0 && exited.signal == 0) {
    note = ", so its end was not reached and the command not started";
  }
  size_t line = 0;
  if (!exited.in_setup && !staged.failed_line_path.empty() && exited.signal == 0 &&
      std::ifstream(staged.failed_line_path) >> line) {
    note = " at line " + std::to_string(line) + " of its script: '" + nth_line(spec.script, line) +
           "'";
  }
  if (exited.stderr_tail.find("module: command not found") != std::string::npos) {
    note +=
        "; 'module' is a function of login shells: begin 'setup:' with the line that defines it "
        "on this machine, such as 'source /etc/profile.d/modules.sh' or 'source "
        "/etc/profile.d/lmod.sh'";
  }
  return note;
}

}  // namespace

WorkerRank::WorkerRank(WorkerOptions options, io::Store store, io::Transport& transport,
                       LauncherClient& launcher, io::CheckerClient& checker, IoThread& io)
    : options_(std::move(options)),
      store_(std::make_shared<io::Store>(std::move(store))),
      transport_(transport),
      launcher_(launcher),
      checker_(checker),
      io_(io),
      agent_(agent_options(options_, transport.self())),
      fetch_(store_, transport, io,
             [this](ObjectId object, const std::string& error) {
               if (object.value >= kOwnObjects) {
                 parts_.on_fetched(object, error);
               } else if (error.empty()) {
                 feed_later(input::Fetched{object});
               } else {
                 feed_later(input::FetchFailed{object, error});
               }
             }),
      parts_(store_, transport, checker, fetch_, io, [this](const WorkerParts::Outcome& outcome) {
        if (outcome.error.empty()) {
          feed_later(input::PartFetched{outcome.attempt, outcome.object});
        } else {
          feed_later(input::PartFailed{outcome.attempt, outcome.object, outcome.source_lost});
        }
      }) {}

void WorkerRank::start(Instant now) {
  now_ = now;
  heard_scheduler_ = now;
  memory_kills_ = memory_kills();
  memory_kills_read_ = now;
  message::Hello hello;
  hello.host = options_.host;
  hello.node_key = options_.node_key;
  hello.store_path = options_.place.memory;
  hello.resources = {static_cast<int32_t>(options_.cores.size()), options_.memory_bytes};
  send(kSchedulerRank, hello);
}

void WorkerRank::send(WorkerId to, const io::Message& message) {
  transport_.send(to, io::Channel::kControl, io::encode(message));
}

void WorkerRank::report(scheduler::Event event) {
  send(kSchedulerRank, message::Report{std::move(event)});
}

void WorkerRank::complain(uint8_t level, std::string text) {
  if (complaints_[text]++ == 0) send(kSchedulerRank, message::Log{level, std::move(text)});
}

Instant WorkerRank::leave_at() const {
  return std::max(heard_scheduler_ + options_.scheduler_silent_max, absence_.grace_end());
}

bool WorkerRank::scheduler_lost(Instant now) const { return now >= leave_at(); }

void WorkerRank::on_message(Instant now, WorkerId from, io::Message received) {
  now_ = now;
  if (from == kSchedulerRank) heard_scheduler_ = now;
  std::visit(
      Overloaded{
          [&](message::Welcome& m) { welcome(m); }, [&](message::Peer& m) { peers_[m.worker] = m; },
          [&](message::PeerLost& m) {
            peers_.erase(m.worker);
            fetch_.peer_lost(m.worker);
            parts_.peer_lost(m.worker);
            transport_.forget(m.worker);
          },
          [&](message::Start& m) { on_start(now, std::move(m)); },
          [&](message::TakeBack& m) { feed(now, input::TakeBack{m.attempt}); },
          [&](message::Stop& m) { feed(now, input::Stop{m.attempt}); },
          [&](message::Save& m) {
            save_paths_[m.save] = m.temporary_path;
            feed(now, input::Save{m.object, m.save, {}});
          },
          [&](message::Drop& m) {
            durable_.erase(m.object);
            feed(now, input::Drop{m.object});
          },
          [&](message::Leave&) { feed(now, input::Leave{}); },
          [&](message::FetchRequest& m) { fetch_.on_request(from, m); },
          [&](message::FetchChunk& m) { fetch_.on_chunk(now, from, std::move(m)); },
          [&](message::PartRequest& m) { parts_.on_request(now, from, m); },
          [&](message::PartReady& m) { parts_.on_ready(now, from, m); },
          [&](message::PartDone& m) { parts_.on_done(from, m); },
          [](auto&) {},  // what only rank 0 receives
      },
      received);
}

void WorkerRank::welcome(const message::Welcome& welcome) {
  directory_.path = welcome.run_directory;
  for (const message::Peer& peer : welcome.peers) peers_[peer.worker] = peer;
  // The run directory may stall, and a worker that waits for it would seem to be dead.
  io_.post([this, logs = logs_, folder = directory_.logs(), epoch = welcome.epoch,
            self = transport_.self().value]() -> IoThread::Completion {
    auto made = io::LogPackWriter::create(folder, epoch, self);
    if (made) {
      logs->emplace(std::move(*made));
      return {};
    }
    return [this, self, error = made.error().message] {
      complain(2,
               "outputs of tasks on worker " + std::to_string(self) + " cannot be kept: " + error);
    };
  });
}

void WorkerRank::on_start(Instant now, message::Start start) {
  const AttemptId id = start.decision.attempt;
  input::Start given{start.decision,
                     start.decision.grant.resources,
                     start.decision.grant.timeout,
                     start.grace,
                     {},
                     {}};
  for (const io::AttemptOutput& output : start.spec.outputs) {
    given.outputs.push_back(output.kind);
    if (!given.first_object.valid()) given.first_object = output.object;
  }
  for (size_t i = 0; i < start.decision.inputs.size(); ++i) {
    const scheduler::InputPlace& place = start.decision.inputs[i];
    if (!place.source.valid()) durable_[place.object] = directory_.path / start.durable_paths[i];
  }
  if (has_views(start.spec)) given.partial = inputs_in_part(start);
  attempts_[id] = std::make_shared<Attempt>();
  attempts_[id]->start = std::move(start);
  feed(now, given);
}

void WorkerRank::feed_later(const scheduler::AgentInput& given) { feed(now_, given); }

void WorkerRank::feed(Instant now, const scheduler::AgentInput& given) {
  now_ = now;
  std::vector<scheduler::Effect> effects;
  agent_.apply(now, given, effects);
  for (const scheduler::Effect& one : effects) carry_out(now, one);
}

void WorkerRank::carry_out(Instant now, const scheduler::Effect& given) {
  std::visit(Overloaded{
                 [&](const effect::Fetch& e) { fetch(now, e); },
                 [&](const effect::FetchPart& e) {
                   parts_.start(now, e.attempt, attempts_.at(e.attempt)->start.spec, e.object,
                                e.source);
                 },
                 [&](const effect::Stage& e) { stage(e.attempt); },
                 [&](const effect::Launch& e) { launch(e); },
                 [&](const effect::Signal& e) {
                   launcher_.send(launch::Signal{e.attempt, e.kill});
                 },
                 [&](const effect::Check& e) { check(e.attempt); },
                 [&](const effect::Clean& e) { clean(e.attempt, e.failed); },
                 [&](const effect::SaveObject& e) { save(e); },
                 [&](const effect::RemoveObject& e) {
                   io_.post([store = store_, object = e.object]() -> IoThread::Completion {
                     SLUICE_FAULT_POINT("drop.before");
                     (void)store->remove(object);  // absent is fine: dropped twice
                     SLUICE_FAULT_POINT("drop.removed");
                     return {};
                   });
                 },
                 [&](const effect::Report& e) {
                   note_outcome(e.event);
                   report(e.event);
                   if (std::holds_alternative<scheduler::event::AttemptFinished>(e.event))
                     SLUICE_FAULT_POINT("seal.reported");
                   if (std::holds_alternative<scheduler::event::ObjectSaved>(e.event))
                     SLUICE_FAULT_POINT("publish.reported");
                 },
                 [&](const effect::Left&) {
                   send(kSchedulerRank, message::Left{});
                   SLUICE_FAULT_POINT("worker.left");
                   left_ = true;
                 },
             },
             given);
}

// The log index says how the attempt ended; the report comes before Clean.
void WorkerRank::note_outcome(const scheduler::Event& event) {
  if (const auto* failed = std::get_if<scheduler::event::AttemptFailed>(&event)) {
    const auto found = attempts_.find(failed->attempt);
    if (found != attempts_.end()) found->second->outcome = scheduler::cause_name(failed->cause);
  } else if (const auto* stopped = std::get_if<scheduler::event::AttemptStopped>(&event)) {
    const auto found = attempts_.find(stopped->attempt);
    if (found != attempts_.end()) found->second->outcome = "stopped";
  }
}

// -- inputs
// ---------------------------------------------------------------------------------------------------------

bool WorkerRank::on_this_node(WorkerId peer) const {
  const auto found = peers_.find(peer);
  return found != peers_.end() && found->second.node_key == options_.node_key;
}

// On one node an object is shared by a link, which costs less than any part of it.
std::vector<bool> WorkerRank::inputs_in_part(const message::Start& start) const {
  const std::set<ObjectId> whole = read_whole(start.spec);
  std::vector<bool> in_part;
  for (const scheduler::InputPlace& place : start.decision.inputs) {
    in_part.push_back(place.source.valid() && place.source != transport_.self() &&
                      !on_this_node(place.source) && whole.count(place.object) == 0);
  }
  return in_part;
}

void WorkerRank::fetch(Instant now, const effect::Fetch& wanted) {
  if (!wanted.source.valid()) {
    fetch_durable(wanted.object);
    return;
  }
  if (!on_this_node(wanted.source)) {
    fetch_.start(now, wanted.object, wanted.source);
    return;
  }
  io_.post([this, store = store_, object = wanted.object,
            folder = peers_.at(wanted.source).store_path]() -> IoThread::Completion {
    const Status linked = store->link_from(object, folder);
    SLUICE_FAULT_POINT("fetch.linked");
    if (linked) return [this, object] { feed_later(input::Fetched{object}); };
    return [this, object, error = linked.error().message] {
      feed_later(input::FetchFailed{object, error});
    };
  });
}

void WorkerRank::fetch_durable(ObjectId object) {
  io_.post([this, object, path = durable_[object]]() -> IoThread::Completion {
    if (access(path.c_str(), R_OK) == 0)
      return [this, object] { feed_later(input::Fetched{object}); };
    return [this, object, path] {
      feed_later(input::FetchFailed{object, "'" + path + "' cannot be read any more"});
    };
  });
}

// Paths that are known here; "" is in the store, which only the I/O thread may ask.
std::vector<std::string> WorkerRank::known_paths(const io::AttemptSpec& spec) const {
  std::vector<std::string> known;
  for (const io::InputSpec& in : spec.inputs) {
    for (const io::InputFile& file : in.files) {
      const auto in_place = durable_.find(file.object);
      if (!file.object.valid()) {
        known.push_back(file.source_path);
      } else {
        known.push_back(in_place == durable_.end() ? "" : in_place->second);
      }
    }
  }
  return known;
}

void WorkerRank::stage(AttemptId id) {
  io::AttemptSpec& spec = attempts_.at(id)->start.spec;
  parts_.use(id, spec);
  if (has_views(spec)) {
    make_views(id);
  } else {
    stage_files(id, known_paths(spec));
  }
}

void WorkerRank::stage_files(AttemptId id, std::vector<std::string> known) {
  io_.post([this, store = store_, id, attempt = attempts_.at(id),
            paths = std::move(known)]() mutable -> IoThread::Completion {
    const io::AttemptSpec& spec = attempt->start.spec;
    add_store_paths(*store, spec, paths);
    std::vector<ObjectId> lost = attempt->watch.begin(*store, spec, paths);
    if (!lost.empty()) return [this, lost = std::move(lost)] { lose(lost); };
    auto staged = std::make_shared<Expected<io::StagedAttempt>>(store->stage(id, spec, paths));
    SLUICE_FAULT_POINT("attempt.staged");
    return [this, id, attempt, staged] {
      if (*staged) {
        attempt->staged = std::move(**staged);
        feed_later(input::Staged{id});
      } else {
        const Error& error = staged->error();
        feed_later(input::StageFailed{id, disk_is_full(error) ? Cause::kDisk : Cause::kStaging,
                                      error.message});
      }
    };
  });
}

// The attempts that would read them are given back.
void WorkerRank::lose(const std::vector<ObjectId>& objects) {
  for (const ObjectId object : objects) feed_later(input::ObjectLost{object});
}

// -- processes
// ------------------------------------------------------------------------------------------------------

void WorkerRank::launch(const effect::Launch& given) {
  Attempt& attempt = *attempts_.at(given.attempt);
  attempt.memory_kills_before = memory_kills_lately();
  launch::Start start;
  start.attempt = given.attempt;
  start.argv = attempt.staged.argv;
  start.environment = thread_variables(attempt.start.spec.cpus);
  start.environment.insert(start.environment.end(), attempt.staged.environment.begin(),
                           attempt.staged.environment.end());
  start.keep_environment = attempt.start.spec.keep_environment;
  start.working_directory = attempt.staged.working_directory;
  start.stdin_path = attempt.staged.stdin_path;
  start.stdout_path = attempt.staged.stdout_path;
  start.stream_directory = attempt.staged.stream_directory;
  for (const int32_t core : given.cores) {
    const Core& own = options_.cores[static_cast<size_t>(core)];
    start.cpus.insert(start.cpus.end(), own.pus.begin(), own.pus.end());
  }
  launcher_.send(start);
}

// The kernel's counter, at most kMemoryKillsAge old: reading it takes longer than a launch. So a
// kill of that little time before an attempt counts as if it had been within it.
int64_t WorkerRank::memory_kills_lately() {
  if (memory_kills_read_ + kMemoryKillsAge <= now_) {
    memory_kills_ = memory_kills();
    memory_kills_read_ = now_;
  }
  return memory_kills_;
}

void WorkerRank::on_launcher(Instant now, const LaunchMessage& received) {
  now_ = now;
  const auto* exited = std::get_if<launch::Exited>(&received);
  if (exited == nullptr) return;
  const auto found = attempts_.find(exited->attempt);
  if (found == attempts_.end()) return;
  found->second->exited = *exited;
  if (!exited->start_error.empty()) {
    feed(now, input::StartFailed{exited->attempt, exited->start_error});
    return;
  }
  input::Exited given{exited->attempt, exited->exit_code, exited->signal, exited->usage,
                      exited->err.tail};
  if (exited->exit_code != 0 || exited->signal != 0) {
    memory_kills_ = memory_kills();
    memory_kills_read_ = now;
    given.memory_ran_out = memory_kills_ > found->second->memory_kills_before;
  }
  explain(*found->second, given);
  feed(now, given);
}

// How far a failed attempt came, from what its shell left in its directory.
void WorkerRank::explain(const Attempt& attempt, input::Exited& exited) {
  std::error_code ignored;
  const std::string& state = attempt.staged.setup_state_path;
  exited.in_setup = !state.empty() && std::filesystem::file_size(state, ignored) > 0 && !ignored;
  if (exited.exit_code == 0 && !exited.in_setup) return;
  exited.note = failure_note(attempt.start.spec, attempt.staged, exited);
}

// -- outputs
// --------------------------------------------------------------------------------------------------------

// Outputs are looked at one after another by sluice-h5 (the rank never opens them), then sealed
// together.
void WorkerRank::check(AttemptId id) {
  Attempt& attempt = *attempts_.at(id);
  const io::AttemptSpec& spec = attempt.start.spec;
  attempt.checks.resize(spec.outputs.size());
  attempt.checks_open = 0;
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    const std::string& path = attempt.staged.output_paths[i];
    if (access(path.c_str(), F_OK) != 0)
      continue;  // sealing says what is missing and what is there
    io::CheckRequest request;
    request.path = path;
    request.kind = spec.outputs[i].kind;
    request.value_type = spec.outputs[i].value_type;
    ++attempt.checks_open;
    check_ids_[checker_.request(now_, request)] = {id, i};
  }
  if (attempt.checks_open == 0) finish_check(id);
}

void WorkerRank::on_checked(Instant now, const io::CheckReply& reply) {
  now_ = now;
  const auto asked = check_ids_.find(reply.id);
  if (asked == check_ids_.end()) {
    if (!parts_.on_made(reply)) on_view(reply);
    return;
  }
  const auto [id, output] = asked->second;
  check_ids_.erase(asked);
  const auto found = attempts_.find(id);
  if (found == attempts_.end()) return;
  Attempt& attempt = *found->second;
  attempt.checks[output] = reply;
  if (!reply.ok && attempt.check_error.empty()) {
    attempt.check_error =
        "output '" + attempt.start.spec.outputs[output].name + "': " + reply.error;
  }
  if (--attempt.checks_open == 0) finish_check(id);
}

void WorkerRank::finish_check(AttemptId id) {
  Attempt& attempt = *attempts_.at(id);
  if (!attempt.check_error.empty()) {
    feed(now_, input::CheckFailed{id, Cause::kOutput, attempt.check_error});
    return;
  }
  if (attempt.start.spec.outputs.empty() && attempt.start.spec.inputs.empty()) {
    feed(now_, input::Checked{id, {}});
    return;
  }
  io_.post([this, store = store_, id, shared = attempts_.at(id)]() -> IoThread::Completion {
    auto reports = std::make_shared<std::vector<scheduler::OutputReport>>();
    const io::AttemptSpec& spec = shared->start.spec;
    // All or none: what a failed attempt leaves sealed would be taken for the object.
    const Status there = store->look_at_outputs(id, spec);
    const std::string problem = there ? shared->watch.changed(*store) : there.error().message;
    if (!problem.empty()) {
      return [this, id, problem] { feed_later(input::CheckFailed{id, Cause::kOutput, problem}); };
    }
    for (size_t i = 0; i < spec.outputs.size(); ++i) {
      const auto sealed = store->seal(id, spec, i);
      if (!sealed) {
        for (size_t j = 0; j < i; ++j) (void)store->remove(spec.outputs[j].object);
        const Error& error = sealed.error();
        return [this, id, error] {
          feed_later(input::CheckFailed{id, disk_is_full(error) ? Cause::kDisk : Cause::kOutput,
                                        error.message});
        };
      }
      SLUICE_FAULT_POINT("seal.output");
      const io::CheckReply& checked = shared->checks[i];
      store->remember_content(spec.outputs[i].object, checked.content);
      reports->push_back({checked.content, sealed->bytes, checked.value});
      if (spec.outputs[i].kind == OutputKind::kValue) (void)store->remove(spec.outputs[i].object);
    }
    SLUICE_FAULT_POINT("store.sealed");
    return [this, id, reports] { feed_later(input::Checked{id, *reports}); };
  });
}

void WorkerRank::save(const effect::SaveObject& given) {
  const std::filesystem::path to = directory_.path / save_paths_[given.save];
  save_paths_.erase(given.save);
  io_.post([this, store = store_, given, to]() -> IoThread::Completion {
    const Status saved = store->save(given.object, to);
    SLUICE_FAULT_POINT("publish.saved");
    if (saved) return [this, given] { feed_later(input::Saved{given.object, given.save}); };
    return [this, given, error = saved.error().message] {
      feed_later(input::SaveFailed{given.object, given.save, error});
    };
  });
}

// The attempt is over: its streams go into the pack, a failed one's directory is kept for people,
// the rest is removed.
void WorkerRank::clean(AttemptId id, bool failed) {
  auto node = attempts_.extract(id);
  if (node.empty()) return;
  const std::shared_ptr<Attempt> attempt = std::move(node.mapped());
  const bool ran = attempt->exited.attempt.valid();
  parts_.forget(id);
  io_.post([this, store = store_, logs = logs_, id, attempt, failed, ran,
            folder = directory_.failed(id)]() -> IoThread::Completion {
    Status logged = Done{};
    if (ran && *logs) logged = append_log(**logs, id, *attempt);
    for (const launch::Stream* stream : {&attempt->exited.out, &attempt->exited.err}) {
      if (!stream->path.empty()) (void)::unlink(stream->path.c_str());
    }
    if (failed && ran) (void)store->keep_failed(id, folder, kFailedDirectoryBytesMax);
    attempt->leftover = store->release(id);
    std::vector<ObjectId> lost = attempt->watch.lost(*store);
    if (logged && lost.empty()) return {};
    const std::string error = logged ? "" : logged.error().message;
    return [this, error, lost = std::move(lost)] {
      lose(lost);
      if (!error.empty()) complain(2, "outputs of tasks cannot be kept: " + error);
    };
  });
  io_.post_later([store = store_, attempt]() -> IoThread::Completion {
    (void)store->remove(attempt->leftover);
    SLUICE_FAULT_POINT("attempt.cleaned");
    return {};
  });
}

Status WorkerRank::append_log(io::LogPackWriter& logs, AttemptId id, const Attempt& attempt) const {
  const auto stream = [](const launch::Stream& from) {
    return io::LogStream{from.path.empty() ? from.head : std::string(), from.path, from.bytes,
                         from.dropped_bytes};
  };
  io::LogEntry entry;
  const std::string& label = attempt.start.spec.label;
  const size_t bracket = label.find('[');
  entry.task = label.substr(0, bracket);
  if (bracket != std::string::npos)
    entry.item = label.substr(bracket + 1, label.size() - bracket - 2);
  entry.attempt = id;
  entry.worker = transport_.self().value;
  entry.outcome = attempt.outcome;
  return logs.append(std::move(entry), stream(attempt.exited.out), stream(attempt.exited.err));
}

std::string WorkerRank::received_text() const {
  return std::to_string(fetch_.bytes_received()) + " bytes of " +
         std::to_string(fetch_.objects_received()) + " objects came from other nodes";
}

// -- time
// -----------------------------------------------------------------------------------------------------------

void WorkerRank::tick(Instant now) {
  now_ = now;
  absence_.turn(now);
  fetch_.tick(now);
  parts_.tick(now);
  if (checker_.expired(now)) launcher_.send(launch::KillChecker{});
  if (now >= agent_.next_deadline()) feed(now, input::Tick{});
}

Instant WorkerRank::next_deadline() const {
  return std::min({agent_.next_deadline(), fetch_.next_deadline(), parts_.next_deadline(),
                   checker_.deadline(), leave_at()});
}

}  // namespace sluice::engine
