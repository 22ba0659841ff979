// Rank 0's lasting side: journal, trace, publishing, lease, status file, the run directory's
// mailboxes (`stop`, `lost/`). Everything is done on one I/O thread of its own, in the order in
// which the core decided, so that any prefix of the journal is a consistent state; the control
// thread never waits for it.
//
//   append(record)         written at once, synced at most 200 ms or 1 MiB later
//   commit(...)            all appended before it are synced, then the saved file is renamed into
//                          place, then `done` is called
//   after_sync(action)     runs on the control thread once everything appended so far is on disk
//
// Owner: rank 0's control thread. Test: tests/engine/scheduler_rank_test.cpp
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/io_thread.h"
#include "engine/run_directory.h"
#include "io/files.h"
#include "io/journal.h"
#include "io/lease.h"
#include "io/sources.h"
#include "io/trace.h"
#include "scheduler/types.h"

namespace sluice::engine {

// What the I/O thread found in the run directory's mailboxes.
struct Mail {
  bool stop_requested = false;
  std::vector<uint32_t> lost_ranks;  // guards' reports
};

// Removes what was saved and can never be renamed into place any more. Only while the lease is held
// and no commit is open.
void remove_temporaries(const RunDirectory& directory);

class RecordKeeper {
 public:
  struct Callbacks {
    std::function<void(const Error&)>
        journal_failed;  // disk full, lease taken over: the run must end
    std::function<void(const Mail&)> mail;
  };
  RecordKeeper(io::Files& files, RunDirectory directory, io::JournalWriter journal,
               std::unique_ptr<io::TraceWriter> trace, io::Lease lease, Callbacks callbacks);

  void append(io::Record record);
  // If one of the sources is not as it was when the key was made, the key is made one that nothing
  // has, so that the next submission runs the instance again, and `changed` is told the file.
  using Sources = std::vector<std::pair<std::string, io::SourceStamp>>;
  void append_done(io::record::DoneRecord record, Sources sources,
                   std::function<void(const std::string& file)> changed);
  void commit(io::record::Durable durable, std::function<void(Status)> done);
  // A file for people of what the journal holds. Written if it is not there as it must be.
  void publish_text(const std::filesystem::path& relative, std::string text,
                    std::function<void(Status)> done);
  void remove(const std::filesystem::path& relative);  // a saved intermediate; at the next sync
  void after_sync(std::function<void()> action);
  // Written with others: when there is enough of it, and at every tick. A trace whose end is
  // missing is one of a shorter time.
  void trace(const io::Bytes& block);
  // `text` is given the length of the journal, whose records so far are those of the decisions so
  // far; it runs on the I/O thread.
  void write_status(std::function<std::string(uint64_t journal_bytes)> text);
  // Syncs when due, beats the lease, looks into the mailboxes. Call at next_deadline() at the
  // latest.
  void tick(scheduler::Instant now);
  [[nodiscard]] scheduler::Instant next_deadline() const { return next_tick_; }
  // Appends `end`, syncs, removes the temporaries, releases the lease; `done` runs on the control
  // thread.
  void close(io::record::End end, std::function<void(Status)> done);

  [[nodiscard]] int fd() const { return io_.fd(); }
  size_t run_completions() { return io_.run_completions(); }
  [[nodiscard]] size_t pending() const { return io_.pending(); }

 private:
  struct Side;  // what only the I/O thread touches
  struct Commit {
    io::record::Durable durable;
    std::function<void(Status)> done;
  };
  void post_commits();
  void post_trace();
  void post(std::function<Status(Side&)> job, std::function<void(Status)> done);

  std::shared_ptr<Side> side_;
  Callbacks callbacks_;
  void journal_failed(const Error& error);  // tells it once
  io::Bytes trace_;                         // not posted yet
  bool failed_ = false;
  scheduler::Instant next_tick_;
  std::deque<std::function<void()>> waiting_for_sync_;
  bool sync_posted_ = false;
  std::vector<Commit> commits_;  // wait for the batch before them: one sync serves a whole batch
  bool commits_posted_ = false;
  uint64_t ticks_ = 0;
  IoThread io_{"sluice-records"};  // last: it ends before what its jobs use
};

}  // namespace sluice::engine
