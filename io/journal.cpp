#include "io/journal.h"

#include <xxhash.h>

#include <array>
#include <utility>

#include "io/fault.h"
#include "io/sources.h"

namespace sluice::io {

namespace {

// Length of the well-formed UTF-8 sequence at `at`, or 0.
size_t utf8_sequence(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
  };
  const auto follows = [&](size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const unsigned low = first == 0xE0 ? 0xA0 : 0x80;   // no overlong form
    const unsigned high = first == 0xED ? 0x9F : 0xBF;  // no surrogate
    return follows(1, low, high) && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned low = first == 0xF0 ? 0x90 : 0x80;
    const unsigned high = first == 0xF4 ? 0x8F : 0xBF;  // up to U+10FFFF
    return follows(1, low, high) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_sequence(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

constexpr char kHexDigits[] = "0123456789abcdef";

void append_hex(std::string& out, std::string_view bytes) {
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += kHexDigits[byte >> 4U];
    out += kHexDigits[byte & 15U];
  }
}

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      append_hex(out, {&c, 1});
    } else {
      out += c;
    }
  }
}

// One record's JSON, member by member. Written by hand because the order of members matters (the
// sum is last) and because this runs once per finished instance.
class Line {
 public:
  explicit Line(const char* kind) {
    out_ = "{\"t\":\"";
    out_ += kind;
    out_ += '"';
  }
  Line& text(std::string_view name, std::string_view value, bool always = false) {
    if (value.empty() && !always) return *this;
    const bool readable = is_utf8(value);
    begin(name, readable ? "" : "_hex");
    out_ += '"';
    readable ? append_escaped(out_, value) : append_hex(out_, value);
    out_ += '"';
    return *this;
  }
  template <class T>
  Line& number(std::string_view name, T value) {
    if (value == 0) return *this;
    begin(name);
    out_ += std::to_string(value);
    return *this;
  }
  Line& flag(std::string_view name, bool value) {
    if (!value) return *this;
    begin(name);
    out_ += "true";
    return *this;
  }
  Line& hash(std::string_view name, scheduler::Hash128 value) {
    return value.known() ? text(name, to_hex(value)) : *this;
  }
  Line& attempt(scheduler::AttemptId id) {
    return text("attempt", std::to_string(id.epoch()) + "." + std::to_string(id.number()));
  }
  Line& usage(const scheduler::Usage& usage) {
    return number("wall_ns", usage.wall.ns)
        .number("cpu_ns", usage.cpu.ns)
        .number("memory_peak", usage.memory_peak_bytes);
  }
  // An array of objects: open(name), then element(), members, end() for each, then close().
  Line& open(std::string_view name) {
    begin(name);
    out_ += '[';
    return *this;
  }
  Line& element() {
    separate();
    out_ += '{';
    return *this;
  }
  Line& end() {
    out_ += '}';
    return *this;
  }
  Line& close() {
    out_ += ']';
    return *this;
  }
  [[nodiscard]] std::string finish() {
    const std::array<char, 17> sum = hex_sum(out_);
    out_ += ",\"sum\":\"";
    out_.append(sum.data(), 16);
    out_ += "\"}\n";
    return std::move(out_);
  }

 private:
  static std::array<char, 17> hex_sum(std::string_view text) {
    std::array<char, 17> digits{};
    uint64_t sum = XXH3_64bits(text.data(), text.size());
    for (size_t i = 16; i-- > 0; sum >>= 4U) digits[i] = kHexDigits[sum & 15U];
    return digits;
  }
  void separate() {
    if (out_.back() != '{' && out_.back() != '[') out_ += ',';
  }
  void begin(std::string_view name, const char* suffix = "") {
    separate();
    out_ += '"';
    out_ += name;
    out_ += suffix;
    out_ += "\":";
  }
  std::string out_;
};

std::string line_of(const record::Run& r) {
  Line line("run");
  line.number("version", r.version)
      .text("uuid", r.run_uuid)
      .number("epoch", r.epoch)
      .number("previous_epoch", r.previous_epoch)
      .number("previous_length", r.previous_length)
      .text("spec_hash", r.spec_hash)
      .text("host", r.host)
      .number("time", r.unix_time_ms)
      .number("instances", r.instances)
      .flag("fresh", r.fresh)
      .open("params");
  for (const auto& [name, value] : r.params) {
    line.element().text("name", name).text("value", value).end();
  }
  line.close().text("spec", r.spec).text("command", r.command).open("tasks");
  for (const record::RunTask& task : r.tasks) {
    line.element()
        .text("name", task.name)
        .number("instances", task.instances)
        .number("cpus", task.cpus)
        .number("memory", task.memory_bytes)
        .number("timeout_ms", task.timeout_ms)
        .end();
  }
  line.close().open("versions");
  for (const auto& [name, version] : r.versions) {
    line.element().text("name", name).text("version", version).end();
  }
  return line.close().finish();
}

std::string line_of(const record::Worker& r) {
  return Line("worker")
      .number("worker", r.worker)
      .text("state", r.state)
      .text("host", r.host)
      .number("cpus", r.resources.cpus)
      .number("memory", r.resources.memory_bytes)
      .number("time", r.unix_time_ms)
      .finish();
}

std::string line_of(const record::KeyParts& r) {
  Line line("parts");
  line.text("task", r.task).open("names");
  for (const std::string& name : r.names) line.element().text("name", name).end();
  return line.close().finish();
}

std::string line_of(const record::DoneRecord& r) {
  Line line("done");
  line.text("task", r.task)
      .text("item", r.item)
      .attempt(r.attempt)
      .hash("key", r.key)
      .hash("static_key", r.static_key)
      .number("worker", r.worker)
      .number("time", r.unix_time_ms)
      .usage(r.usage)
      .text("parts", r.parts)
      .open("out");
  for (const record::Output& output : r.outputs) {
    line.element()
        .text("name", output.name)
        .hash("content", output.content)
        .number("bytes", output.bytes);
    if (output.is_value) line.text("value", output.value, true);
    line.end();
  }
  return line.close().finish();
}

std::string line_of(const record::Durable& r) {
  return Line("durable")
      .text("task", r.task)
      .text("item", r.item)
      .text("output", r.output)
      .text("path", r.path)
      .text("temporary", r.temporary)
      .hash("content", r.content)
      .number("bytes", r.bytes)
      .number("modified_ns", r.modified_ns)
      .finish();
}

std::string line_of(const record::Attempt& r) {
  return Line("attempt")
      .text("task", r.task)
      .text("item", r.item)
      .attempt(r.attempt)
      .text("cause", r.cause)
      .number("exit_code", r.exit_code)
      .number("signal", r.signal)
      .text("detail", r.detail)
      .text("stderr", r.stderr_tail)
      .flag("final", r.final)
      .number("worker", r.worker)
      .number("time", r.unix_time_ms)
      .usage(r.usage)
      .finish();
}

std::string line_of(const record::Skipped& r) {
  return Line("skipped")
      .text("task", r.task)
      .text("item", r.item)
      .text("because", r.because)
      .finish();
}

std::string line_of(const record::Removed& r) {
  return Line("removed")
      .text("task", r.task)
      .text("item", r.item)
      .text("output", r.output)
      .finish();
}

std::string line_of(const record::Gone& r) {
  return Line("gone").text("task", r.task).text("item", r.item).finish();
}

std::string line_of(const record::Restored& r) {
  return Line("restored").text("task", r.task).text("item", r.item).finish();
}

std::string line_of(const record::Sync&) { return Line("sync").finish(); }

std::string line_of(const record::End& r) {
  return Line("end")
      .text("outcome", r.outcome)
      .number("exit_code", r.exit_code)
      .number("time", r.unix_time_ms)
      .finish();
}

std::string line_of(const record::Unknown& r) { return Line(r.kind.c_str()).finish(); }

void after_append(const Record& record) {
  SLUICE_FAULT_POINT("journal.appended");
  if (std::holds_alternative<record::DoneRecord>(record)) {
    SLUICE_FAULT_POINT("journal.done.appended");
  } else if (std::holds_alternative<record::Durable>(record)) {
    SLUICE_FAULT_POINT("journal.durable.appended");
  } else if (std::holds_alternative<record::Removed>(record)) {
    SLUICE_FAULT_POINT("journal.removed.appended");
  } else if (std::holds_alternative<record::End>(record)) {
    SLUICE_FAULT_POINT("journal.end.appended");
  }
}

}  // namespace

std::string encode_record(const Record& record) {
  return std::visit([](const auto& r) { return line_of(r); }, record);
}

Expected<JournalWriter> JournalWriter::create(Files& files, const std::filesystem::path& file) {
  auto opened = files.open(file, Files::Open::kCreateNew);
  if (!opened) return opened.error();
  SLUICE_FAULT_POINT("journal.created");
  return JournalWriter(std::move(*opened));
}

Status JournalWriter::append_line(const std::string& line) {
  if (torn_) {
    const Status cut = file_->truncate(length_);
    if (!cut) return cut;
    torn_ = false;
  }
  const Status appended = file_->append(line);
  if (appended) {
    length_ += line.size();
  } else {
    // Some of the line may be there: what comes next must not be glued to it.
    torn_ = !file_->truncate(length_).ok();
  }
  return appended;
}

Status JournalWriter::append(const Record& record) {
  const std::string line = encode_record(record);
  const Status appended = append_line(line);
  if (!appended) return appended;
  unsynced_bytes_ += line.size();
  after_append(record);
  return Done{};
}

Status JournalWriter::sync() {
  if (unsynced_bytes_ == 0) return Done{};
  SLUICE_FAULT_POINT("journal.sync.before");
  if (sync_error_) return *sync_error_;
  const Status synced = file_->sync();
  if (!synced) {
    sync_error_ = synced.error();
    return synced;
  }
  SLUICE_FAULT_POINT("journal.sync.synced");
  const Status appended = append_line(encode_record(record::Sync{}));
  if (!appended) return appended;
  unsynced_bytes_ = 0;
  SLUICE_FAULT_POINT("journal.sync.after");
  return Done{};
}

}  // namespace sluice::io
