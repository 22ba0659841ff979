// What people read about their spec: `file:line:col: error: text`, the source line, a caret, `hint:
// …`. Collected, then printed all at once in file order, with the count of errors at the end.
// Values; one thread. Test: tests/io/diagnostic_test.cpp
#pragma once

#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::io {

struct Mark {
  uint32_t line = 0;    // from 1; 0: no place
  uint32_t column = 0;  // in bytes, from 1
};

struct Diagnostic {
  enum class Level : uint8_t { kError, kWarning };
  Level level = Level::kError;
  Mark mark;
  std::string text;  // lower case, no final stop: found, expected
  std::string hint;  // what to do; may be empty
};

class Diagnostics {
 public:
  explicit Diagnostics(std::string file = "") : file_(std::move(file)) {}
  void set_source(std::string file, const std::string& source);
  void error(Mark mark, std::string text, std::string hint = "");
  void warning(Mark mark, std::string text, std::string hint = "");
  // From here on only the first finding at each place from `begin` to before `end` counts: what
  // stands there is read several times.
  void report_once(Mark begin, Mark end);
  [[nodiscard]] size_t errors() const;
  [[nodiscard]] std::span<const Diagnostic> all() const { return all_; }
  [[nodiscard]] const std::string& file() const { return file_; }
  // By place, duplicates removed: what print() shows.
  [[nodiscard]] std::vector<Diagnostic> sorted() const;
  // Tabs in the source line are shown as `→`.
  void print(std::ostream& out) const;

 private:
  void add(Diagnostic found);

  std::string file_;
  Mark once_begin_;
  Mark once_end_;
  std::vector<std::string> lines_;
  std::vector<Diagnostic> all_;
};

// The candidate nearest to `word` (Damerau-Levenshtein distance at most 1 + length / 4), or "".
[[nodiscard]] std::string did_you_mean(std::string_view word,
                                       std::span<const std::string> candidates);
// A hint: "did you mean 'near'?", or all there are: "`title` a, b, c"; "" when there is nothing.
// Each name is shown with `prefix` before it.
[[nodiscard]] std::string suggestion(std::string_view word, std::span<const std::string> candidates,
                                     std::string_view title, std::string_view prefix = "");

}  // namespace sluice::io
