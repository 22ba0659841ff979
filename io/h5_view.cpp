#include "io/h5_view.h"

#include <algorithm>
#include <utility>

namespace sluice::io {

namespace {

// floor(rows × part ÷ parts), for any number of rows.
int64_t share(int64_t rows, int64_t part, int64_t parts) {
  return rows / parts * part + rows % parts * part / parts;
}

}  // namespace

Expected<Rows> rows_of(const H5View& view, int64_t row_count) {
  const int64_t end = view.end_row == H5View::kAllRows ? row_count : view.end_row;
  if (view.first_row > row_count || end > row_count) {
    return Error{"it has " + std::to_string(row_count) + " rows; expected at least " +
                 std::to_string(std::max(view.first_row, end))};
  }
  if (view.shards == 0) return Rows{view.first_row, end};
  const int64_t rows = end - view.first_row;
  return Rows{view.first_row + share(rows, view.shard, view.shards),
              view.first_row + share(rows, int64_t{view.shard} + 1, view.shards)};
}

std::string encode_sources(const std::vector<H5Source>& sources) {
  std::string bytes;
  for (const H5Source& source : sources) {
    bytes += source.path;
    bytes += '\0';
    bytes += source.name;
    bytes += '\0';
  }
  return bytes;
}

Expected<std::vector<H5Source>> decode_sources(std::string_view bytes) {
  std::vector<H5Source> sources;
  std::vector<std::string> texts;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\0');
    if (end == std::string_view::npos) return Error{"a list of HDF5 files is cut off"};
    texts.emplace_back(bytes.substr(0, end));
    bytes.remove_prefix(end + 1);
  }
  if (texts.size() % 2 != 0) return Error{"a list of HDF5 files lacks the last one's name"};
  for (size_t i = 0; i < texts.size(); i += 2) sources.push_back({texts[i], texts[i + 1]});
  return sources;
}

}  // namespace sluice::io
