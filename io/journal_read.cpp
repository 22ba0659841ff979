// Reading the journal: one record from its line, one segment, and the chain of segments.

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "io/journal.h"
#include "io/journal_scan.h"
#include "io/sources.h"

namespace sluice::io {

namespace {

namespace dom = simdjson::dom;

template <class T>
bool parse_number(std::string_view text, T& number, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc{} && end == text.data() + text.size();
}

// Members of a JSON object; absent ones and ones of another type read as zero or empty, since a
// later version may have written the record.
class Members {
 public:
  explicit Members(dom::object object) : object_(object) {}

  [[nodiscard]] std::string text(std::string_view name) const {
    std::string_view found;
    if (find(name).get(found) == simdjson::SUCCESS) return std::string(found);
    return find(std::string(name) + "_hex").get(found) == simdjson::SUCCESS ? from_hex_bytes(found)
                                                                            : "";
  }
  template <class T>
  [[nodiscard]] T number(std::string_view name) const {
    int64_t number = 0;
    if (find(name).get(number) == simdjson::SUCCESS) return narrow<T>(number);
    uint64_t large = 0;
    return find(name).get(large) == simdjson::SUCCESS ? narrow<T>(large) : T{};
  }
  [[nodiscard]] bool flag(std::string_view name) const {
    bool flag = false;
    return find(name).get(flag) == simdjson::SUCCESS && flag;
  }
  [[nodiscard]] bool has(std::string_view name) const {
    return find(name).error() == simdjson::SUCCESS;
  }
  [[nodiscard]] scheduler::Hash128 hash(std::string_view name) const {
    std::string_view found;
    if (find(name).get(found) != simdjson::SUCCESS) return {};
    const auto parsed = from_hex(found);
    return parsed.ok() ? *parsed : scheduler::Hash128{};
  }
  [[nodiscard]] scheduler::AttemptId attempt() const {
    const std::string written = text("attempt");
    const size_t dot = written.find('.');
    uint32_t epoch = 0;
    uint32_t number = 0;
    if (dot == std::string::npos ||
        !parse_number(std::string_view(written).substr(0, dot), epoch) ||
        !parse_number(std::string_view(written).substr(dot + 1), number)) {
      return {};
    }
    return scheduler::AttemptId::make(epoch, number);
  }
  [[nodiscard]] scheduler::Usage usage() const {
    return {
        {number<int64_t>("wall_ns")}, {number<int64_t>("cpu_ns")}, number<int64_t>("memory_peak")};
  }
  template <class F>
  void each(std::string_view name, F&& function) const {
    dom::array found;
    if (find(name).get(found) != simdjson::SUCCESS) return;
    for (const dom::element element : found) {
      dom::object object;
      if (element.get(object) == simdjson::SUCCESS) function(Members(object));
    }
  }

 private:
  [[nodiscard]] simdjson::simdjson_result<dom::element> find(std::string_view name) const {
    return object_.at_key(name);
  }
  template <class T, class Wide>
  static T narrow(Wide wide) {
    return std::in_range<T>(wide) ? static_cast<T>(wide) : T{};
  }
  static std::string from_hex_bytes(std::string_view digits) {
    std::string bytes;
    for (size_t i = 0; i + 1 < digits.size(); i += 2) {
      unsigned char byte = 0;
      if (!parse_number(digits.substr(i, 2), byte, 16)) return "";
      bytes += static_cast<char>(byte);
    }
    return bytes;
  }
  dom::object object_;
};

record::Run read_run(const Members& m) {
  record::Run r;
  r.version = m.number<int>("version");
  r.run_uuid = m.text("uuid");
  r.epoch = m.number<uint32_t>("epoch");
  r.spec_hash = m.text("spec_hash");
  r.host = m.text("host");
  r.unix_time_ms = m.number<int64_t>("time");
  r.previous_epoch = m.number<uint32_t>("previous_epoch");
  r.previous_length = m.number<uint64_t>("previous_length");
  r.instances = m.number<size_t>("instances");
  r.fresh = m.flag("fresh");
  m.each("params",
         [&](const Members& p) { r.params.emplace_back(p.text("name"), p.text("value")); });
  r.spec = m.text("spec");
  r.command = m.text("command");
  m.each("tasks", [&](const Members& t) {
    r.tasks.push_back({t.text("name"), t.number<size_t>("instances"), t.number<int32_t>("cpus"),
                       t.number<int64_t>("memory"), t.number<int64_t>("timeout_ms")});
  });
  m.each("versions",
         [&](const Members& v) { r.versions.emplace_back(v.text("name"), v.text("version")); });
  return r;
}

record::KeyParts read_key_parts(const Members& m) {
  record::KeyParts r;
  r.task = m.text("task");
  m.each("names", [&](const Members& n) { r.names.push_back(n.text("name")); });
  return r;
}

record::DoneRecord read_done(const Members& m) {
  record::DoneRecord r;
  r.task = m.text("task");
  r.item = m.text("item");
  r.attempt = m.attempt();
  r.key = m.hash("key");
  r.static_key = m.hash("static_key");
  r.usage = m.usage();
  r.worker = m.number<uint32_t>("worker");
  r.unix_time_ms = m.number<int64_t>("time");
  r.parts = m.text("parts");
  m.each("out", [&](const Members& o) {
    r.outputs.push_back({o.text("name"), o.hash("content"), o.number<int64_t>("bytes"),
                         o.has("value") || o.has("value_hex"), o.text("value")});
  });
  return r;
}

record::Durable read_durable(const Members& m) {
  return {m.text("task"),
          m.text("item"),
          m.text("output"),
          m.text("path"),
          m.text("temporary"),
          m.hash("content"),
          m.number<int64_t>("bytes"),
          m.number<int64_t>("modified_ns")};
}

record::Attempt read_attempt(const Members& m) {
  record::Attempt r;
  r.task = m.text("task");
  r.item = m.text("item");
  r.attempt = m.attempt();
  r.cause = m.text("cause");
  r.exit_code = m.number<int32_t>("exit_code");
  r.signal = m.number<int32_t>("signal");
  r.detail = m.text("detail");
  r.stderr_tail = m.text("stderr");
  r.final = m.flag("final");
  r.worker = m.number<uint32_t>("worker");
  r.usage = m.usage();
  r.unix_time_ms = m.number<int64_t>("time");
  return r;
}

Record read_record(const Members& m) {
  const std::string kind = m.text("t");
  if (kind == "done") return read_done(m);
  if (kind == "durable") return read_durable(m);
  if (kind == "parts") return read_key_parts(m);
  if (kind == "sync") return record::Sync{};
  if (kind == "attempt") return read_attempt(m);
  if (kind == "skipped") return record::Skipped{m.text("task"), m.text("item"), m.text("because")};
  if (kind == "removed") return record::Removed{m.text("task"), m.text("item"), m.text("output")};
  if (kind == "run") return read_run(m);
  if (kind == "gone") return record::Gone{m.text("task"), m.text("item")};
  if (kind == "restored") return record::Restored{m.text("task"), m.text("item")};
  if (kind == "end") {
    return record::End{m.text("outcome"), m.number<int>("exit_code"), m.number<int64_t>("time")};
  }
  if (kind == "worker") {
    return record::Worker{m.number<uint32_t>("worker"),
                          m.text("state"),
                          m.text("host"),
                          {m.number<int32_t>("cpus"), m.number<int64_t>("memory")},
                          m.number<int64_t>("time")};
  }
  return record::Unknown{kind};
}

struct Segment {
  SegmentHead head;
  std::string content;
};

size_t line_end(std::string_view content, size_t begin) {
  const size_t end = content.find('\n', begin);
  return end == std::string_view::npos ? content.size() : end;
}

// The line is whole only with its newline: without, more of it was to come.
Expected<Record> read_line(std::string_view content, size_t begin, size_t end) {
  if (end == content.size()) return Error{"it is torn: its line has no end"};
  return decode_record(content.substr(begin, end - begin));
}

// All segments, oldest first.
Expected<std::vector<Segment>> load_segments(Files& files, const std::filesystem::path& folder) {
  const auto names = files.list(folder);
  if (!names) return names.error();
  std::vector<Segment> segments;
  for (const std::string& name : *names) {
    const uint32_t epoch = segment_epoch(name);
    if (epoch == 0) continue;
    auto content = files.read(folder / name);
    if (!content) return content.error();
    segments.push_back(
        {{epoch, name, content->size(), first_run_record(*content)}, std::move(*content)});
  }
  std::sort(segments.begin(), segments.end(),
            [](const Segment& a, const Segment& b) { return a.head.epoch < b.head.epoch; });
  return segments;
}

// Puts records into the state, in order.
class Merge {
 public:
  explicit Merge(JournalState& state) : state_(state) {}

  void begin_segment() {
    pending_.clear();
    part_names_.clear();
    state_.workers.clear();
    state_.attempts.clear();
    state_.end.reset();
  }
  void apply(Record&& record) {
    std::visit([this](auto& r) { take(std::move(r)); }, record);
  }

 private:
  JournalState::InstanceFacts& facts(const std::string& task, const std::string& item) {
    return state_.instances[{task, item}];
  }
  void seen(int64_t unix_time_ms) {
    if (unix_time_ms == 0) return;
    if (state_.first_time_ms == 0) state_.first_time_ms = unix_time_ms;
    state_.last_time_ms = std::max(state_.last_time_ms, unix_time_ms);
  }
  void take(record::Run&& r) {
    seen(r.unix_time_ms);
    state_.run_uuid = r.run_uuid;
    if (r.fresh) state_.instances.clear();
    state_.last_run = std::move(r);
  }
  void take(record::Worker&& r) {
    for (record::Worker& known : state_.workers) {
      if (known.worker != r.worker) continue;
      known.state = r.state;  // later records need not repeat what does not change
      if (!r.host.empty()) known = std::move(r);
      return;
    }
    state_.workers.push_back(std::move(r));
  }
  void take(record::KeyParts&& r) {
    part_names_[r.task] = state_.key_parts.size();
    state_.key_parts.push_back(std::move(r));
  }
  void take(record::DoneRecord&& r) {
    seen(r.unix_time_ms);
    JournalState::InstanceFacts& f = facts(r.task, r.item);
    for (const record::Output& output : r.outputs) {
      const auto durable = f.durable.find(output.name);
      if (durable == f.durable.end() || durable->second.content == output.content) continue;
      f.durable.erase(durable);
      f.unsynced.erase(output.name);
    }
    const auto names = part_names_.find(r.task);
    f.part_names = names == part_names_.end() ? std::nullopt : std::optional(names->second);
    f.last_failure.reset();
    f.skipped_because.clear();
    f.done = std::move(r);
    f.done_synced = false;
    pending_.push_back(&f);
  }
  void take(record::Durable&& r) {
    JournalState::InstanceFacts& f = facts(r.task, r.item);
    f.unsynced.insert(r.output);
    std::string output = r.output;
    f.durable.insert_or_assign(std::move(output), std::move(r));
    pending_.push_back(&f);
  }
  void take(record::Attempt&& r) {
    seen(r.unix_time_ms);
    state_.attempts.push_back(r);
    JournalState::InstanceFacts& f = facts(r.task, r.item);
    f.skipped_because.clear();
    f.last_failure = std::make_unique<record::Attempt>(std::move(r));
  }
  void take(record::Skipped&& r) { facts(r.task, r.item).skipped_because = std::move(r.because); }
  void take(record::Removed&& r) {
    JournalState::InstanceFacts& f = facts(r.task, r.item);
    f.durable.erase(r.output);
    f.unsynced.erase(r.output);
  }
  void take(record::Gone&&) {}
  void take(record::Restored&& r) {
    JournalState::InstanceFacts& f = facts(r.task, r.item);
    f.skipped_because.clear();
    f.last_failure.reset();
  }
  void take(record::Sync&&) {
    for (JournalState::InstanceFacts* f : pending_) {
      f->done_synced = f->done.has_value();
      f->unsynced.clear();
    }
    pending_.clear();
  }
  void take(record::End&& r) { state_.end = std::move(r); }
  void take(record::Unknown&&) {}

  JournalState& state_;
  std::map<std::string, size_t> part_names_;           // of this segment: index into key_parts
  std::vector<JournalState::InstanceFacts*> pending_;  // since the last sync; map nodes stay
};

// Reads at most `limit` bytes of the segment; gives the length of what was good.
uint64_t read_segment(const Segment& segment, uint64_t limit, Merge& merge, JournalState& state) {
  const std::string_view content =
      std::string_view(segment.content)
          .substr(0, std::min<uint64_t>(limit, segment.content.size()));
  merge.begin_segment();
  size_t begin = 0;
  for (size_t records = 0; begin < content.size(); ++records) {
    const size_t end = line_end(content, begin);
    auto record = read_line(content, begin, end);
    if (!record) {
      state.messages.push_back(cut_message(segment.head.name, begin, records,
                                           content.size() - begin, record.error().message));
      return begin;
    }
    merge.apply(std::move(*record));
    begin = end + 1;
  }
  if (begin < limit && limit != kWholeSegment) {
    state.messages.push_back(short_message(segment.head.name, begin, limit));
  }
  return begin;
}

}  // namespace

Expected<Record> decode_record(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  const Status whole = check_record_sum(line);
  if (!whole) return whole.error();
  thread_local dom::parser parser;  // its memory is used again
  dom::object object;
  if (parser.parse(line.data(), line.size()).get(object) != simdjson::SUCCESS) {
    return Error{"it is not a JSON object"};
  }
  return read_record(Members(object));
}

Expected<JournalState> read_journal(Files& files, const std::filesystem::path& run_directory) {
  const auto segments = load_segments(files, run_directory);
  if (!segments) return segments.error();
  JournalState state;
  std::vector<SegmentHead> heads;
  for (const Segment& segment : *segments) heads.push_back(segment.head);
  const auto chain = chain_of(run_directory, heads, state.messages);
  if (!chain) return chain.error();
  Merge merge(state);
  for (const SegmentLink& link : *chain) {
    const Segment& segment = (*segments)[link.segment];
    state.epoch = segment.head.epoch;
    state.newest_length = read_segment(segment, link.limit, merge, state);
  }
  return state;
}

Expected<JournalState> read_journal(const std::filesystem::path& run_directory) {
  return read_journal(real_files(), run_directory);
}

void continue_from(const JournalState& state, record::Run& run) {
  if (state.epoch == 0) return;
  run.run_uuid = state.run_uuid;
  run.previous_epoch = state.epoch;
  run.previous_length = state.newest_length;
}

}  // namespace sluice::io
