#include "engine/failure_groups.h"

#include <algorithm>
#include <sstream>

#include "engine/cli.h"

namespace sluice::engine {

namespace {

constexpr size_t kAlikeMax = 5;   // of a cause: different last words that are shown
constexpr size_t kHostsMax = 4;   // of those that are alike
constexpr size_t kLinesMax = 10;  // of stderr

std::string count_text(size_t count, const std::string& what) {
  return std::to_string(count) + " × " + what + "\n";
}

// The last lines, without what could steer the terminal.
std::string last_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    for (char& c : line) {
      if ((c >= 0 && c < ' ' && c != '\t') || c == 0x7f) c = '?';
    }
    lines.push_back(std::move(line));
  }
  std::string out;
  for (size_t i = lines.size() > kLinesMax ? lines.size() - kLinesMax : 0; i < lines.size(); ++i)
    out += "      | " + lines[i] + "\n";
  return out;
}

std::string hosts_text(const std::map<std::string, size_t>& hosts) {
  if (hosts.size() == 1) return hosts.begin()->first;
  std::vector<std::pair<size_t, std::string>> sorted;
  sorted.reserve(hosts.size());
  for (const auto& [host, count] : hosts) sorted.emplace_back(count, host);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string out;
  for (size_t i = 0; i < std::min(sorted.size(), kHostsMax); ++i) {
    out += (i == 0 ? "" : ", ") + sorted[i].second + " (" + std::to_string(sorted[i].first) + ")";
  }
  if (sorted.size() > kHostsMax)
    out += " and " + std::to_string(sorted.size() - kHostsMax) + " more nodes";
  return out;
}

}  // namespace

void FailureGroups::add(const FailureLine& failure) {
  CauseGroup& group = causes_[failure.task + ": " + failure.cause];
  ++group.count;
  const std::pair<std::string, std::string> words(failure.detail, failure.stderr_tail);
  auto found = group.alike.find(words);
  if (found == group.alike.end()) {
    if (group.alike.size() == kAlikeMax) {
      ++group.others;
      return;
    }
    found = group.alike.emplace(words, Alike{failure, 0, {}}).first;
    group.order.push_back(words);
  }
  ++found->second.count;
  ++found->second.hosts[failure.host];
}

std::string FailureGroups::alike_text(const Alike& alike, const std::string& logs) {
  const FailureLine& first = alike.first;
  std::string out = "    " + first.label;
  if (alike.count > 1) {
    out += " and " + std::to_string(alike.count - 1) + " more";
    if (!first.stderr_tail.empty()) out += " with the same last lines";
  }
  out += " on " + hosts_text(alike.hosts);
  if (!first.detail.empty()) out += ": " + first.detail;
  return out + "\n" + last_lines(first.stderr_tail) + "      more: " + logs + " " +
         shell_words({first.label}) + "\n";
}

std::string FailureGroups::text(const std::string& logs) const {
  std::vector<std::pair<std::string, const CauseGroup*>> sorted;
  for (const auto& [cause, group] : causes_) sorted.emplace_back(cause, &group);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second->count > b.second->count; });
  std::string out;
  for (const auto& [cause, group] : sorted) {
    out += "  " + count_text(group->count, cause);
    for (const auto& words : group->order) out += alike_text(group->alike.at(words), logs);
    if (group->others > 0)
      out += "    … and " + std::to_string(group->others) + " more with other last lines\n";
  }
  return out;
}

}  // namespace sluice::engine
