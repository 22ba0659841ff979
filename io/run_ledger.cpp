#include "io/run_ledger.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <utility>

#include "io/journal_scan.h"

namespace sluice::io {

namespace {

using scheduler::AttemptId;
using Instance = RunLedger::Instance;
using Failure = RunLedger::Failure;
using State = RunLedger::State;
using Submission = RunLedger::Submission;

constexpr size_t kBlockBytes = size_t{1} << 20U;
// Last lines of stderr, of all failures together; equal ones count once.
constexpr size_t kFailureTextBytesMax = size_t{64} << 20U;
constexpr size_t kInstancesReservedMax = 2'000'000;  // before there is a record of them

AttemptId attempt_of(std::string_view text) {
  const size_t dot = text.find('.');
  uint32_t epoch = 0;
  uint32_t number = 0;
  if (dot == std::string_view::npos) return {};
  std::from_chars(text.data(), text.data() + dot, epoch);
  std::from_chars(text.data() + dot + 1, text.data() + text.size(), number);
  return AttemptId::make(epoch, number);
}

// Instances by (task, item): open addressing, since 10^6 nodes of a map cost a second. A place
// holds part of the hash, so that a search looks at an instance only when it has found it.
class InstanceIndex {
 public:
  explicit InstanceIndex(std::vector<Instance>& instances) : instances_(instances) {
    places_.resize(1024);
  }
  // The place of that instance, or the one where it belongs: its id is kEmpty then.
  uint32_t& find(uint32_t task, std::string_view item) {
    if ((instances_.size() + 1) * 2 > places_.size()) grow(places_.size() * 2);
    const uint64_t hash = XXH3_64bits_withSeed(item.data(), item.size(), task);
    const auto mark = static_cast<uint32_t>(hash);
    for (size_t at = home_of(mark);; at = (at + 1) & (places_.size() - 1)) {
      Place& place = places_[at];
      if (place.id == kEmpty) {
        place.mark = mark;
        return place.id;
      }
      if (place.mark != mark) continue;
      const Instance& found = instances_[place.id];
      if (found.task == task && found.item == item) return place.id;
    }
  }
  void reserve(size_t count) {
    if (count * 2 > places_.size()) grow(std::bit_ceil(count * 2));
  }
  static constexpr uint32_t kEmpty = UINT32_MAX;

 private:
  struct Place {
    uint32_t mark = 0;
    uint32_t id = kEmpty;
  };
  [[nodiscard]] size_t home_of(uint32_t mark) const {
    return (mark * uint64_t{0x9E3779B97F4A7C15}) >> 32U & (places_.size() - 1);
  }
  void grow(size_t count) {
    std::vector<Place> old(count);
    old.swap(places_);
    for (const Place& place : old) {
      if (place.id == kEmpty) continue;
      size_t at = home_of(place.mark);
      while (places_[at].id != kEmpty) at = (at + 1) & (places_.size() - 1);
      places_[at] = place;
    }
  }
  std::vector<Instance>& instances_;
  std::vector<Place> places_;
};

class LedgerBuilder final : public LineVisitor {
 public:
  LedgerBuilder(RunLedger& ledger, LedgerMark mark, LedgerDetail detail)
      : ledger_(ledger), mark_(mark), detail_(detail), index_(ledger.instances) {}

  void begin_segment(const record::Run& run) override {
    ledger_.submissions.push_back({});
    submission().run = run;
    submission().last_time_ms = run.unix_time_ms;
    cpus_.clear();
    for (const record::RunTask& task : run.tasks) {
      const uint32_t id = task_id(task.name);
      if (cpus_.size() <= id) cpus_.resize(id + 1, 1);
      cpus_[id] = std::max(1, task.cpus);
    }
    for (const uint32_t id : gone_) ledger_.instances[id].gone = false;
    gone_.clear();
    if (run.fresh) forget_states();
    if (detail_ == LedgerDetail::kTroubled) return;
    const size_t expected = std::min(static_cast<size_t>(run.instances), kInstancesReservedMax);
    if (ledger_.instances.capacity() < expected) ledger_.instances.reserve(expected);
    index_.reserve(expected);
  }

  void take(std::string_view kind, std::string_view line, uint64_t end) override {
    counted_ = submission().run.epoch == mark_.epoch && end > mark_.bytes;
    if (kind == "done") {
      take_done(line);
    } else if (kind == "attempt") {
      take_attempt(line);
    } else if (kind == "skipped") {
      take_skipped(line);
    } else if (kind == "restored") {
      if (detail_ == LedgerDetail::kAll || is_listed(line))
        ledger_.instances[instance_id(read(line))].state = State::kDone;
    } else if (kind == "gone") {
      const Fields& fields = read(line);
      gone_.push_back(instance_id(fields));
      ledger_.instances[gone_.back()].gone = true;
    } else if (kind == "worker" || kind == "end") {
      take_rare(line);
    }
  }

 private:
  struct Fields {
    std::string_view task, item;
    std::string task_text, item_text;  // owners where the text had to be unescaped
    AttemptId attempt;
    uint32_t worker = 0;
    int64_t unix_time_ms = 0;
    scheduler::Usage usage;
    std::string cause, detail, stderr_tail, because;
    int32_t exit_code = 0, signal = 0;
    bool final = false;
  };

  // Of a fresh run: what was before is history.
  void forget_states() {
    for (Instance& instance : ledger_.instances) {
      instance.state = State::kOpen;
      instance.attempt = {};
      instance.because = {};
    }
  }

  Submission& submission() { return ledger_.submissions.back(); }

  static std::string_view view(const MemberCursor& member, std::string& owner) {
    if (member.plain()) return member.raw();
    owner = member.text();
    return owner;
  }

  // Members that a record lacks stay empty. A done record's outputs come last and are not read.
  const Fields& read(std::string_view line) {
    fields_ = Fields();
    Fields& fields = fields_;
    for (MemberCursor member(line); member.next();) {
      const std::string_view name = member.name();
      if (name == "task") {
        fields.task = view(member, fields.task_text);
      } else if (name == "item") {
        fields.item = view(member, fields.item_text);
      } else if (name == "attempt") {
        fields.attempt = attempt_of(member.raw());
      } else if (name == "worker") {
        fields.worker = static_cast<uint32_t>(member.number());
      } else if (name == "time") {
        fields.unix_time_ms = member.number();
      } else if (name == "wall_ns") {
        fields.usage.wall = {member.number()};
      } else if (name == "cpu_ns") {
        fields.usage.cpu = {member.number()};
      } else if (name == "memory_peak") {
        fields.usage.memory_peak_bytes = member.number();
      } else if (name == "out") {
        break;
      } else {
        read_failure(member, fields);
      }
    }
    return fields;
  }
  static void read_failure(const MemberCursor& member, Fields& fields) {
    const std::string_view name = member.name();
    if (name == "cause") {
      fields.cause = member.text();
    } else if (name == "exit_code") {
      fields.exit_code = static_cast<int32_t>(member.number());
    } else if (name == "signal") {
      fields.signal = static_cast<int32_t>(member.number());
    } else if (name == "detail") {
      fields.detail = member.text();
    } else if (name == "stderr") {
      fields.stderr_tail = member.text();
    } else if (name == "final") {
      fields.final = member.raw() == "true";
    } else if (name == "because") {
      fields.because = member.text();
    }
  }

  uint32_t task_id(std::string_view name) {
    if (last_task_ < ledger_.tasks.size() && ledger_.tasks[last_task_] == name) return last_task_;
    const auto found = task_ids_.find(std::string(name));
    last_task_ =
        found == task_ids_.end() ? static_cast<uint32_t>(ledger_.tasks.size()) : found->second;
    if (found == task_ids_.end()) {
      task_ids_.emplace(name, last_task_);
      ledger_.tasks.emplace_back(name);
      ledger_.since.emplace_back();
    }
    return last_task_;
  }

  uint32_t instance_id(const Fields& fields) {
    const uint32_t task = task_id(fields.task);
    uint32_t& slot = index_.find(task, fields.item);
    if (slot != InstanceIndex::kEmpty) return slot;
    slot = static_cast<uint32_t>(ledger_.instances.size());
    Instance instance;
    instance.task = task;
    instance.item = ledger_.texts.keep(fields.item);
    ledger_.instances.push_back(instance);
    return static_cast<uint32_t>(ledger_.instances.size() - 1);
  }

  Instance& note_attempt(const Fields& fields, uint32_t id) {
    Instance& instance = ledger_.instances[id];
    instance.attempt = fields.attempt;
    instance.worker = fields.worker;
    instance.unix_time_ms = fields.unix_time_ms;
    instance.usage = fields.usage;
    instance.because = {};
    Submission& now = submission();
    now.last_time_ms = std::max(now.last_time_ms, fields.unix_time_ms);
    const int32_t cpus = instance.task < cpus_.size() ? cpus_[instance.task] : 1;
    now.busy = now.busy + fields.usage.wall * cpus;
    return instance;
  }

  void take_done(std::string_view line) {
    if (detail_ == LedgerDetail::kTroubled && !is_listed(line)) {
      count_done(last_task_);
      return;
    }
    const Fields& fields = read(line);
    Instance& instance = note_attempt(fields, instance_id(fields));
    instance.state = State::kDone;
    count_done(instance.task);
  }
  void count_done(uint32_t task) {
    Submission& now = submission();
    ++now.done;
    if (now.done_per_task.size() <= task) now.done_per_task.resize(task + 1);
    ++now.done_per_task[task];
    if (counted_) ++ledger_.since[task].done;
  }
  // Task and item are a record's first members. Afterwards last_task_ is its task.
  bool is_listed(std::string_view line) {
    std::string task_text;
    std::string item_text;
    MemberCursor member(line);
    bool at_task = false;
    while (!at_task && member.next()) at_task = member.name() == "task";
    const uint32_t task = task_id(at_task ? view(member, task_text) : "");
    const std::string_view item =
        member.next() && member.name() == "item" ? view(member, item_text) : "";
    return index_.find(task, item) != InstanceIndex::kEmpty;
  }

  void take_attempt(std::string_view line) {
    const Fields& fields = read(line);
    const uint32_t id = instance_id(fields);
    Instance& instance = note_attempt(fields, id);
    instance.state = fields.final ? State::kFailed : State::kOpen;
    ++instance.failures;
    ++submission().failed_attempts;
    if (counted_ && fields.final) ++ledger_.since[instance.task].failed;
    Failure failure;
    failure.instance = id;
    failure.previous =
        std::exchange(instance.last_failure, static_cast<uint32_t>(ledger_.failures.size()));
    failure.attempt = fields.attempt;
    failure.worker = fields.worker;
    failure.exit_code = fields.exit_code;
    failure.signal = fields.signal;
    failure.final = fields.final;
    failure.unix_time_ms = fields.unix_time_ms;
    failure.usage = fields.usage;
    failure.cause = ledger_.texts.intern(fields.cause);
    failure.detail = keep_failure_text(fields.detail);
    failure.stderr_tail = keep_failure_text(fields.stderr_tail);
    ledger_.failures.push_back(failure);
  }

  std::string_view keep_failure_text(const std::string& text) {
    if (ledger_.texts.bytes() > kFailureTextBytesMax + item_bytes_allowance()) return "";
    return ledger_.texts.intern(text);
  }
  // Items lie in the same arena and are not to be counted.
  [[nodiscard]] size_t item_bytes_allowance() const { return ledger_.instances.size() * 64; }

  void take_skipped(std::string_view line) {
    const Fields& fields = read(line);
    Instance& instance = ledger_.instances[instance_id(fields)];
    instance.state = State::kSkipped;
    instance.because = ledger_.texts.intern(fields.because);
    if (counted_) ++ledger_.since[instance.task].skipped;
  }

  void take_rare(std::string_view line) {
    auto record = decode_record(line);
    if (!record) return;  // its sum is right: a later version wrote it
    Submission& now = submission();
    if (auto* end = std::get_if<record::End>(&*record)) {
      now.last_time_ms = std::max(now.last_time_ms, end->unix_time_ms);
      now.end = std::move(*end);
    }
    if (auto* worker = std::get_if<record::Worker>(&*record)) {
      now.last_time_ms = std::max(now.last_time_ms, worker->unix_time_ms);
      if (worker->state == "lost") ++now.lost_workers;
      const auto known =
          std::find_if(now.workers.begin(), now.workers.end(),
                       [&](const record::Worker& one) { return one.worker == worker->worker; });
      if (worker->state == "set aside") now.set_aside.push_back(*worker);
      if (known == now.workers.end()) now.workers.push_back(std::move(*worker));
    }
  }

  RunLedger& ledger_;
  LedgerMark mark_;
  LedgerDetail detail_;
  Fields fields_;  // of the record at hand: its views may point into it
  bool counted_ = false;
  InstanceIndex index_;
  std::unordered_map<std::string, uint32_t> task_ids_;
  uint32_t last_task_ = 0;  // records of one task come in rows
  std::vector<int32_t> cpus_;
  std::vector<uint32_t> gone_;
};

}  // namespace

std::string_view TextArena::keep(std::string_view text) {
  if (text.empty()) return {};
  if (text.size() > block_left_) {
    const size_t size = std::max(kBlockBytes, text.size());
    blocks_.push_back(std::make_unique<char[]>(size));
    block_at_ = blocks_.back().get();
    block_left_ = size;
  }
  std::memcpy(block_at_, text.data(), text.size());
  const std::string_view kept(block_at_, text.size());
  block_at_ += text.size();
  block_left_ -= text.size();
  bytes_ += text.size();
  return kept;
}

std::string_view TextArena::intern(std::string_view text) {
  if (text.empty()) return {};
  const auto found = interned_.find(text);
  if (found != interned_.end()) return found->second;
  const std::string_view kept = keep(text);
  interned_.emplace(kept, kept);
  return kept;
}

std::string RunLedger::host_of(AttemptId attempt, uint32_t worker) const {
  for (const Submission& submission : submissions) {
    if (submission.run.epoch != attempt.epoch()) continue;
    for (const record::Worker& one : submission.workers) {
      if (one.worker == worker) return one.host;
    }
  }
  return "";
}

std::string RunLedger::label(const Instance& instance) const {
  const std::string& task = tasks[instance.task];
  return instance.item.empty() ? task : task + "[" + std::string(instance.item) + "]";
}

Expected<RunLedger> read_ledger(const std::filesystem::path& run_directory, LedgerMark mark,
                                LedgerDetail detail) {
  RunLedger ledger;
  LedgerBuilder builder(ledger, mark, detail);
  Expected<ScanEnd> end = scan_journal(run_directory, builder);
  if (!end) return end.error();
  ledger.newest_length = end->newest_length;
  ledger.messages = std::move(end->messages);
  return ledger;
}

}  // namespace sluice::io
