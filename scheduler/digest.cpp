#include "scheduler/digest.h"

namespace sluice::scheduler {

void Digest::add(const Decision& decision) {
  number(decision.index());
  std::visit([this](const auto& it) { add_members(it); }, decision);
}

void Digest::text(std::string_view text) {
  number(text.size());
  for (const char c : text) {
    number(static_cast<unsigned char>(c));
  }
}

void Digest::hash(const Hash128& hash) {
  number(hash.high);
  number(hash.low);
}

void Digest::usage(const Usage& usage) {
  signed_number(usage.wall.ns);
  signed_number(usage.cpu.ns);
  signed_number(usage.memory_peak_bytes);
}

void Digest::grant(const Grant& grant) {
  signed_number(grant.resources.cpus);
  signed_number(grant.resources.memory_bytes);
  signed_number(grant.timeout.ns);
}

void Digest::add_members(const decision::StartAttempt& start) {
  number(start.worker.value);
  number(start.attempt.value);
  number(start.instance.value);
  number(start.request.value);
  grant(start.grant);
  number(start.inputs.size());
  for (const InputPlace& place : start.inputs) {
    number(place.object.value);
    number(place.source.value);
  }
  number(start.ahead ? 1 : 0);
  signed_number(start.priority);
}

void Digest::add_members(const decision::TakeBack& take_back) {
  number(take_back.worker.value);
  number(take_back.attempt.value);
}

void Digest::add_members(const decision::StopAttempt& stop) {
  number(stop.worker.value);
  number(stop.attempt.value);
}

void Digest::add_members(const decision::SaveObject& save) {
  number(save.worker.value);
  number(save.object.value);
  number(save.save.value);
  number(static_cast<uint64_t>(save.destination));
}

void Digest::add_members(const decision::DropObject& drop) {
  number(drop.worker.value);
  number(drop.object.value);
}

void Digest::add_members(const decision::CommitObject& commit) {
  number(commit.object.value);
  number(commit.save.value);
  number(static_cast<uint64_t>(commit.destination));
}

void Digest::add_members(const decision::RemoveSaved& remove) { number(remove.object.value); }

void Digest::add_members(const decision::InstanceDone& done) {
  number(done.instance.value);
  number(done.attempt.value);
  hash(done.key);
  number(done.outputs.size());
  for (const OutputReport& output : done.outputs) {
    hash(output.content);
    signed_number(output.bytes);
    text(output.value);
  }
  usage(done.usage);
  number(done.worker.value);
}

void Digest::add_members(const decision::AttemptEnded& ended) {
  number(ended.instance.value);
  number(ended.report.worker.value);
  number(ended.report.attempt.value);
  number(static_cast<uint64_t>(ended.report.cause));
  signed_number(ended.report.exit_code);
  signed_number(ended.report.signal);
  text(ended.report.detail);
  text(ended.report.stderr_tail);
  usage(ended.report.usage);
  number(ended.final ? 1 : 0);
  grant(ended.had);
  grant(ended.next);
  signed_number(ended.delay.ns);
  number(ended.no_larger ? 1 : 0);
  number(ended.elsewhere ? 1 : 0);
}

void Digest::add_members(const decision::InstanceSkipped& skipped) {
  number(skipped.instance.value);
  number(skipped.because.value);
}

void Digest::add_members(const decision::WorkerChanged& changed) {
  number(changed.worker.value);
  number(static_cast<uint64_t>(changed.state));
}

void Digest::add_members(const decision::NotReproducible& differs) {
  number(differs.object.value);
  hash(differs.before);
  hash(differs.now);
}

void Digest::add_members(const decision::StopBegan& began) {
  number(static_cast<uint64_t>(began.reason));
  number(began.because.value);
}

void Digest::add_members(const decision::RunEnded& ended) {
  number(static_cast<uint64_t>(ended.outcome));
}

}  // namespace sluice::scheduler
