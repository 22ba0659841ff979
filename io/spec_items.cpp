// Items by their values, for foreach and joins.
#include <algorithm>
#include <unordered_set>

#include "io/numbers.h"
#include "io/spec_reader.h"

namespace sluice::io {

namespace {

constexpr size_t kNamedMax = 3;
constexpr size_t kComparedMax = 1000;  // a distance to each of them is worth it

}  // namespace

std::string joined_values(const std::vector<std::string>& item,
                          const std::vector<size_t>& columns) {
  std::string out;
  for (const size_t column : columns) {
    out += std::to_string(item[column].size()) + ":" + item[column];
  }
  return out;
}

std::string named_items(const SpecTask& task, const std::vector<uint32_t>& items) {
  std::string all;
  for (size_t i = 0; i < std::min(items.size(), kNamedMax); ++i) {
    all += (i == 0 ? "[" : ", [") + item_text(task.text, items[i]) + "]";
  }
  if (items.size() > kNamedMax) {
    all += " and " + std::to_string(items.size() - kNamedMax) + " more";
  }
  return all;
}

std::string value_hint(const SpecTask& task, size_t column, const std::string& text) {
  std::unordered_set<std::string_view> seen;
  std::vector<std::string> values;
  const auto number = parse_float(text);
  for (const auto& item : task.text.items) {
    const std::string& value = item[column];
    if (!seen.insert(value).second) {
      continue;
    }
    if (number && parse_float(value) == number) {
      return "the same number is written '" + value + "' there: values are compared as text";
    }
    if (values.size() < kComparedMax) {
      values.push_back(value);
    }
  }
  return suggestion(text, values, "'" + task.text.keys[column] + "' has the values");
}

}  // namespace sluice::io
