#include "engine/report.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include "engine/cli.h"
#include "engine/query.h"
#include "scheduler/check.h"

namespace sluice::engine {

using scheduler::Counts;
using scheduler::Duration;
using scheduler::Instant;
using scheduler::Outcome;

namespace {

constexpr Duration kTerminalEvery = scheduler::milliseconds(200);
constexpr Duration kPlainEvery = scheduler::seconds(60);
constexpr size_t kAnnouncedMax = 10;  // failures per task and cause that get a line of their own

size_t total(const Counts& c) {
  return c.waiting + c.blocked + c.ready + c.assigned + c.running + c.done + c.failed + c.skipped;
}

}  // namespace

std::string duration_text(Duration duration) {
  const int64_t ms = duration.ns / 1'000'000;
  char text[64];
  if (ms < 10'000) {
    std::snprintf(text, sizeof text, "%lld.%lld s", static_cast<long long>(ms / 1000),
                  static_cast<long long>(ms % 1000 / 100));
  } else if (ms < 60'000) {
    std::snprintf(text, sizeof text, "%lld s", static_cast<long long>(ms / 1000));
  } else if (ms < 3'600'000) {
    std::snprintf(text, sizeof text, "%lld min %lld s", static_cast<long long>(ms / 60'000),
                  static_cast<long long>(ms % 60'000 / 1000));
  } else {
    std::snprintf(text, sizeof text, "%lld h %lld min", static_cast<long long>(ms / 3'600'000),
                  static_cast<long long>(ms % 3'600'000 / 60'000));
  }
  return text;
}

std::string time_text(int64_t unix_time_ms) {
  const std::time_t seconds = unix_time_ms / 1000;
  std::tm local{};
  localtime_r(&seconds, &local);
  char text[64];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
  return text;
}

std::string cause_text(std::string_view cause, int exit_code, int signal) {
  if (cause == "exit") return "exit " + std::to_string(exit_code);
  if (cause == "signal") return signal_text(signal);
  return std::string(cause);
}

std::string signal_text(int signal) {
  const char* name = strsignal(signal);
  return "signal " + std::to_string(signal) + " (" + (name == nullptr ? "unknown" : name) + ")";
}

Report::Report(Options options, Write write)
    : options_(std::move(options)), write_(std::move(write)) {}

void Report::clear_progress() {
  if (!progress_shown_) return;
  write_("\r\x1b[K");
  progress_shown_ = false;
}

void Report::line(std::string_view level, std::string_view text) {
  clear_progress();
  std::string out = "sluice: ";
  if (level != "info") {
    const bool red = level == "error";
    if (options_.color) out += red ? "\x1b[31m" : "\x1b[33m";
    out += level;
    if (options_.color) out += "\x1b[0m";
    out += ": ";
  }
  write_(out + std::string(text) + "\n");
}

void Report::started(const std::string& pipeline, size_t instances, size_t restored) {
  std::string text =
      pipeline + ": " + std::to_string(instances) + (instances == 1 ? " instance" : " instances");
  if (restored > 0) text += ", " + std::to_string(restored) + " known from earlier submissions";
  line("info", text + "; run directory " + options_.directory.path.string());
}

void Report::workers(size_t workers, size_t nodes, int64_t cores) {
  line("info", std::to_string(workers) + (workers == 1 ? " worker, " : " workers, ") +
                   std::to_string(nodes) + (nodes == 1 ? " node, " : " nodes, ") +
                   std::to_string(cores) + (cores == 1 ? " core" : " cores"));
}

void Report::attempt_done(Duration wall, int32_t cpus) {
  ++finished_;
  finished_core_time_ = finished_core_time_ + wall * cpus;
}

void Report::failed(const FailureLine& failure) {
  if (failure.final) {
    failures_.add(failure);
  } else {
    ++retried_;
  }
  const size_t before = announced_[failure.task + ": " + failure.cause]++;
  if (before > kAnnouncedMax) return;
  if (before == kAnnouncedMax) {
    line("info", "more attempts of '" + failure.task + "' end by " + failure.cause +
                     "; from here on they are only counted");
    return;
  }
  std::string text = failure.label + ": attempt " + attempt_text(failure.attempt) + " ended by " +
                     failure.cause + " on " + failure.host;
  if (!failure.detail.empty()) text += ": " + failure.detail;
  line(failure.final ? "error" : "warn", text + (failure.final ? "" : "; it is tried again"));
}

void Report::skipped(const std::string& label, const std::string& because) {
  const std::string task = label.substr(0, label.find('['));
  if (skipped_by_task_[task]++ == 0)
    line("warn", label + " is skipped because " + because + " failed");
}

// The mean core time of an attempt so far times what is left, over the cores there are.
std::string Report::eta(const Counts& counts, int64_t cores_total) const {
  const size_t left = total(counts) - counts.done - counts.failed - counts.skipped;
  if (finished_ == 0 || cores_total == 0 || left == 0) return "";
  const Duration mean{finished_core_time_.ns / finished_};
  return ", about " + duration_text({mean.ns * static_cast<int64_t>(left) / cores_total}) + " left";
}

// A line that wraps could not be taken back. What it holds is ASCII.
std::string Report::fitted(std::string text) const {
  const int columns = options_.columns ? options_.columns() : 0;
  if (columns > 1 && text.size() >= static_cast<size_t>(columns))
    text.resize(static_cast<size_t>(columns) - 1);
  return text;
}

void Report::progress(Instant now, const Counts& counts, int64_t cores_total) {
  if (now < next_progress_) return;
  const bool first = next_progress_.ns == 0;
  next_progress_ = now + (options_.terminal ? kTerminalEvery : kPlainEvery);
  if (first && !options_.terminal) return;
  std::string text = std::to_string(counts.done) + "/" + std::to_string(total(counts)) + " done, " +
                     std::to_string(counts.running) + " running";
  if (counts.failed > 0) text += ", " + std::to_string(counts.failed) + " failed";
  if (counts.skipped > 0) text += ", " + std::to_string(counts.skipped) + " skipped";
  if (counts.results_pending > 0)
    text += ", " + std::to_string(counts.results_pending) + " results to write";
  text += eta(counts, cores_total);
  if (!options_.terminal) {
    line("info", text);
    return;
  }
  clear_progress();
  write_(fitted(std::move(text)));
  progress_shown_ = true;
}

// Each file while they are few, else the folders of their tasks.
void Report::print_results(const std::vector<std::string>& results) {
  constexpr size_t kFilesMax = 10;
  const auto folder_of = [](const std::string& file) {  // results/<task>/…
    return file.substr(0, file.find('/', file.find('/') + 1));
  };
  std::map<std::string, size_t> counts;
  for (const std::string& file : results) ++counts[folder_of(file)];
  for (const std::string& file : results) {
    const std::string folder = folder_of(file);
    const size_t count = results.size() > kFilesMax ? std::exchange(counts[folder], 0) : 1;
    if (count == 0) continue;  // its task was told
    const std::string path = (options_.directory.path / (count == 1 ? file : folder)).string();
    write_("  " + path + (count == 1 ? "" : "/: " + std::to_string(count) + " results") + "\n");
  }
}

void Report::print_failures(const Counts& counts) {
  const std::string logs = shell_words({"sluice", "logs", options_.directory.path.string()});
  write_(failures_.text(logs));
  if (failures_.empty() && counts.skipped == 0) return;
  write_("  all that failed wrote: " + logs + " --failed\n");
  if (!options_.why.empty())
    write_("  why one failed or was skipped: " + options_.why + " 'TASK[item]'\n");
}

void Report::summary(Instant now, const Counts& counts, Outcome outcome, int exit_code,
                     const std::vector<std::string>& results) {
  clear_progress();
  const size_t ran = counts.done - counts.restored;
  if (outcome == Outcome::kAllDone && ran == 0 && counts.failed == 0) {
    line("info", "nothing to do: all " + std::to_string(counts.done) + " instances are done");
  } else {
    std::string text = std::to_string(counts.done) + " of " + std::to_string(total(counts)) +
                       " instances done (" + std::to_string(ran) + " ran now";
    if (retried_ > 0) text += ", " + std::to_string(retried_) + " attempts were tried again";
    text += ") in " + duration_text(now - begun_);
    if (counts.failed > 0) text += "; " + std::to_string(counts.failed) + " failed";
    if (counts.skipped > 0) text += "; " + std::to_string(counts.skipped) + " skipped";
    line("info", text);
  }
  print_results(results);
  print_failures(counts);
  if (outcome == Outcome::kStuck) {
    write_(
        "  work is left that no worker of this run can do, as was said above; continue with "
        "more: " +
        options_.command + "\n");
  } else if (outcome == Outcome::kDisk) {
    write_("  results could not be written to " + options_.directory.path.string() +
           ": make room, then continue with: " + options_.command + "\n");
  } else if (exit_code != 0) {
    write_("  continue with: " + options_.command + "\n");
  }
}

}  // namespace sluice::engine
