#include "engine/clean.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "engine/cli.h"
#include "engine/clock.h"
#include "engine/descendants.h"
#include "engine/query.h"
#include "io/files.h"
#include "io/lease.h"
#include "io/store.h"
#include "io/tier.h"

namespace sluice::engine {

namespace {

namespace fs = std::filesystem;
using Kind = Leftover::Kind;

constexpr const char* kResultsPrefix = "results/";
constexpr scheduler::Duration kBeatEvery = scheduler::seconds(1);

const char* kind_text(Kind kind) {
  switch (kind) {
    case Kind::kTemporary:
      return "temporary files";
    case Kind::kFailed:
      return "directories of failed attempts";
    case Kind::kObject:
      return "saved objects that nobody needs";
    case Kind::kLog:
      return "logs of older submissions";
    case Kind::kStaleResult:
      return "results of instances that are not in the spec any more (moved to stale/)";
    case Kind::kNodeStore:
      return "node stores of dead runs on this host";
  }
  return "";
}

// A file's, or that of all files below. What cannot be read counts nothing.
int64_t bytes_of(const fs::path& path) {
  std::error_code code;
  if (!fs::is_directory(fs::symlink_status(path, code))) {
    const auto size =
        fs::is_regular_file(fs::symlink_status(path, code)) ? fs::file_size(path, code) : 0;
    return code ? 0 : static_cast<int64_t>(size);
  }
  int64_t bytes = 0;
  fs::recursive_directory_iterator entry(path, fs::directory_options::skip_permission_denied, code);
  for (; !code && entry != fs::recursive_directory_iterator(); entry.increment(code)) {
    std::error_code ignored;
    if (!fs::is_regular_file(entry->symlink_status(ignored))) continue;
    const auto size = entry->file_size(ignored);
    if (!ignored) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

class Finder {
 public:
  explicit Finder(const RunDirectory& directory) : directory_(directory) {}

  void add(Kind kind, const fs::path& path) { found_.push_back({kind, path, bytes_of(path)}); }
  void add_entries(Kind kind, const fs::path& folder, const std::set<std::string>& named) {
    std::error_code code;
    fs::directory_iterator entry(folder, code);
    for (; !code && entry != fs::directory_iterator(); entry.increment(code)) {
      if (!named.contains(entry->path().lexically_relative(directory_.path))) {
        add(kind, entry->path());
      }
    }
  }
  // <epoch>.<mpi_rank>.log, .index
  void add_old_logs(uint32_t newest) {
    std::error_code code;
    fs::directory_iterator entry(directory_.logs(), code);
    for (; !code && entry != fs::directory_iterator(); entry.increment(code)) {
      const std::string name = entry->path().filename();
      uint32_t epoch = 0;
      const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), epoch);
      if (error == std::errc() && *end == '.' && epoch < newest) add(Kind::kLog, entry->path());
    }
  }
  void add_unnamed_objects(const std::set<std::string>& named) {
    std::error_code code;
    fs::recursive_directory_iterator entry(directory_.objects(), code);
    for (; !code && entry != fs::recursive_directory_iterator(); entry.increment(code)) {
      const fs::path relative = entry->path().lexically_relative(directory_.path);
      if (relative == "objects/.tmp") {
        entry.disable_recursion_pending();
        continue;
      }
      std::error_code ignored;
      if (fs::is_directory(entry->symlink_status(ignored))) {
        // A directory may be one object.
        if (named.contains(relative)) entry.disable_recursion_pending();
        continue;
      }
      if (!named.contains(relative)) add(Kind::kObject, entry->path());
    }
  }
  std::vector<Leftover> take() {
    std::sort(found_.begin(), found_.end(), [](const Leftover& a, const Leftover& b) {
      return std::tie(a.kind, a.path) < std::tie(b.kind, b.path);
    });
    return std::move(found_);
  }

 private:
  const RunDirectory& directory_;
  std::vector<Leftover> found_;
};

// Paths that current instances' records name, and those that only gone ones' do.
struct NamedPaths {
  std::set<std::string> current, gone;
  // A run that was cut between record and rename left the only copy there; the next one renames it.
  std::set<std::string> temporary;
};
NamedPaths named_paths(const io::JournalState& journal, const io::RunLedger& ledger) {
  std::set<std::pair<std::string, std::string>> gone;
  for (const io::RunLedger::Instance& instance : ledger.instances) {
    if (instance.gone) gone.emplace(ledger.tasks[instance.task], instance.item);
  }
  NamedPaths paths;
  for (const auto& [name, facts] : journal.instances) {
    for (const auto& [output, durable] : facts.durable) {
      (gone.contains(name) ? paths.gone : paths.current).insert(durable.path);
      paths.temporary.insert(durable.temporary);
    }
  }
  for (const std::string& path : paths.current) paths.gone.erase(path);
  return paths;
}

Status remove_or_move(const Leftover& leftover, const RunDirectory& directory, uint32_t epoch) {
  if (leftover.kind != Kind::kStaleResult) return io::remove_tree(leftover.path);
  const fs::path to = directory.path / "stale" / std::to_string(epoch) /
                      leftover.path.lexically_relative(directory.results());
  return io::real_files().rename(leftover.path, to);
}

std::string mebibytes(int64_t bytes) {
  if (bytes < (10LL << 20U)) return std::to_string((bytes + 1023) >> 10U) + " KiB";
  return std::to_string(bytes >> 20U) + " MiB";
}

void print_sums(const std::vector<Leftover>& leftovers, bool dry) {
  std::map<Kind, std::pair<size_t, int64_t>> sums;
  for (const Leftover& one : leftovers) {
    ++sums[one.kind].first;
    sums[one.kind].second += one.bytes;
    if (dry) std::cout << one.path.string() << "\n";
  }
  for (const auto& [kind, sum] : sums) {
    std::cerr << "sluice: " << (dry ? "would remove " : "removed ") << sum.first << ", "
              << mebibytes(sum.second) << ": " << kind_text(kind) << "\n";
  }
}

int remove_and_tell(const std::vector<Leftover>& leftovers, const RunDirectory& directory,
                    uint32_t epoch, io::Lease& lease, const Clock& clock) {
  (void)kill_orphaned_attempts();
  const Removal removal =
      remove_leftovers(leftovers, directory, epoch, lease, [&] { return clock.now(); });
  int code = kQueryDone;
  for (const std::string& error : removal.errors) code = complain(error, kQueryEnvironment);
  const Status released = lease.release();
  // After a stop it has been said already why it is not ours to release.
  if (!released && !removal.stopped) code = complain(released.error().message, kQueryEnvironment);
  print_sums(removal.removed, false);
  return code;
}

}  // namespace

std::vector<Leftover> find_leftovers(const RunDirectory& directory, const io::JournalState& journal,
                                     const io::RunLedger& ledger, const CleanChoice& choice) {
  Finder finder(directory);
  const NamedPaths named = named_paths(journal, ledger);
  finder.add_entries(Kind::kTemporary, directory.results_temporary(), named.temporary);
  finder.add_entries(Kind::kTemporary, directory.objects() / ".tmp", named.temporary);
  finder.add_entries(Kind::kFailed, directory.failed(), {});
  finder.add_unnamed_objects(named.current);
  if (choice.logs) finder.add_old_logs(journal.epoch);
  if (choice.stale) {
    for (const std::string& path : named.gone) {
      std::error_code ignored;
      if (path.starts_with(kResultsPrefix) && fs::exists(directory.path / path, ignored)) {
        finder.add(Kind::kStaleResult, directory.path / path);
      }
    }
  }
  return finder.take();
}

Removal remove_leftovers(const std::vector<Leftover>& leftovers, const RunDirectory& directory,
                         uint32_t epoch, io::Lease& lease,
                         const std::function<scheduler::Instant()>& now) {
  Removal removal;
  scheduler::Instant last_beat;
  for (const Leftover& one : leftovers) {
    const scheduler::Instant time = now();
    if (time - last_beat >= kBeatEvery) {
      const Status beat = lease.beat();
      if (!beat) {
        removal.errors.push_back("cleaning stops at '" + one.path.string() +
                                 "': the run's lease cannot be kept: " + beat.error().message);
        removal.stopped = true;
        return removal;
      }
      last_beat = time;
    }
    const Status done = remove_or_move(one, directory, epoch);
    if (done) {
      removal.removed.push_back(one);
    } else {
      removal.errors.push_back(done.error().message);
    }
  }
  return removal;
}

int clean_run(const Options& options) {
  const RunDirectory directory = options.directory();
  auto journal = io::read_journal(directory.path);
  if (!journal) return complain(journal.error().message, kQueryEnvironment);
  if (journal->epoch == 0) return complain_no_run(directory);
  // Once the lease is taken no run can begin there. The clock starts before it: no beat is late.
  const Clock clock;
  std::optional<io::Lease> lease;
  if (options.dry_run) {
    const auto view = io::view_lease(directory.path);
    if (view && view->may_run()) {
      std::cerr << "sluice: warn: a run may be going on there; without --dry-run nothing would be "
                   "removed\n";
    }
  } else {
    auto taken = io::Lease::take(directory.path, scheduler::Duration{});
    if (!taken) return complain(taken.error().message, kQueryEnvironment);
    lease = std::move(*taken);
    journal = io::read_journal(directory.path);
    if (!journal) return complain(journal.error().message, kQueryEnvironment);
  }
  const auto ledger = io::read_ledger(directory.path);
  if (!ledger) return complain(ledger.error().message, kQueryEnvironment);
  std::vector<Leftover> leftovers =
      find_leftovers(directory, *journal, *ledger, {options.old_logs, options.stale});
  for (const fs::path& store : io::orphaned_stores()) {
    leftovers.push_back({Kind::kNodeStore, store, bytes_of(store)});
  }
  if (leftovers.empty()) std::cerr << "sluice: nothing to clean\n";
  if (lease) return remove_and_tell(leftovers, directory, journal->epoch, *lease, clock);
  print_sums(leftovers, true);
  return kQueryDone;
}

}  // namespace sluice::engine
