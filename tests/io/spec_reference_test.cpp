// configs/README.md, "Each key by example": every supported key has an example that is accepted and
// a mistake of which exactly what is written there is said. The frame into which the rows are put
// stands there too.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/spec_schema.h"
#include "tests/support/spec_folder.h"

namespace {

using namespace sluice;
using namespace sluice::io;

using Lines = std::vector<std::string>;

// Where in the frame the rows of a level stand. Each map is indented by two blanks.
struct Place {
  Level level;
  std::string_view path;  // "tasks.t"
};
constexpr Place kPlaces[] = {
    {Level::kTop, ""},
    {Level::kParam, "params.data"},
    {Level::kTask, "tasks.t"},
    {Level::kForeach, "tasks.t.foreach"},
    {Level::kForeachValue, "tasks.t.foreach.alpha"},
    {Level::kInput, "tasks.t.inputs.x"},
    {Level::kOutput, "tasks.t.outputs.y"},
    {Level::kResources, "tasks.t.resources"},
    {Level::kRetry, "tasks.t.retry"},
    {Level::kRetryCause, "tasks.t.retry.exit"},
};
static_assert(std::size(kPlaces) == kLevelCount);

// The keys of the frame that make room for `key`, beside itself.
std::set<std::string> replaced_by(Level level, const std::string& key) {
  const std::vector<std::pair<Level, std::set<std::string>>> kOneOf = {
      {Level::kTask, {"run", "sh"}},
      {Level::kForeachValue, {"range", "lines", "glob", "shards"}},
      {Level::kInput, {"from", "file"}},
      {Level::kOutput, {"file", "h5", "dir", "value"}},
  };
  for (const auto& [of_level, keys] : kOneOf) {
    if (of_level == level && keys.count(key) > 0) {
      return keys;
    }
  }
  if (level == Level::kForeach && key == "product") {
    return {"product", "grid", "part", "alpha"};
  }
  return {key};
}

struct Row {
  Level level;
  std::string key, example, mistake, said;
};

struct Section {
  Lines frame;
  std::vector<Row> rows;
};

// "| a | `b: c` |" gives "a", "b: c": backticks around a whole cell are taken off.
Lines cells_of(const std::string& line) {
  Lines cells;
  for (size_t begin = 1, bar; (bar = line.find('|', begin)) != std::string::npos; begin = bar + 1) {
    std::string cell = line.substr(begin, bar - begin);
    cell.erase(0, cell.find_first_not_of(' '));
    cell.erase(cell.find_last_not_of(' ') + 1);
    if (cell.size() > 1 && cell.front() == '`' && cell.find('`', 1) == cell.size() - 1) {
      cell = cell.substr(1, cell.size() - 2);
    }
    cells.push_back(std::move(cell));
  }
  return cells;
}

std::string heading(const Place& place) {
  const std::string path = place.path.empty() ? "" : ", `" + std::string(place.path) + "`";
  return "## Examples: " + std::string(level_title(place.level)) + path;
}

Section read_section() {
  std::istringstream text(test::read_text(std::string(SLUICE_SOURCE_DIR) + "/configs/README.md"));
  Section section;
  bool inside = false;
  bool in_frame = false;
  const Place* place = nullptr;
  for (std::string line; std::getline(text, line);) {
    if (in_frame) {
      in_frame = line != "```";
      if (in_frame) {
        section.frame.push_back(line);
      }
    } else if (line.rfind("# ", 0) == 0) {
      inside = line == "# Each key by example";
    } else if (inside && line == "```yaml") {
      in_frame = true;
    } else if (inside && line.rfind("## ", 0) == 0) {
      place = std::find_if(std::begin(kPlaces), std::end(kPlaces),
                           [&](const Place& one) { return heading(one) == line; });
      REQUIRE_MESSAGE(place != std::end(kPlaces), line);
    } else if (inside && line.rfind("| `", 0) == 0) {
      const Lines cells = cells_of(line);
      REQUIRE_MESSAGE(cells.size() == 4, line);
      REQUIRE_MESSAGE(place != nullptr, line);
      section.rows.push_back({place->level, cells[0], cells[1], cells[2], cells[3]});
    }
  }
  return section;
}

// The lines [first, second) below a key's.
using Range = std::pair<size_t, size_t>;

size_t indent_of(const std::string& line) { return line.find_first_not_of(' '); }
std::string key_of(const std::string& line) {
  const size_t begin = indent_of(line);
  return line.substr(begin, line.find(':') - begin);
}
Range below(const Lines& lines, size_t at) {
  size_t end = at + 1;
  while (end < lines.size() && indent_of(lines[end]) > indent_of(lines[at])) {
    ++end;
  }
  return {at + 1, end};
}

struct Spec {
  std::string text;
  size_t line;  // of the snippet, from 1
};

// The frame with `snippet`, a "key: value", at its level.
Spec put(Lines lines, Level level, const std::string& snippet) {
  const auto* const place = std::find_if(std::begin(kPlaces), std::end(kPlaces),
                                         [&](const Place& one) { return one.level == level; });
  Range map = {0, lines.size()};
  size_t indent = 0;
  std::istringstream path{std::string(place->path)};
  for (std::string key; std::getline(path, key, '.'); indent += 2) {
    size_t at = map.first;
    while (at < map.second && (indent_of(lines[at]) != indent || key_of(lines[at]) != key)) {
      ++at;
    }
    REQUIRE_MESSAGE(at < map.second, "the frame has no " << place->path);
    map = below(lines, at);
  }
  const std::set<std::string> replaced = replaced_by(level, key_of(snippet));
  size_t to = map.second;
  for (size_t at = map.second; at-- > map.first;) {
    if (indent_of(lines[at]) == indent && replaced.count(key_of(lines[at])) > 0) {
      const Range children = below(lines, at);
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at),
                  lines.begin() + static_cast<std::ptrdiff_t>(children.second));
      to = at;
    }
  }
  const auto insert = [&](const std::string& line) {
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(to), std::string(indent, ' ') + line);
  };
  if (key_of(snippet) == "gather") {
    insert("join: all");
  }
  insert(snippet);
  std::string text;
  for (const std::string& line : lines) {
    text += line + "\n";
  }
  return {std::move(text), to + 1};
}

class Folder : public test::SpecFolder {
 public:
  Folder() {
    write("data/a.csv", "1,2\n");
    write("list.txt", "one\ntwo\n");
  }
};

}  // namespace

TEST_CASE("spec_reference: each supported key has one row in its level's table, and no other has") {
  std::multiset<std::pair<Level, std::string>> rows;
  for (const Row& row : read_section().rows) {
    rows.emplace(row.level, row.key);
    const KeyRule* rule = find_rule(row.level, row.key);
    const bool supported = rule != nullptr && rule->supported;
    CHECK_MESSAGE(supported, level_title(row.level) << " has a row for " << row.key);
    CHECK(row.example.rfind(row.key + ":", 0) == 0);
    CHECK(row.mistake.rfind(row.key + ":", 0) == 0);
  }
  for (const KeyRule& rule : key_rules()) {
    const size_t expected = rule.supported ? 1 : 0;
    CHECK_MESSAGE(rows.count({rule.level, std::string(rule.key)}) == expected,
                  level_title(rule.level) << ": " << rule.key);
  }
}

TEST_CASE("spec_reference: each example is accepted without a word") {
  const Section section = read_section();
  Folder folder;
  for (const Row& row : section.rows) {
    const Spec spec = put(section.frame, row.level, row.example);
    CAPTURE(spec.text);
    const auto pipeline = folder.read(spec.text);
    CHECK_MESSAGE(pipeline.has_value(), row.example);
    CHECK(folder.printed == "");
  }
}

TEST_CASE("spec_reference: of each mistake is said what the table has, at its place") {
  const Section section = read_section();
  Folder folder;
  for (const Row& row : section.rows) {
    const Spec spec = put(section.frame, row.level, row.mistake);
    const auto pipeline = folder.read(spec.text);
    CHECK_FALSE(pipeline.has_value());
    const std::string first = folder.printed.substr(0, folder.printed.find('\n'));
    const std::string error = ": error: ";
    const size_t at = std::min(first.find(error), first.size());
    const std::string found = at < first.size() ? first.substr(at + error.size()) : "";
    CAPTURE(row.mistake);
    CAPTURE(folder.printed);
    CHECK(found == row.said);
    CHECK(first.rfind("p.yaml:" + std::to_string(spec.line) + ":", 0) == 0);
  }
}
