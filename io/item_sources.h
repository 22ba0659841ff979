// Items that lie outside the spec: the lines of a file, the files that match a pattern. Read once,
// at the start of a submission. Names are bytes: blanks, quotes, newlines survive. Reads the file
// system; keeps nothing; one thread. Test: tests/io/item_sources_test.cpp
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "scheduler/expected.h"

namespace sluice::io {

struct LineList {
  std::vector<std::string> lines;  // lines[i] is line i + 1 of the file
  bool carriage_returns = false;   // some lines ended with one; they are not part of the items
};

// Every line is an item, byte for byte, but for a UTF-8 byte-order mark at the beginning and the
// carriage return of a line end. Blank lines at the end are ignored; one before a line with text is
// an Error, and so is a NUL byte: no program could be given it.
[[nodiscard]] Expected<LineList> read_line_list(const std::filesystem::path& file);

// `*`, `?` and `[...]` within a name, `**` for any number of folders; a `.` at the beginning of a
// name must be written. Whatever is no folder counts as a file, a link that leads nowhere too, so
// that its reader complains and not nobody. `**` does not follow links to folders.
class GlobPattern {
 public:
  explicit GlobPattern(const std::string& pattern);

  // Sorted by bytes, without repetition; relative to `folder` unless the pattern is absolute. A
  // name that begins with `-` comes as `./-name`, for no program to take it for an option. Nothing
  // below `left_out` counts. An Error names a folder that cannot be read.
  [[nodiscard]] Expected<std::vector<std::string>> files(
      const std::filesystem::path& folder, const std::filesystem::path& left_out) const;
  // Could a file below `directory` match, whether there is one now or not?
  [[nodiscard]] bool reaches(const std::filesystem::path& folder,
                             const std::filesystem::path& directory) const;

 private:
  bool absolute_ = false;
  std::vector<std::string> parts_;
};

}  // namespace sluice::io
