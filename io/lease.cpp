#include "io/lease.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <utility>

#include "io/fault.h"

namespace sluice::io {

namespace {

using nlohmann::json;
using std::filesystem::path;

constexpr const char* kBeatFile = "lease.json";
constexpr int64_t kSilentAfterMs = 120'000;
// Between two looks at another host's counter.
constexpr scheduler::Duration kLookEvery = scheduler::seconds(2);

// -- this machine --

std::string first_line(const path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

class RealLeaseHost final : public LeaseHost {
 public:
  LeaseOwner self() override {
    LeaseOwner owner;
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) == 0) owner.host = name.data();
    owner.boot_id = first_line("/proc/sys/kernel/random/boot_id");
    owner.pid = ::getpid();
    owner.start_time = start_time_of(owner.pid).value_or(0);
    const char* job = std::getenv("SLURM_JOB_ID");
    owner.batch_job = job == nullptr ? "" : job;
    return owner;
  }

  // Fields 3 (state) and 22 of /proc/<pid>/stat; the name before them may hold blanks and brackets.
  std::optional<uint64_t> start_time_of(int64_t pid) override {
    const std::string line = first_line("/proc/" + std::to_string(pid) + "/stat");
    const size_t bracket = line.rfind(')');
    if (bracket == std::string::npos) return {};
    std::istringstream fields(line.substr(bracket + 1));
    std::string field;
    fields >> field;
    if (field == "Z" || field == "X") return {};  // dead, only not yet waited for
    constexpr int kStartTimeField = 22;
    for (int i = 4; i <= kStartTimeField; ++i) fields >> field;
    uint64_t start = 0;
    const auto parsed = std::from_chars(field.data(), field.data() + field.size(), start);
    return parsed.ec == std::errc{} ? std::optional(start) : std::nullopt;
  }

  int64_t unix_time_ms() override {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  scheduler::Instant now() override {
    return {std::chrono::duration_cast<std::chrono::nanoseconds>(
                std::chrono::steady_clock::now().time_since_epoch())
                .count()};
  }
  void sleep(scheduler::Duration duration) override {
    std::this_thread::sleep_for(std::chrono::nanoseconds(duration.ns));
  }
};

// -- the files --

std::string encode(const LeaseOwner& owner) {
  const json object = {{"version", 1},
                       {"epoch", owner.epoch},
                       {"host", owner.host},
                       {"boot_id", owner.boot_id},
                       {"pid", owner.pid},
                       {"start_time", owner.start_time},
                       {"batch_job", owner.batch_job},
                       {"counter", owner.counter},
                       {"released", owner.released},
                       {"since", owner.since_unix_ms},
                       {"beat", owner.beat_unix_ms}};
  return object.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

template <class T>
void get(const json& object, const char* name, T& value) {
  const auto found = object.find(name);
  if (found == object.end()) return;
  if constexpr (std::is_same_v<T, std::string>) {
    if (found->is_string()) value = found->template get<std::string>();
  } else if constexpr (std::is_same_v<T, bool>) {
    if (found->is_boolean()) value = found->template get<bool>();
  } else {
    if (found->is_number_integer()) value = found->template get<T>();
  }
}

// nullopt if the file is absent or makes no sense.
std::optional<LeaseOwner> read_owner(Files& files, const path& file) {
  const auto text = files.read(file);
  if (!text) return {};
  const json object = json::parse(*text, nullptr, false);
  if (!object.is_object()) return {};
  LeaseOwner owner;
  get(object, "epoch", owner.epoch);
  get(object, "host", owner.host);
  get(object, "boot_id", owner.boot_id);
  get(object, "pid", owner.pid);
  get(object, "start_time", owner.start_time);
  get(object, "batch_job", owner.batch_job);
  get(object, "counter", owner.counter);
  get(object, "released", owner.released);
  get(object, "since", owner.since_unix_ms);
  get(object, "beat", owner.beat_unix_ms);
  return owner;
}

// N of a name that is prefix N suffix; else 0.
uint32_t number_in(std::string_view name, std::string_view prefix, std::string_view suffix) {
  if (name.size() <= prefix.size() + suffix.size() || !name.starts_with(prefix) ||
      !name.ends_with(suffix)) {
    return 0;
  }
  name.remove_prefix(prefix.size());
  name.remove_suffix(suffix.size());
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc{} && end == name.data() + name.size() ? number : 0;
}

path claim_path(const path& directory, uint32_t epoch) {
  return directory / ("lease." + std::to_string(epoch));
}

struct Claims {
  std::vector<uint32_t> epochs;  // of the claims that are there
  uint32_t newest = 0;
  uint32_t newest_journal = 0;  // claims may have been deleted by hand: epochs are never reused
};

Expected<Claims> list_claims(Files& files, const path& directory) {
  const auto names = files.list(directory);
  if (!names) return names.error();
  Claims claims;
  for (const std::string& name : *names) {
    if (const uint32_t epoch = number_in(name, "lease.", ""); epoch != 0) {
      claims.epochs.push_back(epoch);
      claims.newest = std::max(claims.newest, epoch);
    }
    claims.newest_journal = std::max(claims.newest_journal, number_in(name, "journal.", ".jsonl"));
  }
  return claims;
}

// The owner of the newest claim, with its last beat.
LeaseOwner owner_of(Files& files, const path& directory, uint32_t epoch) {
  const auto beat = read_owner(files, directory / kBeatFile);
  if (beat && beat->epoch == epoch) return *beat;
  LeaseOwner owner = read_owner(files, claim_path(directory, epoch)).value_or(LeaseOwner{});
  owner.epoch = epoch;
  return owner;
}

// -- who is alive --

struct Judgement {
  LeaseView::Alive alive = LeaseView::Alive::kUnknown;
  std::string why;  // kNo
};

Judgement judge(const LeaseOwner& owner, LeaseHost& host) {
  using Alive = LeaseView::Alive;
  if (owner.released) return {Alive::kNo, "it had ended in order"};
  const LeaseOwner self = host.self();
  if (owner.host != self.host || owner.host.empty()) return {};
  if (owner.boot_id != self.boot_id) return {Alive::kNo, "that host was restarted since"};
  const auto start_time = host.start_time_of(owner.pid);
  if (!start_time) return {Alive::kNo, "that process is gone"};
  if (*start_time != owner.start_time) {
    return {Alive::kNo, "that process is gone, its number belongs to another one"};
  }
  return {Alive::kYes, ""};
}

std::string time_text(int64_t unix_ms) {
  const auto seconds = static_cast<std::time_t>(unix_ms / 1000);
  std::tm parts{};
  std::array<char, 32> text{};
  ::localtime_r(&seconds, &parts);
  (void)std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return text.data();
}

std::string describe(const LeaseOwner& owner) {
  if (owner.host.empty()) return "an owner that left no name (its lease file is damaged)";
  std::string text = "process " + std::to_string(owner.pid) + " on host '" + owner.host + "'";
  if (!owner.batch_job.empty()) text += " (batch job " + owner.batch_job + ")";
  if (owner.since_unix_ms != 0) text += ", since " + time_text(owner.since_unix_ms);
  return text;
}

Error busy(const path& directory, const LeaseOwner& owner) {
  return {"the run directory '" + directory.string() + "' is in use by " + describe(owner) +
              "; wait until that run ends, or stop it with: sluice stop '" + directory.string() +
              "'",
          EBUSY};
}

Error busy_unknown(const path& directory, const LeaseOwner& owner) {
  return {"the run directory '" + directory.string() + "' belongs to " + describe(owner) +
              ", and from this host it cannot be seen whether that still runs; try again on that "
              "host, or start the run again, which waits for its heartbeat",
          EBUSY};
}

// Watches the owner's counter. Done: it stood still, or the owner released: gone. EBUSY: it lives.
Status wait_until_gone(Files& files, LeaseHost& host, const path& directory,
                       const LeaseOwner& owner, scheduler::Duration stale_after) {
  const scheduler::Instant deadline = host.now() + stale_after;
  while (host.now() < deadline) {
    host.sleep(std::min(kLookEvery, deadline - host.now()));
    const auto claims = list_claims(files, directory);
    if (!claims) return claims.error();
    const LeaseOwner seen = owner_of(files, directory, claims->newest);
    if (seen.epoch != owner.epoch) return busy(directory, seen);
    if (seen.released) return Done{};
    if (seen.counter != owner.counter) return busy(directory, seen);
  }
  return Done{};
}

// An Error if the owner lives; else the note that says whom we follow, "" if it had released.
Expected<std::string> note_if_gone(Files& files, LeaseHost& host, const path& directory,
                                   const LeaseOwner& owner, scheduler::Duration stale_after) {
  Judgement judgement = judge(owner, host);
  if (judgement.alive == LeaseView::Alive::kYes) return busy(directory, owner);
  if (judgement.alive == LeaseView::Alive::kUnknown) {
    if (stale_after.ns <= 0) return busy_unknown(directory, owner);
    const Status gone = wait_until_gone(files, host, directory, owner, stale_after);
    if (!gone) return gone.error();
    judgement.why = "no heartbeat for " + std::to_string(stale_after.ns / 1'000'000'000) + " s";
  }
  if (owner.released) return std::string();
  return "took over from " + describe(owner) + ": " + judgement.why;
}

// Puts the claim in place; EBUSY if another taker was faster.
Status claim(Files& files, const path& directory, const LeaseOwner& owner) {
  const path own = directory / ("lease.new." + owner.host + "." + std::to_string(owner.pid));
  const std::string text = encode(owner);
  const Status written = files.replace(own, text);
  if (!written) return written;
  const Status linked = files.link(own, claim_path(directory, owner.epoch));
  const Status removed = files.remove(own);
  if (!linked && linked.error().code != EEXIST) return linked;
  // NFS may do the link, lose the answer and say EEXIST to its own repetition: the content decides.
  const auto there = files.read(claim_path(directory, owner.epoch));
  const bool won = there.ok() && *there == text;
  const auto claims = list_claims(files, directory);
  if (!claims) return claims.error();
  // A slow taker may have linked a claim that was removed meanwhile: the greatest epoch decides.
  if (!won || claims->newest != owner.epoch) {
    return busy(directory, owner_of(files, directory, claims->newest));
  }
  SLUICE_FAULT_POINT("lease.claimed");
  for (const uint32_t epoch : claims->epochs) {
    if (epoch >= owner.epoch) continue;
    const Status cleared = files.remove(claim_path(directory, epoch));
    if (!cleared) return cleared;
  }
  return removed;
}

}  // namespace

LeaseHost& real_lease_host() {
  static RealLeaseHost host;
  return host;
}

Lease::Lease(Files& files, LeaseHost& host, path directory, LeaseOwner owner, std::string note)
    : files_(&files),
      host_(&host),
      directory_(std::move(directory)),
      owner_(std::move(owner)),
      note_(std::move(note)) {}

Expected<Lease> Lease::take(const path& run_directory, scheduler::Duration stale_after) {
  return take(real_files(), real_lease_host(), run_directory, stale_after);
}

Expected<Lease> Lease::take(Files& files, LeaseHost& host, const path& run_directory,
                            scheduler::Duration stale_after) {
  const auto claims = list_claims(files, run_directory);
  if (!claims) return claims.error();
  std::string note;
  if (claims->newest != 0) {
    const LeaseOwner before = owner_of(files, run_directory, claims->newest);
    auto gone = note_if_gone(files, host, run_directory, before, stale_after);
    if (!gone) return gone.error();
    note = std::move(*gone);
  }
  LeaseOwner owner = host.self();
  owner.epoch = std::max(claims->newest, claims->newest_journal) + 1;
  owner.since_unix_ms = owner.beat_unix_ms = host.unix_time_ms();
  const Status claimed = claim(files, run_directory, owner);
  if (!claimed) return claimed.error();
  Lease lease(files, host, run_directory, std::move(owner), std::move(note));
  const Status written = lease.write();
  if (!written) return written.error();
  SLUICE_FAULT_POINT("lease.taken");
  return lease;
}

Status Lease::write() {
  const auto claims = list_claims(*files_, directory_);
  if (!claims) return claims.error();
  if (claims->newest != owner_.epoch) {
    const std::string who =
        claims->newest == 0
            ? "its lease was removed"
            : "it was taken over by " + describe(owner_of(*files_, directory_, claims->newest));
    return Error{"the run directory '" + directory_.string() + "' is no longer ours: " + who +
                     "; this run stops at once and records nothing more",
                 ESTALE};
  }
  owner_.beat_unix_ms = host_->unix_time_ms();
  return files_->replace(directory_ / kBeatFile, encode(owner_));
}

Status Lease::beat() {
  ++owner_.counter;
  const Status written = write();
  SLUICE_FAULT_POINT("lease.beaten");
  return written;
}

Status Lease::release() {
  owner_.released = true;
  return write();
}

Expected<LeaseView> view_lease(const path& run_directory) {
  return view_lease(real_files(), real_lease_host(), run_directory);
}

Expected<LeaseView> view_lease(Files& files, LeaseHost& host, const path& run_directory) {
  const auto claims = list_claims(files, run_directory);
  if (!claims) return claims.error();
  if (claims->newest == 0) {
    return Error{"nobody has run in '" + run_directory.string() + "' yet: it has no lease", ENOENT};
  }
  LeaseView view;
  view.owner = owner_of(files, run_directory, claims->newest);
  view.alive = judge(view.owner, host).alive;
  view.beat_age_ms = std::max<int64_t>(0, host.unix_time_ms() - view.owner.beat_unix_ms);
  if (view.alive == LeaseView::Alive::kUnknown && view.beat_age_ms > kSilentAfterMs)
    view.alive = LeaseView::Alive::kSilent;
  return view;
}

}  // namespace sluice::io
