#include "engine/logs_follow.h"

#include <unistd.h>

#include <chrono>
#include <iostream>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "engine/cli.h"
#include "engine/live_stream.h"
#include "engine/logs.h"
#include "engine/query.h"
#include "engine/status.h"
#include "io/lease.h"

namespace sluice::engine {

namespace {

using io::LogEntry;
using scheduler::AttemptId;

constexpr std::chrono::milliseconds kRound{250};

class Follower {
 public:
  Follower(const Options& options, const RunDirectory& directory, io::LogIndexReader& index)
      : options_(options),
        directory_(directory),
        index_(index),
        terminal_(::isatty(STDOUT_FILENO) != 0) {}

  Status round() {
    if (!options_.failed) print_running();  // nobody knows yet whether it will fail
    Status printed = print_ended();
    std::cout << std::flush;
    return printed;
  }

 private:
  struct Progress {
    int64_t bytes = 0;  // printed
  };
  using Stream = std::pair<AttemptId, bool>;  // true: stderr

  void print_running() {
    const std::vector<LiveStream> streams = find_live_streams(directory_.path);
    if (streams.empty()) return;
    std::map<std::string, std::string> labels;
    for (const RunningInstance& one : running_instances(directory_)) {
      if (!matches_target(options_.target, one.task, one.item)) continue;
      labels[one.attempt] = label_text(one.task, one.item);
    }
    for (const LiveStream& stream : streams) {
      if (options_.errors && !stream.err) continue;
      const auto label = labels.find(attempt_text(stream.attempt));
      if (label == labels.end()) continue;  // another task, or too young to be known
      Progress& progress = progress_[{stream.attempt, stream.err}];
      const std::string bytes = read_live_stream(stream, progress.bytes);
      progress.bytes += static_cast<int64_t>(bytes.size());
      print(label->second, {stream.attempt, stream.err}, bytes);
    }
  }

  Status print_ended() {
    const auto entries = index_.read_new();
    if (!entries) return entries.error();
    for (const LogEntry& entry : *entries) {
      if (!matches_target(options_.target, entry.task, entry.item)) continue;
      if (options_.failed && !has_failed(entry)) continue;
      if (!options_.errors) print_rest(entry, false);
      print_rest(entry, true);
    }
    return Done{};
  }
  void print_rest(const LogEntry& entry, bool err) {
    const auto text = io::read_log(entry, err);
    if (!text) std::cerr << "sluice: error: " << text.error().message << "\n";
    const auto known = progress_.find({entry.attempt, err});
    const auto printed = static_cast<size_t>(known == progress_.end() ? 0 : known->second.bytes);
    if (text && text->size() > printed) {
      print(label_text(entry.task, entry.item), {entry.attempt, err}, text->substr(printed));
    }
    if (known != progress_.end()) progress_.erase(known);
  }

  void print(const std::string& label, const Stream& stream, const std::string& bytes) {
    if (bytes.empty()) return;
    if (stream != last_) {
      std::cout << (at_line_begin_ ? "" : "\n") << "== " << label << ", attempt "
                << attempt_text(stream.first) << ", " << (stream.second ? "stderr" : "stdout")
                << "\n";
      last_ = stream;
    }
    std::cout << (terminal_ ? quoted_piece(bytes) : bytes);
    at_line_begin_ = bytes.back() == '\n';
  }

  const Options& options_;
  const RunDirectory& directory_;
  io::LogIndexReader& index_;
  const bool terminal_;
  std::map<Stream, Progress> progress_;
  Stream last_{};
  bool at_line_begin_ = true;
};

bool may_run(const RunDirectory& directory) {
  const auto lease = io::view_lease(directory.path);
  return lease && lease->may_run();
}

}  // namespace

std::string quoted_piece(std::string_view bytes) {
  std::string text = quoted_lines(bytes, "");
  if (!bytes.empty() && bytes.back() != '\n') text.pop_back();
  return text;
}

int follow_logs(const Options& options, const RunDirectory& directory, io::LogIndexReader& index) {
  Follower follower(options, directory, index);
  while (may_run(directory)) {
    (void)follower.round();  // what cannot be read now is tried again in the next round
    std::this_thread::sleep_for(kRound);
  }
  const Status last = follower.round();
  if (!last) return complain(last.error().message, kQueryEnvironment);
  std::cerr << "sluice: the run has ended; 'sluice status' tells how\n";
  return kQueryDone;
}

}  // namespace sluice::engine
