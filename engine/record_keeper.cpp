#include "engine/record_keeper.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "engine/aftermath.h"
#include "io/fault.h"
#include "io/tier.h"

namespace sluice::engine {

namespace {

constexpr scheduler::Duration kTick = scheduler::milliseconds(200);
constexpr uint64_t kSyncBytes = 1ULL << 20U;
constexpr uint64_t kTicksPerBeat = 5;
constexpr size_t kTraceBytes = 64U << 10U;

Mail read_mail(const RunDirectory& directory, const std::string& job) {
  Mail mail;
  std::error_code ignored;
  mail.stop_requested = std::filesystem::remove(directory.stop_request(), ignored);
  for (const auto& entry : std::filesystem::directory_iterator(directory.lost(), ignored)) {
    const auto rank = rank_of_lost_note(entry.path().filename().string(), job);
    if (rank) mail.lost_ranks.push_back(*rank);
  }
  std::sort(mail.lost_ranks.begin(), mail.lost_ranks.end());
  return mail;
}

// Of a regular file; else 0.
int64_t file_time_ns(const std::filesystem::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return 0;
  return info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec;
}

}  // namespace

void remove_temporaries(const RunDirectory& directory) {
  std::error_code ignored;
  for (const auto& folder : {directory.results_temporary(), directory.objects() / ".tmp"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      std::filesystem::remove_all(entry.path(), ignored);
    }
  }
}

struct RecordKeeper::Side {
  io::Files& files;
  RunDirectory directory;
  io::JournalWriter journal;
  std::unique_ptr<io::TraceWriter> trace;
  io::Lease lease;
  std::vector<std::filesystem::path> removals;
  std::string job;                   // engine/aftermath.h
  std::optional<Error> lost_record;  // any record behind it would follow on a hole

  Status append(const io::Record& record) {
    if (lost_record) return *lost_record;
    Status status = journal.append(record);
    if (!status) lost_record = status.error();
    if (status && journal.unsynced_bytes() >= kSyncBytes) status = journal.sync();
    return status;
  }

  // Syncs, and removes what the records so far say is removed.
  Status sync() {
    if (lost_record) return *lost_record;
    Status status = journal.sync();
    if (!status) return status;
    for (const std::filesystem::path& path : removals) {
      (void)files.remove(path);  // a leftover only takes space
      SLUICE_FAULT_POINT("publish.removed");
    }
    removals.clear();
    return status;
  }

  // Records say what will be where; only when they are on disk may the files appear in place.
  std::vector<Status> commit(std::vector<Commit>& batch) {
    Status status = lost_record ? Status(*lost_record) : Status(Done{});
    for (Commit& one : batch) {
      one.durable.modified_ns = file_time_ns(directory.path / one.durable.temporary);
      if (status) status = journal.append(one.durable);
    }
    if (status) status = sync();  // first what is to be removed: it may have had the same name
    std::vector<Status> out(batch.size(), status);
    if (!status) return out;
    SLUICE_FAULT_POINT("publish.journalled");
    for (size_t i = 0; i < batch.size(); ++i) {
      const io::record::Durable& durable = batch[i].durable;
      out[i] = files.rename(directory.path / durable.temporary, directory.path / durable.path);
      SLUICE_FAULT_POINT("publish.renamed");
    }
    return out;
  }
};

RecordKeeper::RecordKeeper(io::Files& files, RunDirectory directory, io::JournalWriter journal,
                           std::unique_ptr<io::TraceWriter> trace, io::Lease lease,
                           Callbacks callbacks)
    : side_(new Side{files,
                     std::move(directory),
                     std::move(journal),
                     std::move(trace),
                     std::move(lease),
                     {},
                     mpi_job(),
                     {}}),
      callbacks_(std::move(callbacks)) {}

// Without `done`, a failure is the journal's: the run cannot go on.
void RecordKeeper::post(std::function<Status(Side&)> job, std::function<void(Status)> done) {
  io_.post(
      [this, side = side_, job = std::move(job), done = std::move(done)]() -> IoThread::Completion {
        auto status = std::make_shared<Status>(job(*side));
        if (!done && *status) return {};
        return [this, status, done] {
          if (done) {
            done(*status);
          } else {
            journal_failed(status->error());
          }
        };
      });
}

void RecordKeeper::journal_failed(const Error& error) {
  if (!std::exchange(failed_, true)) callbacks_.journal_failed(error);
}

void RecordKeeper::append(io::Record record) {
  post([record = std::move(record)](Side& side) { return side.append(record); }, {});
}

void RecordKeeper::append_done(io::record::DoneRecord record, Sources sources,
                               std::function<void(const std::string&)> changed) {
  auto found = std::make_shared<std::string>();
  post(
      [record = std::move(record), sources = std::move(sources), found](Side& side) mutable {
        for (const auto& [file, stamp] : sources) {
          if (io::look_at_source(file) != stamp) *found = file;
        }
        if (!found->empty()) record.key.low ^= 1U;
        return side.append(record);
      },
      [this, found, changed = std::move(changed)](const Status& appended) {
        if (!appended) journal_failed(appended.error());
        if (!found->empty()) changed(*found);
      });
}

void RecordKeeper::commit(io::record::Durable durable, std::function<void(Status)> done) {
  commits_.push_back({std::move(durable), std::move(done)});
  post_commits();
}

void RecordKeeper::post_commits() {
  if (commits_posted_ || commits_.empty()) return;
  commits_posted_ = true;
  auto batch = std::make_shared<std::vector<Commit>>(std::move(commits_));
  commits_.clear();
  io_.post([this, side = side_, batch]() -> IoThread::Completion {
    auto statuses = std::make_shared<std::vector<Status>>(side->commit(*batch));
    return [this, batch, statuses] {
      commits_posted_ = false;
      for (size_t i = 0; i < batch->size(); ++i) (*batch)[i].done((*statuses)[i]);
      post_commits();
    };
  });
}

void RecordKeeper::publish_text(const std::filesystem::path& relative, std::string text,
                                std::function<void(Status)> done) {
  post(
      [relative, text = std::move(text)](Side& side) -> Status {
        const std::filesystem::path path = side.directory.path / relative;
        const auto there = side.files.read(path);
        if (there && *there == text) return Done{};
        std::error_code ignored;
        std::filesystem::create_directories(path.parent_path(), ignored);
        // What had this name may have been of another kind.
        if (std::filesystem::is_directory(path, ignored)) (void)io::remove_tree(path);
        const Status written = side.files.replace(path, text);
        SLUICE_FAULT_POINT("publish.text");
        return written;
      },
      std::move(done));
}

void RecordKeeper::remove(const std::filesystem::path& relative) {
  post(
      [relative](Side& side) -> Status {
        side.removals.push_back(side.directory.path / relative);
        return Done{};
      },
      {});
}

void RecordKeeper::after_sync(std::function<void()> action) {
  waiting_for_sync_.push_back(std::move(action));
}

void RecordKeeper::trace(const io::Bytes& block) {
  trace_.insert(trace_.end(), block.begin(), block.end());
  if (trace_.size() >= kTraceBytes) post_trace();
}

void RecordKeeper::post_trace() {
  if (trace_.empty()) return;
  post(
      [block = std::exchange(trace_, {})](Side& side) -> Status {
        if (side.trace && !side.trace->append(block))
          side.trace.reset();  // the run matters more than its trace
        return Done{};
      },
      {});
}

void RecordKeeper::write_status(std::function<std::string(uint64_t journal_bytes)> text) {
  post(
      [text = std::move(text)](Side& side) -> Status {
        // For people and queries; the journal is the record.
        (void)side.files.replace(side.directory.status(), text(side.journal.length()));
        return Done{};
      },
      {});
}

void RecordKeeper::tick(scheduler::Instant now) {
  if (now < next_tick_) return;
  next_tick_ = now + kTick;
  post_trace();
  if (sync_posted_) return;  // the disk is slow: one at a time
  sync_posted_ = true;
  auto actions = std::make_shared<std::deque<std::function<void()>>>(std::move(waiting_for_sync_));
  waiting_for_sync_.clear();
  const bool beat = ticks_++ % kTicksPerBeat == 0;
  auto mail = std::make_shared<Mail>();
  post(
      [beat, mail](Side& side) {
        Status status = side.sync();
        if (status && beat) status = side.lease.beat();
        *mail = read_mail(side.directory, side.job);
        return status;
      },
      [this, actions, mail](const Status& status) {
        sync_posted_ = false;
        if (!status) journal_failed(status.error());
        if (status) {
          for (const auto& action : *actions) action();
        }
        if (mail->stop_requested || !mail->lost_ranks.empty()) callbacks_.mail(*mail);
      });
}

void RecordKeeper::close(io::record::End end, std::function<void(Status)> done) {
  post_trace();
  post(
      [end = std::move(end)](Side& side) {
        Status status = side.append(end);
        if (status) status = side.sync();
        SLUICE_FAULT_POINT("end.synced");
        remove_temporaries(side.directory);  // a worker may have died between saving and its report
        SLUICE_FAULT_POINT("end.cleaned");
        const Status released = side.lease.release();
        SLUICE_FAULT_POINT("end.released");
        return status ? released : status;
      },
      std::move(done));
}

}  // namespace sluice::engine
