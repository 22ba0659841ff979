// The journal: lasting facts of a run, in the order in which the core applied them.
// `journal.<epoch>.jsonl`, one JSON object a line; its last member is "sum": XXH3-64, as 16 hex
// digits, of the line's bytes before `,"sum"`. Version 1. "t" is the record's kind:
//
//   run      version uuid epoch previous_epoch previous_length spec_hash host time instances params
//            spec command tasks: [{name instances cpus memory timeout_ms}] versions fresh
//   worker   worker state host cpus memory time
//   parts    task names: [{name}]        (what the keys of that task are made of, in this segment)
//   done     task item attempt key worker time wall_ns cpu_ns memory_peak parts
//            out: [{name content bytes} | {name content bytes value}]
//   durable  task item output path temporary content bytes modified_ns   (before the file's rename)
//   attempt  task item attempt cause exit_code signal detail stderr final worker time wall_ns ...
//   skipped  task item because
//   removed  task item output
//   gone     task item       (recorded before, not in the spec of this submission)
//   restored task item       (its last success holds again, whatever failed since)
//   sync     (what is above it is on the disk)
//   end      outcome exit_code time
//
// Hashes are 32 hex digits, attempts "<epoch>.<number>", times milliseconds since 1970. Members
// that are zero, empty or false may be absent. A text that is not UTF-8 is written as hex digits
// under its name with "_hex" behind it.
//
// Any prefix is a consistent state. A line that is torn or whose sum is wrong ends the reading of
// that segment: what follows is cut, and a message says at which byte and how many records were
// kept. A takeover's run record says which segment it continues (0: the next older one) and at
// which length: what a stalled writer adds behind that is not read. Readers ignore record kinds and
// members they do not know; a greater version is an error.
//
// The writer appends with write(2) at once; fdatasync and a sync record at most every 200 ms or 1
// MiB, done by whoever calls sync(). Results recorded after the last sync record are suspect: a
// reader marks them so, resume hashes them again. Writer: the I/O thread only. Reader: anyone.
// Test: tests/io/journal_test.cpp, tests/io/journal_read_test.cpp
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "io/files.h"
#include "scheduler/event.h"
#include "scheduler/expected.h"

namespace sluice::io {

namespace record {

struct RunTask {  // what was asked for: queries about a run do not read the spec
  std::string name;
  size_t instances = 0;
  int32_t cpus = 0;
  int64_t memory_bytes = 0;
  int64_t timeout_ms = 0;
};
struct Run {
  int version = 1;
  std::string run_uuid;
  uint32_t epoch = 1;
  std::string spec_hash;
  std::string host;
  int64_t unix_time_ms = 0;
  uint32_t previous_epoch = 0;   // segment that this one continues; 0: the next older one
  uint64_t previous_length = 0;  // bytes of it that count
  size_t instances = 0;
  std::vector<std::pair<std::string, std::string>> params;
  std::string spec = {};     // absolute path of the pipeline's file
  std::string command = {};  // that continues this run, from any folder
  std::vector<RunTask> tasks = {};
  std::vector<std::pair<std::string, std::string>> versions = {};  // of sluice and its libraries
  bool fresh = false;  // `run --fresh`: what earlier segments know of instances counts no more
};
struct Worker {
  uint32_t worker = 0;
  std::string state;  // joined, lost, silent, alive
  std::string host;
  scheduler::Resources resources;
  int64_t unix_time_ms = 0;
};
struct Output {
  std::string name;
  scheduler::Hash128 content;
  int64_t bytes = 0;
  bool is_value = false;
  std::string value;
};
struct DoneRecord {
  std::string task, item;
  scheduler::AttemptId attempt;
  scheduler::Hash128 key;
  std::vector<Output> outputs;
  scheduler::Usage usage;
  uint32_t worker = 0;
  int64_t unix_time_ms = 0;
  scheduler::Hash128 static_key;  // the part of key that inputs do not change: `why` compares it
  std::string parts = {};         // six hex digits for each name of the task's KeyParts record
};
struct KeyParts {
  std::string task;
  std::vector<std::string> names;
};
struct Durable {  // written before the rename
  std::string task, item, output;
  std::string path;       // relative to the run directory, final
  std::string temporary;  // relative: a resume completes the rename if only this one exists
  scheduler::Hash128 content;
  int64_t bytes = 0;
  int64_t modified_ns = 0;  // of a file, which the rename keeps; 0: not known
};
struct Attempt {  // ended without success
  std::string task, item;
  scheduler::AttemptId attempt;
  std::string cause;
  int32_t exit_code = 0, signal = 0;
  std::string detail, stderr_tail;
  bool final = false;
  uint32_t worker = 0;
  scheduler::Usage usage;
  int64_t unix_time_ms = 0;
};
struct Skipped {
  std::string task, item, because;  // label of the failed one
};
struct Removed {  // a saved intermediate was deleted
  std::string task, item, output;
};
struct Gone {
  std::string task, item;
};
struct Restored {
  std::string task, item;
};
struct Sync {};
struct End {
  std::string outcome;  // done, failed, stopped, stuck, disk
  int exit_code = 0;
  int64_t unix_time_ms = 0;
};
struct Unknown {  // a kind that a later version wrote: readers go on
  std::string kind;
};

}  // namespace record

using Record =
    std::variant<record::Run, record::Worker, record::KeyParts, record::DoneRecord, record::Durable,
                 record::Attempt, record::Skipped, record::Removed, record::Gone, record::Restored,
                 record::Sync, record::End, record::Unknown>;

[[nodiscard]] std::string encode_record(const Record& record);  // one line, with newline and sum
[[nodiscard]] Expected<Record> decode_record(std::string_view line);

class JournalWriter {
 public:
  // Creates the segment (it must not exist).
  [[nodiscard]] static Expected<JournalWriter> create(Files& files,
                                                      const std::filesystem::path& file);
  Status append(
      const Record& record);  // an Error (disk full) leaves the file cut back to whole records
  // fdatasync, then a sync record; nothing if nothing was appended since. A failure is final: the
  // system may have dropped the bytes, and a later fdatasync would say that all is well.
  Status sync();
  [[nodiscard]] uint64_t unsynced_bytes() const { return unsynced_bytes_; }
  [[nodiscard]] uint64_t length() const { return length_; }

 private:
  explicit JournalWriter(std::unique_ptr<File> file) : file_(std::move(file)) {}
  Status append_line(const std::string& line);
  std::unique_ptr<File> file_;
  uint64_t length_ = 0;
  uint64_t unsynced_bytes_ = 0;
  bool torn_ = false;  // part of a failed record is behind length_: to be cut off first
  std::optional<Error> sync_error_;
};

// What the segments of a run directory say, merged, by (task, item).
struct JournalState {
  struct InstanceFacts {
    std::optional<record::DoneRecord> done;  // the last one
    bool done_synced = false;                // a sync record came after it
    std::map<std::string, record::Durable>
        durable;  // by output; erased by Removed and by a later done with other content
    std::set<std::string> unsynced;  // outputs whose durable record no sync record came after
    std::unique_ptr<record::Attempt> last_failure;  // after the last done; large and rare
    std::string skipped_because;
    std::optional<size_t> part_names;  // which of `key_parts` says what done->parts are
  };
  std::string run_uuid;
  uint32_t epoch = 0;  // of the newest segment; 0: no journal
  record::Run last_run;
  std::optional<record::End> end;  // of the newest segment
  std::map<std::pair<std::string, std::string>, InstanceFacts> instances;
  std::vector<record::KeyParts> key_parts;  // of all segments, in order
  std::vector<record::Worker> workers;      // of the newest segment, last state each
  std::vector<record::Attempt> attempts;    // failures of the newest segment, in order
  int64_t first_time_ms = 0, last_time_ms = 0;
  uint64_t newest_length = 0;         // bytes of the newest segment that were good
  std::vector<std::string> messages;  // what was cut and why
};
[[nodiscard]] Expected<JournalState> read_journal(const std::filesystem::path& run_directory);
[[nodiscard]] Expected<JournalState> read_journal(Files& files,
                                                  const std::filesystem::path& run_directory);
// Makes `run` the first record of the segment that continues what was read.
void continue_from(const JournalState& state, record::Run& run);

}  // namespace sluice::io
