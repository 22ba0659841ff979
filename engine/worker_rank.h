// A worker: the driver around scheduler::Agent. It turns messages, child exits, checks and finished
// I/O into the agent's inputs, and the agent's effects into staging, launches, fetches, checks and
// reports. It decides nothing.
//
// Everything here runs on the rank's control thread; what may block is posted to the I/O thread,
// which alone touches the store. Peers fetch objects from each other in chunks (worker_fetch.h).
// Test: tests/e2e/basics.sh, tests/e2e/programs.sh, tests/e2e/mpi.sh
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/absence.h"
#include "engine/input_views.h"
#include "engine/input_watch.h"
#include "engine/io_thread.h"
#include "engine/launch_protocol.h"
#include "engine/launcher_client.h"
#include "engine/run_directory.h"
#include "engine/topology.h"
#include "engine/worker_fetch.h"
#include "engine/worker_parts.h"
#include "io/checker_client.h"
#include "io/log_pack.h"
#include "io/store.h"
#include "io/transport.h"
#include "io/wire.h"
#include "scheduler/agent.h"

namespace sluice::engine {

constexpr scheduler::WorkerId kSchedulerRank{0};

struct WorkerOptions {
  std::string host;
  std::string node_key;
  std::vector<Core> cores;  // this worker's share of the node; may be empty
  int64_t memory_bytes = 0;
  io::StorePlace place;
  scheduler::Duration scheduler_silent_max = scheduler::seconds(60);  // then it leaves
};

class WorkerRank {
 public:
  WorkerRank(WorkerOptions options, io::Store store, io::Transport& transport,
             LauncherClient& launcher, io::CheckerClient& checker, IoThread& io);

  void start(scheduler::Instant now);  // says hello to rank 0
  void on_message(scheduler::Instant now, scheduler::WorkerId from, io::Message message);
  void on_launcher(scheduler::Instant now, const LaunchMessage& message);
  void on_checked(scheduler::Instant now, const io::CheckReply& reply);
  void tick(scheduler::Instant now);
  [[nodiscard]] scheduler::Instant next_deadline() const;
  [[nodiscard]] bool left() const { return left_; }  // after the orderly end
  [[nodiscard]] bool scheduler_lost(
      scheduler::Instant now) const;  // rank 0 has been silent too long
  [[nodiscard]] bool bulk_active() const { return fetch_.active() || parts_.active(); }
  // For the debug line of a rank's end.
  [[nodiscard]] std::string received_text() const;
  [[nodiscard]] bool supplied() const { return agent_.supplied(); }

 private:
  struct Attempt {
    io::message::Start start;
    io::StagedAttempt staged;
    launch::Exited exited;
    int64_t memory_kills_before = 0;  // engine/memory_kills.h
    std::string outcome = "done";
    std::vector<io::CheckReply> checks;  // by output, as they arrive
    size_t checks_open = 0;
    std::string check_error;
    std::vector<ViewRequest> views;  // inputs that are made for it
    size_t views_open = 0;
    InputWatch watch;              // only the I/O thread touches it
    io::Store::Leftover leftover;  // likewise
  };

  void welcome(const io::message::Welcome& welcome);
  void on_start(scheduler::Instant now, io::message::Start start);
  void feed(scheduler::Instant now, const scheduler::AgentInput& input);
  void feed_later(
      const scheduler::AgentInput& input);  // from completions: `now` is the latest tick's
  void carry_out(scheduler::Instant now, const scheduler::Effect& effect);
  [[nodiscard]] bool on_this_node(scheduler::WorkerId peer) const;
  [[nodiscard]] std::vector<bool> inputs_in_part(const io::message::Start& start) const;
  void fetch(scheduler::Instant now, const scheduler::effect::Fetch& fetch);
  void fetch_durable(scheduler::ObjectId object);
  [[nodiscard]] std::vector<std::string> known_paths(const io::AttemptSpec& spec) const;
  void stage(scheduler::AttemptId attempt);
  void make_views(scheduler::AttemptId attempt);  // engine/worker_views.cpp
  void ask_for_views(scheduler::AttemptId attempt);
  void on_view(const io::CheckReply& reply);
  void stage_files(scheduler::AttemptId attempt, std::vector<std::string> known_paths);
  void launch(const scheduler::effect::Launch& launch);
  [[nodiscard]] int64_t memory_kills_lately();
  static void explain(const Attempt& attempt, scheduler::input::Exited& exited);
  void check(scheduler::AttemptId attempt);
  void finish_check(scheduler::AttemptId attempt);
  void clean(scheduler::AttemptId attempt, bool failed);
  // `objects` are not what they were sealed as: whoever still needs them gets them made anew.
  void lose(const std::vector<scheduler::ObjectId>& objects);
  void save(const scheduler::effect::SaveObject& save);
  void note_outcome(const scheduler::Event& event);
  Status append_log(io::LogPackWriter& logs, scheduler::AttemptId id, const Attempt& attempt) const;
  void report(scheduler::Event event);
  void send(scheduler::WorkerId to, const io::Message& message);
  [[nodiscard]] scheduler::Instant leave_at() const;  // unless rank 0 is heard before
  void complain(uint8_t level, std::string text);     // to people, through rank 0; once per text

  WorkerOptions options_;
  std::shared_ptr<io::Store> store_;  // shared with jobs on the I/O thread, which alone touch it
  io::Transport& transport_;
  LauncherClient& launcher_;
  io::CheckerClient& checker_;
  IoThread& io_;
  scheduler::Agent agent_;
  WorkerFetch fetch_;
  WorkerParts parts_;
  // Likewise; empty when it cannot be written.
  std::shared_ptr<std::optional<io::LogPackWriter>> logs_ =
      std::make_shared<std::optional<io::LogPackWriter>>();
  RunDirectory directory_;
  std::map<scheduler::WorkerId, io::message::Peer> peers_;
  std::map<scheduler::AttemptId, std::shared_ptr<Attempt>> attempts_;  // shared with jobs
  std::map<scheduler::ObjectId, std::string> durable_;  // inputs used in place: absolute paths
  std::map<scheduler::AttemptId, std::string> save_paths_;
  std::map<uint64_t, std::pair<scheduler::AttemptId, size_t>>
      check_ids_;  // request -> attempt, output
  std::map<uint64_t, std::pair<scheduler::AttemptId, size_t>>
      view_ids_;  // request -> attempt, which of its views
  std::map<std::string, int> complaints_;
  scheduler::Instant now_;
  int64_t memory_kills_ = 0;
  scheduler::Instant memory_kills_read_;
  scheduler::Instant heard_scheduler_;
  Absence absence_;
  bool left_ = false;
};

}  // namespace sluice::engine
