#include "engine/query.h"

#include <iostream>

#include "engine/report.h"
#include "io/pipeline.h"

namespace sluice::engine {

int complain(const std::string& text, int code) {
  std::cerr << "sluice: error: " << text << "\n";
  return code;
}

int complain_no_run(const RunDirectory& directory) {
  return complain(
      "no run in " + directory.path.string() + ": no journal is there; start one with 'sluice run'",
      kQueryUsage);
}

bool matches_target(std::string_view target, std::string_view task, std::string_view item) {
  if (target.empty() || target == task) return true;
  if (item.empty() || !target.starts_with(task) || !target.ends_with(']')) return false;
  target.remove_prefix(task.size());
  if (!target.starts_with('[')) return false;
  return means_item(target.substr(1, target.size() - 2), item);
}

bool means_item(std::string_view typed, std::string_view item) {
  return typed == item ||
         (item.find('%') != std::string_view::npos && io::percent_decoded(item) == typed);
}

std::string label_text(std::string_view task, std::string_view item) {
  std::string text(task);
  if (!item.empty()) text.append("[").append(item).append("]");
  return text;
}

std::string attempt_text(scheduler::AttemptId attempt) {
  return std::to_string(attempt.epoch()) + "." + std::to_string(attempt.number());
}

std::string cause_text(const io::RunLedger::Failure& failure) {
  return cause_text(failure.cause, failure.exit_code, failure.signal);
}

std::string quoted_lines(std::string_view text, std::string_view indent) {
  std::string out;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    out += indent;
    for (const char c : text.substr(0, end)) {
      const auto byte = static_cast<unsigned char>(c);
      out += (byte < ' ' && c != '\t') || byte == 0x7F ? '?' : c;
    }
    out += '\n';
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace sluice::engine
