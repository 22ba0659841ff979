// Output of attempts, packed: never two files per task. Per worker and epoch
// `logs/<epoch>.<mpi_rank>.log` (bytes of one attempt after another, stdout then stderr) and
// `logs/<epoch>.<mpi_rank>.index`, one JSON line per attempt: task, item, attempt, worker, outcome,
// offset, and for each stream kept bytes, bytes written by the program, bytes dropped. An index
// line is written after its bytes; a torn last line is ignored. Writer: the worker's I/O thread.
// Reader: anyone. Test: tests/io/log_pack_test.cpp
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "io/file_descriptor.h"
#include "scheduler/expected.h"
#include "scheduler/types.h"

namespace sluice::io {

struct LogStream {
  std::string text;            // kept bytes, or
  std::filesystem::path file;  // the file that holds them (then text is empty)
  int64_t written_bytes = 0;   // by the program
  int64_t dropped_bytes = 0;
};
struct LogEntry {
  std::string task, item;
  scheduler::AttemptId attempt;
  uint32_t worker = 0;
  std::string outcome;  // "done", or the cause
  int64_t offset = 0;
  int64_t out_bytes = 0, out_written_bytes = 0, out_dropped_bytes = 0;
  int64_t err_bytes = 0, err_written_bytes = 0, err_dropped_bytes = 0;
  std::filesystem::path pack;  // filled by the reader
};

class LogPackWriter {
 public:
  [[nodiscard]] static Expected<LogPackWriter> create(const std::filesystem::path& logs,
                                                      uint32_t epoch, uint32_t worker);
  // entry's offset and sizes are filled here.
  Status append(LogEntry entry, const LogStream& out, const LogStream& err);

  struct Part {
    FileDescriptor fd;
    std::filesystem::path path;
  };

 private:
  LogPackWriter() = default;
  Part pack_;
  Part index_;
  bool index_torn_ = false;  // part of a failed line is at its end
};

// Reads the index files of a folder as they grow: every entry comes once. One thread.
//
// A file never loses a line that was read here: a writer cuts back only what it could not write to
// its end (LogPackWriter::append), and `clean` removes files as a whole. So nothing is ever read
// again from its start.
class LogIndexReader {
 public:
  explicit LogIndexReader(std::filesystem::path logs);
  // Those that came since the last call, ordered by attempt. After an Error nothing is missed: the
  // next call gives them.
  [[nodiscard]] Expected<std::vector<LogEntry>> read_new();

 private:
  std::filesystem::path logs_;
  std::map<std::filesystem::path, int64_t> lengths_;  // of the whole lines read, by index file
};

// All entries of a run directory's logs, ordered by attempt.
[[nodiscard]] Expected<std::vector<LogEntry>> read_log_index(const std::filesystem::path& logs);
// The kept bytes of one stream.
[[nodiscard]] Expected<std::string> read_log(const LogEntry& entry, bool err);

}  // namespace sluice::io
