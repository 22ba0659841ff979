// A running hash of decisions, so that two runs of the core can be compared by one number: the same
// events give the same digest (simulator, replay). Every member of every decision goes in, in
// declared order. Values; no threads. Test: tests/scheduler/digest_test.cpp
#pragma once

#include <cstdint>
#include <string_view>

#include "scheduler/decision.h"

namespace sluice::scheduler {

class Digest {
 public:
  void add(const Decision& decision);
  [[nodiscard]] uint64_t value() const { return value_; }

 private:
  void number(uint64_t value) { value_ = mix64(value_ ^ mix64(value)); }
  void signed_number(int64_t value) { number(static_cast<uint64_t>(value)); }
  void text(std::string_view text);
  void hash(const Hash128& hash);
  void usage(const Usage& usage);
  void grant(const Grant& grant);

  void add_members(const decision::StartAttempt& start);
  void add_members(const decision::TakeBack& take_back);
  void add_members(const decision::StopAttempt& stop);
  void add_members(const decision::SaveObject& save);
  void add_members(const decision::DropObject& drop);
  void add_members(const decision::CommitObject& commit);
  void add_members(const decision::RemoveSaved& remove);
  void add_members(const decision::InstanceDone& done);
  void add_members(const decision::AttemptEnded& ended);
  void add_members(const decision::InstanceSkipped& skipped);
  void add_members(const decision::WorkerChanged& changed);
  void add_members(const decision::NotReproducible& differs);
  void add_members(const decision::StopBegan& began);
  void add_members(const decision::RunEnded& ended);

  uint64_t value_ = 0;
};

}  // namespace sluice::scheduler
