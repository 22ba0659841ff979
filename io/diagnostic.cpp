#include "io/diagnostic.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <ostream>
#include <tuple>
#include <utility>

namespace sluice::io {

namespace {

constexpr size_t kShownBytesMax = 160;

// What is shown of a source line: tabs visible, other control characters blank, long lines cut
// around the place. `caret` counts characters, not bytes, so that it stays below its place.
struct Shown {
  std::string line;
  size_t caret = 0;
};

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

Shown show(const std::string& line, size_t column) {
  const size_t place = std::min(column == 0 ? 0 : column - 1, line.size());
  size_t begin = place > kShownBytesMax ? place - kShownBytesMax / 2 : 0;
  while (begin > 0 && begin < line.size() && continues_character(line[begin])) {
    --begin;
  }
  size_t end = std::min(line.size(), begin + kShownBytesMax);
  while (end < line.size() && continues_character(line[end])) {
    ++end;
  }
  Shown shown;
  shown.line = begin > 0 ? "..." : "";
  shown.caret = shown.line.size();
  for (size_t i = begin; i < end; ++i) {
    const char c = line[i];
    shown.caret += i < place && !continues_character(c) ? 1 : 0;
    if (c == '\t') {
      shown.line += "→";
    } else {
      shown.line += std::iscntrl(static_cast<unsigned char>(c)) != 0 ? ' ' : c;
    }
  }
  shown.line += end < line.size() ? "..." : "";
  return shown;
}

// What a user typed may hold control characters, which a terminal would obey.
std::string visible(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\t') {
      out += "→";
    } else {
      out += c != '\n' && std::iscntrl(static_cast<unsigned char>(c)) != 0 ? '?' : c;
    }
  }
  return out;
}

auto sort_key(const Diagnostic& d) {
  return std::tie(d.mark.line, d.mark.column, d.level, d.text, d.hint);
}

// Optimal string alignment: insert, delete, replace, swap neighbours.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::array<std::vector<size_t>, 3> rows;
  for (auto& row : rows) {
    row.resize(b.size() + 1);
  }
  std::iota(rows[0].begin(), rows[0].end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    auto& row = rows[i % 3];
    const auto& above = rows[(i + 2) % 3];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replace = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], rows[(i + 1) % 3][j - 2] + 1);
      }
    }
  }
  return rows[a.size() % 3][b.size()];
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

}  // namespace

void Diagnostics::set_source(std::string file, const std::string& source) {
  file_ = std::move(file);
  lines_.clear();
  size_t begin = 0;
  while (begin <= source.size()) {
    const size_t end = std::min(source.find('\n', begin), source.size());
    lines_.push_back(source.substr(begin, end - begin));
    begin = end + 1;
  }
}

void Diagnostics::error(Mark mark, std::string text, std::string hint) {
  add({Diagnostic::Level::kError, mark, std::move(text), std::move(hint)});
}

void Diagnostics::warning(Mark mark, std::string text, std::string hint) {
  add({Diagnostic::Level::kWarning, mark, std::move(text), std::move(hint)});
}

void Diagnostics::report_once(Mark begin, Mark end) {
  once_begin_ = begin;
  once_end_ = end;
}

void Diagnostics::add(Diagnostic found) {
  const auto place = [](Mark mark) { return std::pair(mark.line, mark.column); };
  const bool once = place(found.mark) >= place(once_begin_) && place(found.mark) < place(once_end_);
  if (once && std::any_of(all_.begin(), all_.end(), [&](const Diagnostic& d) {
        return place(d.mark) == place(found.mark);
      })) {
    return;
  }
  all_.push_back(std::move(found));
}

size_t Diagnostics::errors() const {
  return static_cast<size_t>(std::count_if(all_.begin(), all_.end(), [](const Diagnostic& d) {
    return d.level == Diagnostic::Level::kError;
  }));
}

std::vector<Diagnostic> Diagnostics::sorted() const {
  std::vector<Diagnostic> findings = all_;
  std::sort(findings.begin(), findings.end(),
            [](const Diagnostic& a, const Diagnostic& b) { return sort_key(a) < sort_key(b); });
  const auto same = [](const Diagnostic& a, const Diagnostic& b) {
    return sort_key(a) == sort_key(b);
  };
  findings.erase(std::unique(findings.begin(), findings.end(), same), findings.end());
  return findings;
}

void Diagnostics::print(std::ostream& out) const {
  size_t error_count = 0;
  for (const Diagnostic& d : sorted()) {
    const bool is_error = d.level == Diagnostic::Level::kError;
    error_count += is_error ? 1 : 0;
    out << file_;
    if (d.mark.line > 0) {
      out << ':' << d.mark.line << ':' << d.mark.column;
    }
    out << ": " << (is_error ? "error: " : "warning: ") << visible(d.text) << '\n';
    if (d.mark.line > 0 && d.mark.line <= lines_.size()) {
      const Shown shown = show(lines_[d.mark.line - 1], d.mark.column);
      out << "  " << shown.line << "\n  " << std::string(shown.caret, ' ') << "^\n";
    }
    if (!d.hint.empty()) {
      out << "hint: " << visible(d.hint) << '\n';
    }
  }
  if (error_count > 0) {
    out << error_count << (error_count == 1 ? " error\n" : " errors\n");
  }
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
  constexpr size_t kComparedBytesMax = 64;
  if (word.empty() || word.size() > kComparedBytesMax) {
    return "";
  }
  std::string best;
  size_t best_distance = 1 + word.size() / 4 + 1;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > 2 * kComparedBytesMax) {
      continue;
    }
    const size_t distance = edit_distance(lower(word), lower(candidate));
    // One wrong letter of a name of one letter is another name, not a misspelling.
    if (distance < best_distance && distance < std::max(word.size(), candidate.size())) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string suggestion(std::string_view word, std::span<const std::string> candidates,
                       std::string_view title, std::string_view prefix) {
  constexpr size_t kShownMax = 20;
  std::string hint;
  if (const std::string near = did_you_mean(word, candidates); !near.empty()) {
    hint = "did you mean '";
    hint.append(prefix).append(near).append("'?");
    return hint;
  }
  for (size_t i = 0; i < std::min(candidates.size(), kShownMax); ++i) {
    hint.append(i == 0 ? std::string(title) + " " : ", ").append(prefix).append(candidates[i]);
  }
  return hint + (candidates.size() > kShownMax ? ", ..." : "");
}

}  // namespace sluice::io
