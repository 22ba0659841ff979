// What of HDF5 files an input is, where it is not the files themselves: one dataset, some of its
// rows, or several files put together. A row is one index of a dataset's first axis. Made by
// io/hdf5.h in `sluice-h5`, before the attempt starts; carried in AttemptSpec. Values, any thread.
// Test: tests/io/h5_view_test.cpp, tests/engine/h5_view_test.cpp
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/expected.h"

namespace sluice::io {

struct H5View {
  // How several files become one: along the first axis, or along a new one before it.
  enum class Gather : uint8_t { kNone, kConcat, kStack };

  std::string dataset;  // "/u"; "": all of the file
  int64_t first_row = 0;
  int64_t end_row = kAllRows;  // one past the last
  uint32_t shard = 0;          // this one of as many equal parts of the rows
  uint32_t shards = 0;         // 0: the rows are not divided
  Gather gather = Gather::kNone;

  static constexpr int64_t kAllRows = -1;
  bool operator==(const H5View&) const = default;
  [[nodiscard]] bool whole() const { return *this == H5View(); }
};

// Rows from `begin` on, before `end`.
struct Rows {
  int64_t begin = 0;
  int64_t end = 0;
};
// Those of `view` in a dataset of so many rows: parts differ by at most one row, and are empty
// where there are more parts than rows. An Error if the dataset has fewer rows than were asked for.
[[nodiscard]] Expected<Rows> rows_of(const H5View& view, int64_t row_count);

// A file to look into, and what people call it: "field.h5 of [alpha=0.1]".
struct H5Source {
  std::string path;
  std::string name;
};
// As the bytes of a file, since they may be more than fit into a message: path and name, each with
// a NUL behind it.
[[nodiscard]] std::string encode_sources(const std::vector<H5Source>& sources);
[[nodiscard]] Expected<std::vector<H5Source>> decode_sources(std::string_view bytes);

}  // namespace sluice::io
