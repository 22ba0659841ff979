// The values of a foreach key: written in the spec, counted, or found in files.
#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <unordered_map>

#include "io/item_sources.h"
#include "io/spec_foreach.h"
#include "io/spec_schema.h"
#include "io/spec_values.h"

namespace sluice::io {

namespace {

using Texts = std::vector<std::string>;

class ValuesReader {
 public:
  ValuesReader(SpecReading& reading, SpecTask& task, NodeIndex node, bool allow_empty)
      : reading_(reading),
        tree_(reading.tree),
        task_(task),
        node_(node),
        allow_empty_(allow_empty),
        what_("foreach key '" + tree_[node].key + "' of task '" + task.name + "'") {}

  std::optional<Texts> run() {
    const size_t errors_before = reading_.diagnostics.errors();
    Texts texts = read();
    if (reading_.diagnostics.errors() == errors_before) {
      check_distinct(texts);
    }
    if (reading_.diagnostics.errors() > errors_before) {
      return std::nullopt;
    }
    return texts;
  }

 private:
  Texts read() {
    const YamlNode& found = tree_[node_];
    if (found.kind == YamlNode::Kind::kMap) {
      return read_map();
    }
    if (found.kind == YamlNode::Kind::kList) {
      return found.count == 0 ? not_empty({}) : read_list(node_, "a value of " + what_);
    }
    std::optional<Value> value = read_value(reading_, node_, what_);
    if (!value) {
      return {};
    }
    if (value->kind != Value::Kind::kList) {
      report_value(reading_, node_, what_ + " must be a list, found '" + value->text + "'",
                   list_hint(found.text));
      return {};
    }
    return not_empty(std::move(value->list));
  }

  // `grid: grids` or `grid: params.grids`: probably a param is meant.
  [[nodiscard]] std::string list_hint(const std::string& text) const {
    for (const Param& param : reading_.params) {
      if (text == param.name || text == "params." + param.name) {
        return "to use the param write \"${{ params." + param.name + " }}\"";
      }
    }
    const std::string one = "write [" + text + "] for a list of one, ";
    if (text.find_first_of("*?") != std::string::npos) {
      return one + "{glob: \"" + text + "\"} for the files that match";
    }
    std::error_code ignored;
    if (std::filesystem::is_regular_file(in_folder(reading_.folder, text), ignored)) {
      return one + "{lines: " + text + "} for the lines of that file";
    }
    return one + "or \"${{ params.NAME }}\" for a param of type list";
  }

  Texts not_empty(Texts texts) {
    if (texts.empty() && !allow_empty_) {
      report_value(reading_, node_, what_ + " has no values, so the task would have no instance",
                   "give at least one value, or write allow_empty: true in foreach");
    }
    return texts;
  }

  Texts read_list(NodeIndex list, const std::string& name) {
    Texts texts;
    texts.reserve(tree_[list].count);
    for (const NodeIndex child : tree_.children(list)) {
      if (std::optional<std::string> text = read_text(reading_, child, name)) {
        texts.push_back(std::move(*text));
      }
    }
    return texts;
  }

  Texts read_map() {
    check_keys(tree_, node_, Level::kForeachValue, what_, reading_.diagnostics);
    NodeIndex kind = kNoNode;
    for (const char* key : {"range", "lines", "glob", "shards"}) {
      const NodeIndex found = tree_.find(node_, key);
      if (found != kNoNode && kind != kNoNode) {
        reading_.diagnostics.error(tree_[found].key_mark,
                                   what_ + " has both '" + tree_[kind].key + "' and '" + key + "'",
                                   "write one of them");
        return {};
      }
      kind = found != kNoNode ? found : kind;
    }
    if (kind == kNoNode) {
      if (tree_[node_].count == 0) {
        reading_.diagnostics.error(tree_[node_].mark, what_ + " has no values",
                                   "write a list, {range: [0, 10]}, {lines: FILE}, {glob: "
                                   "PATTERN} or {shards: 16}");
      }
      return {};
    }
    return tree_[kind].key == "range"   ? range(kind)
           : tree_[kind].key == "lines" ? lines(kind)
           : tree_[kind].key == "glob"  ? glob(kind)
                                        : shards(kind);
  }

  Texts range(NodeIndex range) {
    Texts numbers = tree_[range].kind == YamlNode::Kind::kList
                        ? read_list(range, "a number of the range")
                        : Texts();
    if (tree_[range].count == 2 && numbers.size() == 2) {
      numbers.emplace_back("1");
    }
    if (numbers.size() != 3) {
      reading_.diagnostics.error(tree_[range].mark,
                                 "the range of " + what_ + " must have two or three numbers",
                                 "write {range: [first, end, step]}, the end not included");
      return {};
    }
    auto parsed = parse_range(numbers[0], numbers[1], numbers[2]);
    if (const auto* error = std::get_if<ValueError>(&parsed)) {
      reading_.diagnostics.error(tree_[range].mark, what_ + ": " + error->text, error->hint);
      return {};
    }
    auto& items = std::get<Texts>(parsed);
    if (items.empty() && !allow_empty_) {
      reading_.diagnostics.error(
          tree_[range].mark,
          what_ + ": the range from " + numbers[0] + " to " + numbers[1] + " by " + numbers[2] +
              " has no items",
          "a range is [first, end, step], the end not included; if none is fine write "
          "allow_empty: true in foreach");
    }
    return std::move(items);
  }

  // "0", "1", ...
  Texts shards(NodeIndex node) {
    constexpr int64_t kShardsMax = 100'000;
    const auto count = read_int(reading_, node, "'shards' of " + what_, 1, kShardsMax);
    Texts texts;
    for (int64_t shard = 0; shard < count.value_or(0); ++shard) {
      texts.push_back(std::to_string(shard));
    }
    if (count) {
      task_.shards[tree_[node_].key] = static_cast<uint32_t>(*count);
    }
    return texts;
  }

  Texts lines(NodeIndex file) {
    const auto name = read_text(reading_, file, "the file of " + what_);
    if (!name) {
      return {};
    }
    const auto [known, fresh] = reading_.item_lists.try_emplace({"lines", *name});
    if (fresh && !read_lines(file, *name, known->second)) {
      reading_.item_lists.erase(known);
      return {};
    }
    if (known->second.empty() && !allow_empty_) {
      report_value(reading_, file,
                   what_ + ": '" + *name + "' has no lines, so the task would have no instance",
                   "if that is fine write allow_empty: true in foreach");
    }
    lines_of_ = *name;
    task_.text.item_sources.push_back(*name);
    return known->second;
  }

  bool read_lines(NodeIndex file, const std::string& name, Texts& lines) {
    Expected<LineList> list = read_line_list(in_folder(reading_.folder, name));
    if (!list) {
      report_value(reading_, file, what_ + ": " + list.error().message,
                   list.error().code == 0 ? "remove the line, or save the file as text"
                                          : "paths are relative to the folder of the spec, " +
                                                reading_.folder.string());
      return false;
    }
    if (list->carriage_returns) {
      reading_.diagnostics.warning(tree_[file].mark,
                                   "lines of '" + name +
                                       "' end with carriage return and newline; the carriage "
                                       "returns are ignored",
                                   "save the file with unix line ends");
    }
    lines = std::move(list->lines);
    return true;
  }

  Texts glob(NodeIndex node) {
    const auto text = read_text(reading_, node, "the pattern of " + what_);
    if (!text) {
      return {};
    }
    const GlobPattern pattern(*text);
    const auto [known, fresh] = reading_.item_lists.try_emplace({"glob", *text});
    if (fresh) {
      auto files = pattern.files(reading_.folder, reading_.run_directory);
      if (!files) {
        report_value(reading_, node, what_ + ": " + files.error().message,
                     "make it readable, or choose a pattern that does not lead there");
        reading_.item_lists.erase(known);
        return {};
      }
      known->second = std::move(*files);
    }
    if (known->second.empty() && !allow_empty_) {
      report_value(reading_, node, what_ + ": no file matches '" + *text + "'",
                   "patterns are relative to the folder of the spec, " + reading_.folder.string() +
                       "; if none is fine write allow_empty: true in foreach");
    }
    warn_of_run_directory(node, *text, pattern);
    task_.text.item_sources.push_back(*text);
    return known->second;
  }

  void warn_of_run_directory(NodeIndex node, const std::string& text, const GlobPattern& pattern) {
    if (reading_.run_directory.empty() ||
        !pattern.reaches(reading_.folder, reading_.run_directory)) {
      return;
    }
    reading_.diagnostics.warning(tree_[node].mark,
                                 what_ + ": the pattern '" + text +
                                     "' also covers the run directory '" +
                                     reading_.run_directory.filename().string() +
                                     "', where results go; what lies there is left out",
                                 "keep the files to be read in a folder of their own");
  }

  void check_distinct(const Texts& texts) {
    std::unordered_map<std::string_view, size_t> seen;
    seen.reserve(texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto [first, fresh] = seen.emplace(texts[i], i);
      if (fresh) {
        continue;
      }
      const std::string places = lines_of_.empty()
                                     ? ""
                                     : " (lines " + std::to_string(first->second + 1) + " and " +
                                           std::to_string(i + 1) + " of '" + lines_of_ + "')";
      report_value(reading_, node_, what_ + " has the value '" + texts[i] + "' twice" + places,
                   "two instances with the same item cannot be told apart");
      return;
    }
  }

  SpecReading& reading_;
  const YamlTree& tree_;
  SpecTask& task_;
  NodeIndex node_;
  bool allow_empty_;
  std::string what_;
  std::string lines_of_;  // the file whose lines these are
};

}  // namespace

std::optional<Texts> read_foreach_values(SpecReading& reading, SpecTask& task, NodeIndex node,
                                         bool allow_empty) {
  return ValuesReader(reading, task, node, allow_empty).run();
}

}  // namespace sluice::io
