#include "engine/worker_parts.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "io/fault.h"
#include "io/tier.h"

namespace sluice::engine {

using scheduler::AttemptId;
using scheduler::Instant;
using scheduler::ObjectId;
using scheduler::WorkerId;
namespace message = io::message;

namespace {

// The list of what a part is made of, while it is made.
std::filesystem::path sources_of(const io::Store::NewFile& part) {
  return part.path.string() + ".sources";
}

}  // namespace

std::optional<io::H5View> part_of(const io::InputSpec& input) {
  io::H5View view = input.view;
  if (view.gather == io::H5View::Gather::kNone) {
    return view.whole() ? std::nullopt : std::optional(view);
  }
  if (view.dataset.empty()) return std::nullopt;
  io::H5View part;
  part.dataset = view.dataset;
  return part;
}

std::set<ObjectId> read_whole(const io::AttemptSpec& spec) {
  std::set<ObjectId> whole;
  for (const io::InputSpec& input : spec.inputs) {
    if (part_of(input)) continue;
    for (const io::InputFile& file : input.files) whole.insert(file.object);
  }
  return whole;
}

WorkerParts::WorkerParts(std::shared_ptr<io::Store> store, io::Transport& transport,
                         io::CheckerClient& checker, WorkerFetch& fetch, IoThread& io,
                         Finished finished)
    : store_(std::move(store)),
      transport_(transport),
      checker_(checker),
      fetch_(fetch),
      io_(io),
      finished_(std::move(finished)) {}

void WorkerParts::send(WorkerId to, const io::Message& message) {
  transport_.send(to, io::Channel::kControl, io::encode(message));
}

void WorkerParts::remove(ObjectId part) {
  io_.post([store = store_, part]() -> IoThread::Completion {
    (void)store->remove(part);
    return {};
  });
}

// -- the asker ------------------------------------------------------------------------------------

void WorkerParts::start(Instant now, AttemptId attempt, const io::AttemptSpec& spec,
                        ObjectId object, WorkerId source) {
  now_ = now;
  const auto [entry, is_new] = askers_.try_emplace(attempt);
  Asker& asker = entry->second;
  for (size_t i = 0; is_new && i < spec.inputs.size(); ++i) {
    for (size_t f = 0; f < spec.inputs[i].files.size(); ++f) {
      asker.places.emplace(spec.inputs[i].files[f].object, std::pair(i, f));
    }
  }
  const auto [begin, end] = asker.places.equal_range(object);
  for (auto place = begin; place != end; ++place) {
    const auto [input, file] = place->second;
    const uint64_t number = next_number_++;
    wanted_[number] = {attempt, object, source, input, file, {}, {}, now};
    asker.open[object].insert(number);
    send(source, message::PartRequest{number, object, *part_of(spec.inputs[input])});
    SLUICE_FAULT_POINT("part.asked");
  }
}

void WorkerParts::on_ready(Instant now, WorkerId from, const message::PartReady& ready) {
  now_ = now;
  const auto found = wanted_.find(ready.number);
  if (found == wanted_.end() || found->second.source != from) {  // given up meanwhile
    if (ready.part.valid()) send(from, message::PartDone{ready.part});
    return;
  }
  Wanted& wanted = found->second;
  if (!ready.error.empty()) {
    fail(wanted.attempt, wanted.object, ready.error, false);
    return;
  }
  wanted.there = ready.part;
  wanted.here = ObjectId(next_part_++);
  fetching_[wanted.here] = ready.number;
  fetch_.start(now, wanted.here, from, ready.part);
}

void WorkerParts::on_fetched(ObjectId part, const std::string& error) {
  const auto number = fetching_.extract(part);
  const auto found = number.empty() ? wanted_.end() : wanted_.find(number.mapped());
  if (found == wanted_.end()) {  // its attempt is over
    remove(part);
    return;
  }
  const Wanted wanted = found->second;
  if (!error.empty()) {
    fail(wanted.attempt, wanted.object, error, true);
    return;
  }
  send(wanted.source, message::PartDone{wanted.there});
  Asker& asker = askers_.at(wanted.attempt);
  asker.arrived.push_back({wanted.input, wanted.file, part});
  std::set<uint64_t>& open = asker.open.at(wanted.object);
  open.erase(found->first);
  wanted_.erase(found);
  SLUICE_FAULT_POINT("part.fetched");
  if (open.empty()) finished_({wanted.attempt, wanted.object, "", false});
}

// None of the parts that the attempt reads of this object is wanted any more.
void WorkerParts::fail(AttemptId attempt, ObjectId object, const std::string& error,
                       bool source_lost) {
  const auto asker = askers_.find(attempt);
  if (asker == askers_.end()) return;  // over, because of another object
  const auto open = asker->second.open.extract(object);
  if (open.empty()) return;
  for (const uint64_t number : open.mapped()) drop_wanted(number);
  finished_({attempt, object, error, source_lost});
}

// One that is being fetched is removed when it has come.
void WorkerParts::drop_wanted(uint64_t number) {
  const auto wanted = wanted_.extract(number);
  const Wanted& dropped = wanted.mapped();
  if (dropped.there.valid()) send(dropped.source, message::PartDone{dropped.there});
}

// Of a single input the part is all that is read; a gather is made of them here.
void WorkerParts::use(AttemptId attempt, io::AttemptSpec& spec) const {
  const auto found = askers_.find(attempt);
  if (found == askers_.end()) return;
  for (const Arrived& part : found->second.arrived) {
    io::InputSpec& input = spec.inputs[part.input];
    if (input.view.gather == io::H5View::Gather::kNone) input.view = {};
    input.files[part.file].object = part.part;
  }
}

void WorkerParts::forget(AttemptId attempt) {
  const auto asker = askers_.extract(attempt);
  if (asker.empty()) return;
  for (const auto& [object, open] : asker.mapped().open) {
    for (const uint64_t number : open) drop_wanted(number);
  }
  for (const Arrived& part : asker.mapped().arrived) remove(part.part);
}

// -- the source -----------------------------------------------------------------------------------

void WorkerParts::on_request(Instant now, WorkerId from, const message::PartRequest& request) {
  now_ = now;
  const ObjectId part(next_part_++);
  made_[part] = {from, request.number};
  io_.post([this, store = store_, part, request]() -> IoThread::Completion {
    SLUICE_FAULT_POINT("part.serve");
    const std::filesystem::path from_file = store->object_path(request.object);
    if (from_file.empty() || !store->as_sealed(request.object)) {
      return [this, part] { answer(part, "the source does not hold the object any more"); };
    }
    const int64_t bytes = std::max<int64_t>(io::file_stamp(from_file).bytes, 0) /
                          std::max<int64_t>(request.view.shards, 1);
    const io::Store::NewFile file = store->place_for(part, bytes);
    io::CheckRequest wanted;
    wanted.path = file.path;
    wanted.sources = sources_of(file);
    wanted.view = request.view;
    const Status written =
        io::write_file(wanted.sources, io::encode_sources({{from_file, from_file.filename()}}));
    if (!written) return [this, part, error = written.error().message] { answer(part, error); };
    return [this, part, file, wanted = std::move(wanted)] {
      requests_[checker_.request(now_, wanted)] = {part, file};
    };
  });
}

// Whether somebody still waits for it is seen when it is answered.
bool WorkerParts::on_made(const io::CheckReply& reply) {
  const auto asked = requests_.extract(reply.id);
  if (asked.empty()) return false;
  io_.post([this, store = store_, part = asked.mapped().part, file = asked.mapped().file,
            ok = reply.ok, error = reply.error]() -> IoThread::Completion {
    (void)::unlink(sources_of(file).c_str());
    if (!ok) {
      (void)::unlink(file.path.c_str());  // a helper that crashed leaves what it had
      return [this, part, error] { answer(part, error); };
    }
    const Status adopted = store->adopt(part, file);
    SLUICE_FAULT_POINT("part.made");
    return [this, part, text = adopted.ok() ? std::string() : adopted.error().message] {
      answer(part, text);
    };
  });
  return true;
}

void WorkerParts::answer(ObjectId part, const std::string& error) {
  const auto found = made_.find(part);
  if (found == made_.end()) {  // its asker was lost meanwhile
    remove(part);
    return;
  }
  const Made made = found->second;
  send(made.asker, message::PartReady{made.number, error.empty() ? part : ObjectId(), error});
  if (!error.empty()) made_.erase(found);
}

void WorkerParts::on_done(WorkerId from, const message::PartDone& done) {
  const auto found = made_.find(done.part);
  if (found == made_.end() || found->second.asker != from) return;
  made_.erase(found);
  remove(done.part);
}

// -- both -----------------------------------------------------------------------------------------

void WorkerParts::peer_lost(WorkerId peer) {
  std::vector<std::pair<AttemptId, ObjectId>> gone;
  for (const auto& [number, wanted] : wanted_) {
    if (wanted.source == peer) gone.emplace_back(wanted.attempt, wanted.object);
  }
  gone.erase(std::unique(gone.begin(), gone.end()), gone.end());
  for (const auto& [attempt, object] : gone) {
    fail(attempt, object, "its source, worker " + std::to_string(peer.value) + ", is lost", true);
  }
  std::vector<ObjectId> useless;
  for (const auto& [part, made] : made_) {
    if (made.asker == peer) useless.push_back(part);
  }
  for (const ObjectId part : useless) {
    made_.erase(part);
    remove(part);
  }
}

void WorkerParts::tick(Instant now) {
  now_ = now;
  for (auto it = wanted_.begin(); it != wanted_.end(); ++it) {
    const Wanted wanted = it->second;
    if (wanted.here.valid() || now < wanted.since + kStalledAfter) continue;
    fail(wanted.attempt, wanted.object, "its source did not answer", true);
    return;  // the others at the next tick
  }
}

Instant WorkerParts::next_deadline() const {
  Instant next = Instant::never();
  for (const auto& [number, wanted] : wanted_) {
    if (!wanted.here.valid()) next = std::min(next, wanted.since + kStalledAfter);
  }
  return next;
}

}  // namespace sluice::engine
