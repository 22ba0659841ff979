// A run's report as text for people and as JSON.
#include <array>
#include <cstdio>
#include <ostream>

#include <nlohmann/json.hpp>

#include "engine/query.h"
#include "engine/report.h"
#include "engine/run_report.h"

namespace sluice::engine {

namespace {

using io::RunLedger;
using nlohmann::ordered_json;

std::string decimal(double value, const char* format = "%.1f") {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string bytes_text(int64_t bytes) {
  if (bytes < (10LL << 20U)) return std::to_string(bytes >> 10U) + " KiB";
  if (bytes < (10LL << 30U)) return std::to_string(bytes >> 20U) + " MiB";
  return std::to_string(bytes >> 30U) + " GiB";
}

std::string percent(double part) { return decimal(100 * part, "%.0f") + " %"; }

void print_submission(const SubmissionReport& one, std::ostream& out) {
  out << "submission " << one.submission << ": " << one.outcome << ", " << time_text(one.begin_ms)
      << " to " << time_text(one.end_ms) << " on " << one.host << "\n"
      << "  " << one.done << " instances done, " << one.failed_attempts << " attempts failed; "
      << one.workers << (one.workers == 1 ? " worker" : " workers") << " with " << one.cores
      << (one.cores == 1 ? " core" : " cores");
  if (one.lost_workers > 0) out << ", " << one.lost_workers << " lost";
  out << "\n  took " << duration_text(one.makespan) << "; at least " << duration_text(one.bound())
      << " was needed (work of " << duration_text(one.work) << " core time over its cores";
  if (one.critical_path) out << ", critical path " << duration_text(*one.critical_path);
  out << ")\n  cores in use: " << percent(one.utilisation()) << " of the time\n";
}

void print_usage(const UsageReport& one, std::ostream& out) {
  out << "  " << one.task << ": n = " << one.n << "\n";
  if (one.n == 0) return;
  const auto asked = [](bool any, const std::string& text) {
    return any ? "asked " + text : std::string("asked nothing");
  };
  out << "    time:   "
      << asked(one.timeout_ms > 0,
               duration_text(scheduler::milliseconds(one.timeout_ms)) + " at most")
      << ", median " << duration_text(one.wall_median) << ", max " << duration_text(one.wall_max)
      << "\n    cpus:   " << asked(one.cpus > 0, std::to_string(one.cpus)) << ", median "
      << decimal(one.cpus_median) << ", max " << decimal(one.cpus_max)
      << "\n    memory: " << asked(one.memory_bytes > 0, bytes_text(one.memory_bytes))
      << ", median " << bytes_text(one.memory_median_bytes) << ", max "
      << bytes_text(one.memory_max_bytes) << "\n";
  for (const std::string& text : one.suggestions) {
    out << "    suggestion from " << one.n << " attempts: " << text << "\n";
  }
}

ordered_json submission_json(const SubmissionReport& one, const io::record::Run& run) {
  ordered_json json = {{"submission", one.submission},
                       {"outcome", one.outcome},
                       {"host", one.host},
                       {"begin_ms", one.begin_ms},
                       {"end_ms", one.end_ms},
                       {"done", one.done},
                       {"failed_attempts", one.failed_attempts},
                       {"workers", one.workers},
                       {"lost_workers", one.lost_workers},
                       {"cores", one.cores},
                       {"makespan_ns", one.makespan.ns},
                       {"work_core_ns", one.work.ns}};
  json["critical_path_ns"] =
      one.critical_path ? ordered_json(one.critical_path->ns) : ordered_json(nullptr);
  json["bound_ns"] = one.bound().ns;
  json["utilisation"] = one.utilisation();
  json["spec"] = run.spec;
  json["spec_hash"] = run.spec_hash;
  json["command"] = run.command;
  json["params"] = ordered_json::object();
  for (const auto& [name, value] : run.params) json["params"][name] = value;
  json["versions"] = ordered_json::object();
  for (const auto& [name, version] : run.versions) json["versions"][name] = version;
  return json;
}

ordered_json usage_json(const UsageReport& one) {
  const auto asked = [](int64_t value) {
    return value > 0 ? ordered_json(value) : ordered_json(nullptr);
  };
  return {
      {"task", one.task},
      {"n", one.n},
      {"cpus", {{"asked", asked(one.cpus)}, {"median", one.cpus_median}, {"max", one.cpus_max}}},
      {"memory_bytes",
       {{"asked", asked(one.memory_bytes)},
        {"median", one.memory_median_bytes},
        {"max", one.memory_max_bytes}}},
      {"wall_ns",
       {{"asked", asked(one.timeout_ms * 1'000'000)},
        {"median", one.wall_median.ns},
        {"max", one.wall_max.ns}}},
      {"suggestions", one.suggestions}};
}

}  // namespace

void print_report(const RunReport& report, const RunLedger& ledger, std::ostream& out) {
  for (const SubmissionReport& one : report.submissions) print_submission(one, out);
  out << "asked for and used (attempts that succeeded):\n";
  for (const UsageReport& one : report.usage) print_usage(one, out);
  if (!report.causes.empty()) out << "attempts that failed:\n";
  for (const CauseReport& one : report.causes) {
    out << "  " << one.attempts << " × " << one.task << ": " << one.cause;
    if (one.instances > 0) {
      out << "; " << one.instances << (one.instances == 1 ? " instance is" : " instances are")
          << " failed by it now";
    }
    out << "\n";
  }
  if (!report.slowest.empty()) out << "slowest:\n";
  for (const uint32_t index : report.slowest) {
    const RunLedger::Instance& instance = ledger.instances[index];
    out << "  " << duration_text(instance.usage.wall) << "  " << ledger.label(instance) << " on "
        << ledger.host_of(instance.attempt, instance.worker) << "\n";
  }
}

std::string report_as_json(const RunReport& report, const RunLedger& ledger,
                           const RunDirectory& directory) {
  ordered_json json = {{"version", 1},
                       {"run_directory", directory.path.string()},
                       {"run_uuid", ledger.newest().run.run_uuid},
                       {"submissions", ordered_json::array()},
                       {"tasks", ordered_json::array()},
                       {"failures", ordered_json::array()},
                       {"slowest", ordered_json::array()}};
  for (size_t i = 0; i < report.submissions.size(); ++i) {
    json["submissions"].push_back(
        submission_json(report.submissions[i], ledger.submissions[i].run));
  }
  for (const UsageReport& one : report.usage) json["tasks"].push_back(usage_json(one));
  for (const CauseReport& one : report.causes) {
    json["failures"].push_back({{"task", one.task},
                                {"cause", one.cause},
                                {"attempts", one.attempts},
                                {"instances", one.instances}});
  }
  for (const uint32_t index : report.slowest) {
    const RunLedger::Instance& instance = ledger.instances[index];
    json["slowest"].push_back({{"task", ledger.tasks[instance.task]},
                               {"item", instance.item},
                               {"attempt", attempt_text(instance.attempt)},
                               {"host", ledger.host_of(instance.attempt, instance.worker)},
                               {"wall_ns", instance.usage.wall.ns}});
  }
  json["notes"] = ledger.messages;
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace sluice::engine
