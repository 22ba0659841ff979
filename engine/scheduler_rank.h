// Rank 0's driver around scheduler::Core: workers' reports and the run directory's mailboxes become
// events; the core's decisions become messages, journal records, renames and lines for people. It
// decides nothing.
//
// Control thread only. Test: tests/engine/scheduler_rank_test.cpp, tests/e2e/
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "engine/absence.h"
#include "engine/clock.h"
#include "engine/key_parts.h"
#include "engine/record_keeper.h"
#include "engine/report.h"
#include "engine/run_directory.h"
#include "io/pipeline.h"
#include "io/transport.h"
#include "io/wire.h"
#include "scheduler/core.h"

namespace sluice::engine {

class TurnWatch;

struct SchedulerOptions {
  std::string run_uuid;
  RunDirectory directory;
  scheduler::CoreOptions core;
  size_t workers_expected = 1;       // ranks that will say hello
  io::SourceStamps sources = {};     // files that inputs name, as they were when the keys were made
  const TurnWatch* watch = nullptr;  // of the loop that drives this, for status.json
};

class SchedulerRank {
 public:
  // `pipeline` must outlive this. `keeper` is made by the caller (engine/run_start.cpp), which owns
  // the lease.
  SchedulerRank(SchedulerOptions options, const io::Pipeline& pipeline, io::Transport& transport,
                RecordKeeper& keeper, Report& report);

  // Feeds what the journal knows and what is selected (engine/selection.h), then lets the core
  // begin. `overtaken`: see engine/resume.h.
  void begin(scheduler::Instant now, const std::vector<scheduler::Event>& opening,
             std::map<scheduler::ObjectId, std::string> durable_paths,
             std::set<scheduler::InstanceId> overtaken = {});
  void on_message(scheduler::Instant now, scheduler::WorkerId from, const io::Message& message);
  void on_mail(scheduler::Instant now, const Mail& mail);
  void request_stop(scheduler::Instant now, const std::string& why);
  // The journal cannot be written: nothing that happens now would last, so everything stops.
  void records_failed(scheduler::Instant now, const Error& error);
  void tick(scheduler::Instant now);
  // Lets the core choose; call once after each batch of events.
  void schedule(scheduler::Instant now);
  [[nodiscard]] scheduler::Instant next_deadline() const;
  [[nodiscard]] bool workers_supplied() const { return core_.workers_supplied(); }
  // All workers have left (or are not waited for any longer) and the end is on disk.
  [[nodiscard]] bool finished(scheduler::Instant now) const;
  [[nodiscard]] int exit_code() const { return exit_code_; }

 private:
  struct WorkerFacts {
    io::message::Hello hello;
    bool left = false;
    bool lost = false;
  };

  void apply(scheduler::Instant now, const scheduler::Event& event);
  void carry_out(scheduler::Instant now, const std::vector<scheduler::Decision>& decisions);
  void carry_out(scheduler::Instant now, const scheduler::Decision& decision);
  void joined(scheduler::Instant now, scheduler::WorkerId worker, const io::message::Hello& hello);
  void start_attempt(const scheduler::decision::StartAttempt& start);
  void save_object(const scheduler::decision::SaveObject& save);
  void commit_object(const scheduler::decision::CommitObject& commit);
  void instance_done(const scheduler::decision::InstanceDone& done);
  void append_done(scheduler::InstanceId instance, io::record::DoneRecord record);
  void publish_values(scheduler::InstanceId instance);
  void publish_text(const std::string& path, std::string text);
  void attempt_ended(const scheduler::decision::AttemptEnded& ended);
  void instance_skipped(const scheduler::decision::InstanceSkipped& skipped);
  void worker_changed(const scheduler::decision::WorkerChanged& changed);
  void stop_began(const scheduler::decision::StopBegan& began);
  void not_reproducible(const scheduler::decision::NotReproducible& found);
  void run_ended(scheduler::Instant now, scheduler::Outcome outcome);
  [[nodiscard]] std::vector<std::string> result_paths() const;
  void check_impossible();
  void send(scheduler::WorkerId to, const io::Message& message);
  void send_all(const io::Message& message);
  void ask_for_sync();
  void post_event(
      scheduler::Event event);  // from completions: applied at the next tick of the loop
  [[nodiscard]] std::string temporary_path(scheduler::AttemptId save,
                                           scheduler::Destination destination) const;
  [[nodiscard]] std::string final_path(scheduler::ObjectId object,
                                       scheduler::Destination destination) const;
  [[nodiscard]] scheduler::Instant next_tick() const;
  void write_status();
  [[nodiscard]] bool is_value(scheduler::ObjectId object) const;

  SchedulerOptions options_;
  const io::Pipeline& pipeline_;
  io::Transport& transport_;
  RecordKeeper& keeper_;
  Report& report_;
  scheduler::Core core_;
  KeyParts key_parts_;
  std::map<scheduler::WorkerId, WorkerFacts> workers_;
  std::map<std::string, scheduler::NodeId> nodes_;     // by node key
  std::map<scheduler::ObjectId, std::string> values_;  // texts of values that are known
  std::map<scheduler::ObjectId, scheduler::OutputReport>
      known_;  // size and content of sealed objects, for their records
  std::set<scheduler::InstanceId> overtaken_;
  std::set<scheduler::TaskId> held_;                          // people were told
  std::set<std::string> changed_sources_;                     // likewise
  std::map<scheduler::ObjectId, std::string> durable_paths_;  // relative to the run directory
  std::vector<scheduler::Event> posted_;
  bool sync_asked_ = false;
  bool unscheduled_ = false;  // events came since the last schedule()
  bool begun_ = false;
  bool impossible_checked_ = false;
  bool ended_ = false;
  bool closed_ = false;
  bool stop_requested_ = false;
  bool records_failed_ = false;
  int exit_code_ = 0;
  scheduler::Outcome outcome_ = scheduler::Outcome::kAllDone;
  scheduler::Instant leave_deadline_ = scheduler::Instant::never();
  scheduler::Instant next_status_;
  scheduler::Instant next_ping_;
  std::vector<uint32_t> lost_seen_;  // guards' reports
  Absence absence_;
  std::set<std::pair<scheduler::TaskId, std::string>> not_reproducible_;  // was said
};

// 0 all done, 1 failed, 3 disk, 4 stopped or stuck (design §6).
[[nodiscard]] int exit_code_of(scheduler::Outcome outcome);
[[nodiscard]] const char* outcome_name(scheduler::Outcome outcome);

}  // namespace sluice::engine
