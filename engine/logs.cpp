#include "engine/logs.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <iostream>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/cli.h"
#include "engine/logs_follow.h"
#include "engine/query.h"
#include "io/diagnostic.h"
#include "io/files.h"
#include "io/journal_scan.h"
#include "io/run_ledger.h"
#include "io/sources.h"

namespace sluice::engine {

namespace {

using io::LogEntry;
using io::RunLedger;

constexpr size_t kLabelsShown = 10;  // of a group of failures that look the same

std::string label_of(const LogEntry& entry) { return label_text(entry.task, entry.item); }

int64_t written_bytes(const LogEntry& entry, bool err) {
  return err ? entry.err_written_bytes : entry.out_written_bytes;
}

std::string header(const LogEntry& entry, bool err) {
  const int64_t dropped = err ? entry.err_dropped_bytes : entry.out_dropped_bytes;
  std::string text = "== " + label_of(entry) + ", attempt " + attempt_text(entry.attempt) +
                     ", worker " + std::to_string(entry.worker) + ", " + entry.outcome + ", " +
                     (err ? "stderr" : "stdout") + ", " +
                     std::to_string(written_bytes(entry, err)) + " bytes";
  if (dropped > 0) text += " (" + std::to_string(dropped) + " dropped from the middle)";
  return text + "\n";
}

class Printer {
 public:
  explicit Printer(const Options& options)
      : options_(options), terminal_(::isatty(STDOUT_FILENO) != 0) {}

  void print(const std::vector<LogEntry>& entries) {
    size_t streams = 0;
    for (const LogEntry& entry : entries) streams += count_streams(entry);
    // One stream alone comes without a header, as `tail` does it: its bytes can be piped on.
    headers_ = streams > 1;
    if (options_.failed) {
      print_grouped(entries);
    } else {
      for (const LogEntry& entry : entries) print(entry);
    }
    std::cout << std::flush;
  }
  [[nodiscard]] bool wrote_any() const { return wrote_any_; }

 private:
  [[nodiscard]] size_t count_streams(const LogEntry& entry) const {
    const bool out = !options_.errors && entry.out_written_bytes > 0;
    return (out ? 1 : 0) + (entry.err_written_bytes > 0 ? 1 : 0);
  }
  void print(const LogEntry& entry) {
    if (!options_.errors) print_stream(entry, false);
    print_stream(entry, true);
  }
  void print_stream(const LogEntry& entry, bool err) {
    if (written_bytes(entry, err) == 0) return;
    wrote_any_ = true;
    (headers_ ? std::cout : std::cerr) << header(entry, err) << std::flush;
    const auto text = io::read_log(entry, err);
    if (!text) {
      std::cerr << "sluice: error: " << text.error().message << "\n";
      return;
    }
    print_bytes(*text);
  }
  void print_bytes(std::string_view text) {
    if (options_.tail >= 0) text = last_lines(text, static_cast<size_t>(options_.tail));
    if (terminal_) {
      std::cout << quoted_lines(text, "");
      return;
    }
    std::cout << text;
    if (headers_ && !text.empty() && text.back() != '\n') std::cout << '\n';
  }

  void print_grouped(const std::vector<LogEntry>& entries) {
    for (const auto& group : group_alike(entries)) {
      const LogEntry& first = *group.front();
      print(first);
      if (count_streams(first) == 0) {
        std::cout << "== " << label_of(first) << ", attempt " << attempt_text(first.attempt)
                  << ", worker " << first.worker << ", " << first.outcome
                  << ", wrote nothing; 'sluice why' tells more\n";
      }
      wrote_any_ = true;
      if (group.size() == 1) continue;
      std::cout << "== " << group.size() - 1 << " more with the same "
                << (first.err_written_bytes > 0 ? "stderr" : "outcome and no stderr") << ":";
      for (size_t i = 1; i < std::min(group.size(), kLabelsShown + 1); ++i) {
        std::cout << " " << label_of(*group[i]) << " (attempt " << attempt_text(group[i]->attempt)
                  << ")";
      }
      if (group.size() > kLabelsShown + 1) std::cout << " …";
      std::cout << "\n";
    }
  }

  const Options& options_;
  bool terminal_;
  bool headers_ = true;
  bool wrote_any_ = false;
};

// Of a failed attempt; "" if its directory was not kept.
std::string kept_directory(const LogEntry& entry, const RunDirectory& directory) {
  std::error_code ignored;
  const std::filesystem::path failed = directory.failed(entry.attempt);
  const bool kept = has_failed(entry) && std::filesystem::is_directory(failed, ignored);
  return kept ? failed.string() : "";
}

void print_paths(const std::vector<LogEntry>& entries, const RunDirectory& directory) {
  std::cout << "task\titem\tattempt\toutcome\tstream\tfile\toffset\tbytes\tfailed_directory\n";
  for (const LogEntry& entry : entries) {
    const std::string kept = kept_directory(entry, directory);
    for (const bool err : {false, true}) {
      std::cout << entry.task << '\t' << (entry.item.empty() ? "-" : entry.item) << '\t'
                << attempt_text(entry.attempt) << '\t' << entry.outcome << '\t'
                << (err ? "stderr" : "stdout") << '\t' << entry.pack.string() << '\t'
                << (err ? entry.offset + entry.out_bytes : entry.offset) << '\t'
                << (err ? entry.err_bytes : entry.out_bytes) << '\t' << (kept.empty() ? "-" : kept)
                << '\n';
    }
  }
}

void print_json(const std::vector<LogEntry>& entries, const RunDirectory& directory) {
  nlohmann::ordered_json json = {{"version", 1}, {"attempts", nlohmann::json::array()}};
  for (const LogEntry& entry : entries) {
    const std::string kept = kept_directory(entry, directory);
    const auto stream = [&](int64_t offset, int64_t bytes, int64_t written, int64_t dropped) {
      return nlohmann::ordered_json{
          {"offset", offset}, {"bytes", bytes}, {"written", written}, {"dropped", dropped}};
    };
    nlohmann::ordered_json one = {{"task", entry.task},
                                  {"item", entry.item},
                                  {"attempt", attempt_text(entry.attempt)},
                                  {"worker", entry.worker},
                                  {"outcome", entry.outcome},
                                  {"file", entry.pack.string()}};
    one["stdout"] =
        stream(entry.offset, entry.out_bytes, entry.out_written_bytes, entry.out_dropped_bytes);
    one["stderr"] = stream(entry.offset + entry.out_bytes, entry.err_bytes, entry.err_written_bytes,
                           entry.err_dropped_bytes);
    one["failed_directory"] = kept.empty() ? nlohmann::json() : nlohmann::json(kept);
    json["attempts"].push_back(std::move(one));
  }
  std::cout << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}

// Attempts that failed without a log of their own: never started, or lost with their worker.
size_t print_without_log(const Options& options, const std::vector<LogEntry>& entries,
                         const AttemptPlaces& places, const RunLedger& ledger) {
  std::set<scheduler::AttemptId> logged;
  for (const LogEntry& entry : entries) logged.insert(entry.attempt);
  size_t shown = 0;
  for (const RunLedger::Failure& failure : ledger.failures) {
    const RunLedger::Instance& instance = ledger.instances[failure.instance];
    if (logged.contains(failure.attempt)) continue;
    if (!matches_target(options.target, ledger.tasks[instance.task], instance.item)) continue;
    const std::string label = ledger.label(instance);
    if (!places.is_chosen(options.attempt, label, failure.attempt)) continue;
    std::cerr << "== " << label << ", attempt " << attempt_text(failure.attempt) << ", "
              << cause_text(failure)
              << (failure.detail.empty() ? "" : ": " + std::string(failure.detail))
              << " (left no log)\n"
              << quoted_lines(failure.stderr_tail, "   ");
    ++shown;
  }
  return shown;
}

int nothing_found(const Options& options, const RunDirectory& directory,
                  const std::vector<LogEntry>& entries) {
  if (options.failed && options.target.empty() && options.attempt.empty()) {
    std::cerr << "sluice: no attempt has failed in " << directory.path.string() << "\n";
    return kQueryDone;
  }
  const std::string what = options.target.empty() ? "any task" : "'" + options.target + "'";
  std::set<std::string> tasks;
  for (const LogEntry& entry : entries) tasks.insert(entry.task);
  const std::string task = options.target.substr(0, options.target.find('['));
  if (!tasks.empty() && !task.empty() && !tasks.contains(task)) {
    const std::string near =
        io::did_you_mean(task, std::vector<std::string>(tasks.begin(), tasks.end()));
    return complain("no output of " + what + ": no task of that name has run" +
                        (near.empty() ? "" : "; did you mean '" + near + "'?"),
                    kQueryUsage);
  }
  const std::string which = options.attempt.empty() ? "" : " attempt " + options.attempt + " of";
  return complain("no output of" + which + " " + what + " in " + directory.logs().string() +
                      ": no such attempt has ended; 'sluice status' tells what has",
                  kQueryUsage);
}

// The N-th attempt, or -1; not "E.N".
bool is_place(const std::string& attempt) {
  return !attempt.empty() && attempt.find('.') == std::string::npos;
}

AttemptPlaces places_of(const std::vector<LogEntry>& entries, const RunLedger& ledger,
                        const std::string& target) {
  AttemptPlaces places;
  for (const LogEntry& entry : entries) {
    if (matches_target(target, entry.task, entry.item)) places.add(label_of(entry), entry.attempt);
  }
  for (const RunLedger::Failure& failure : ledger.failures) {
    const RunLedger::Instance& instance = ledger.instances[failure.instance];
    if (!matches_target(target, ledger.tasks[instance.task], instance.item)) continue;
    places.add(ledger.label(instance), failure.attempt);
  }
  return places;
}

// By the names alone: to read the journal takes a second at 10^6 instances. A lease counts, since a
// run that begins has one before its journal.
Expected<bool> has_run(const RunDirectory& directory) {
  const auto names = io::real_files().list(directory.path);
  if (!names) return names.error();
  return io::is_run_directory(*names);
}

// "", or why the options do not go together.
std::string conflict_of(const Options& options) {
  if (!options.follow || (options.attempt.empty() && !options.paths)) return "";
  const std::string other = options.paths ? "--paths" : "--attempt";
  return "'--follow' and '" + other + "' are given together: --follow prints what comes, " + other +
         " is about attempts that have ended; leave one of them out";
}

// What has ended; the journal is read only if the logs are not enough to tell.
int show_ended(const Options& options, const RunDirectory& directory,
               const std::vector<LogEntry>& entries) {
  const bool by_place = is_place(options.attempt);
  const auto choose = [&](const AttemptPlaces& known) {
    return choose_logs(entries, options.target, options.attempt, options.failed, known);
  };
  AttemptPlaces places;
  std::vector<LogEntry> chosen;
  if (!by_place) chosen = choose(places);
  Expected<RunLedger> ledger = RunLedger();
  if (chosen.empty() || (options.failed && !options.paths)) {
    ledger = io::read_ledger(directory.path, {}, io::LedgerDetail::kTroubled);
    if (ledger && ledger->submissions.empty() && entries.empty()) {
      return complain_no_run(directory);
    }
  }
  if (by_place && ledger) {
    places = places_of(entries, *ledger, options.target);
    chosen = choose(places);
  }
  Printer printer(options);
  if (!options.paths) {
    printer.print(chosen);
  } else if (options.json) {
    print_json(chosen, directory);
  } else if (!chosen.empty()) {
    print_paths(chosen, directory);
  }
  if (!ledger) return complain(ledger.error().message, kQueryEnvironment);
  const size_t without_log = print_without_log(options, entries, places, *ledger);
  if (chosen.size() + without_log == 0) return nothing_found(options, directory, entries);
  if (!options.paths && !chosen.empty() && !printer.wrote_any()) {
    std::cerr << "sluice: " << chosen.size() << (chosen.size() == 1 ? " attempt" : " attempts")
              << " wrote nothing\n";
  }
  return kQueryDone;
}

}  // namespace

bool has_failed(const LogEntry& entry) {
  return entry.outcome != "done" && entry.outcome != "stopped";
}

void AttemptPlaces::add(const std::string& label, scheduler::AttemptId attempt) {
  attempts_[label].insert(attempt);
}

bool AttemptPlaces::is_chosen(const std::string& choice, const std::string& label,
                              scheduler::AttemptId attempt) const {
  if (choice.empty()) return true;
  if (!is_place(choice)) return choice == attempt_text(attempt);
  const auto known = attempts_.find(label);
  if (known == attempts_.end()) return false;
  const std::set<scheduler::AttemptId>& all = known->second;
  if (choice == "-1") return *all.rbegin() == attempt;
  const size_t place = std::stoul(choice);
  return place <= all.size() &&
         *std::next(all.begin(), static_cast<ptrdiff_t>(place) - 1) == attempt;
}

std::vector<std::vector<const LogEntry*>> group_alike(const std::vector<LogEntry>& entries) {
  // The text itself may have megabytes, of each of thousands of attempts.
  using Key = std::tuple<std::string, std::string, scheduler::Hash128>;
  std::map<Key, size_t> places;
  std::vector<std::vector<const LogEntry*>> groups;
  for (const LogEntry& entry : entries) {
    size_t place = groups.size();
    const auto err = io::read_log(entry, true);
    if (err) {
      place = places.try_emplace(Key{entry.task, entry.outcome, io::hash_text(*err)}, place)
                  .first->second;
    }
    if (place == groups.size()) groups.emplace_back();
    groups[place].push_back(&entry);
  }
  return groups;
}

bool is_attempt_choice(const std::string& text) {
  const auto is_number = [](std::string_view digits) {
    uint32_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() && value > 0;
  };
  if (text == "-1") return true;
  const size_t dot = text.find('.');
  if (dot == std::string::npos) return is_number(text);
  return is_number(text.substr(0, dot)) && is_number(text.substr(dot + 1));
}

std::vector<LogEntry> choose_logs(const std::vector<LogEntry>& entries, const std::string& target,
                                  const std::string& attempt, bool failed,
                                  const AttemptPlaces& places) {
  std::vector<LogEntry> chosen;
  for (const LogEntry& entry : entries) {
    if (!matches_target(target, entry.task, entry.item)) continue;
    if (failed && !has_failed(entry)) continue;
    if (places.is_chosen(attempt, label_of(entry), entry.attempt)) chosen.push_back(entry);
  }
  return chosen;
}

std::string_view last_lines(std::string_view text, size_t lines) {
  size_t at = text.size();
  if (at > 0 && text.back() == '\n') --at;
  for (; lines > 0; --lines) {
    if (at == 0) return text;
    const size_t newline = text.rfind('\n', at - 1);
    if (newline == std::string_view::npos) return text;
    at = newline;
  }
  return text.substr(std::min(text.size(), at + 1));
}

int show_logs(const Options& given) {
  Options options = given;
  options.paths = options.paths || options.json;
  const std::string conflict = conflict_of(options);
  if (!conflict.empty()) return complain(conflict, kQueryUsage);
  const RunDirectory directory = options.directory();
  const Expected<bool> run = has_run(directory);
  if (!run) return complain(run.error().message, kQueryEnvironment);
  if (!*run) return complain_no_run(directory);
  io::LogIndexReader index(directory.logs());
  const auto entries = index.read_new();
  if (!entries) return complain(entries.error().message, kQueryEnvironment);
  if (!options.follow) return show_ended(options, directory, *entries);
  Printer(options).print(choose_logs(*entries, options.target, "", options.failed, {}));
  return follow_logs(options, directory, index);
}

}  // namespace sluice::engine
