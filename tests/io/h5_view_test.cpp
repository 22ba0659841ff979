#include "io/h5_view.h"

#include <doctest/doctest.h>

#include <limits>

using namespace sluice;
using io::H5View;
using io::Rows;

namespace {

H5View shard(uint32_t part, uint32_t parts) {
  H5View view;
  view.shard = part;
  view.shards = parts;
  return view;
}

}  // namespace

TEST_CASE("h5 view: shards cover all rows in order, once, and differ by at most one") {
  for (const int64_t rows : {0, 1, 15, 16, 17, 1000}) {
    for (const uint32_t parts : {1U, 3U, 16U}) {
      CAPTURE(rows);
      CAPTURE(parts);
      int64_t next = 0;
      for (uint32_t part = 0; part < parts; ++part) {
        const auto found = io::rows_of(shard(part, parts), rows);
        REQUIRE(found.ok());
        CHECK(found->begin == next);
        const int64_t length = found->end - found->begin;
        CHECK(length >= rows / parts);
        CHECK(length <= rows / parts + 1);
        next = found->end;
      }
      CHECK(next == rows);
    }
  }
}

TEST_CASE("h5 view: shards of as many rows as there can be do not overflow") {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const auto last = io::rows_of(shard(99'999, 100'000), kMost);
  REQUIRE(last.ok());
  CHECK(last->end == kMost);
  CHECK(last->begin == kMost - kMost / 100'000 - 1);
}

TEST_CASE("h5 view: rows are those that were asked for, shards are parts of these") {
  H5View view;
  view.first_row = 10;
  view.end_row = 30;
  CHECK(io::rows_of(view, 100)->begin == 10);
  CHECK(io::rows_of(view, 100)->end == 30);
  view.shards = 2;
  view.shard = 1;
  CHECK(io::rows_of(view, 100)->begin == 20);
  CHECK(io::rows_of(view, 100)->end == 30);
}

TEST_CASE("h5 view: too few rows are an error that says how many there are") {
  H5View view;
  view.end_row = 1000;
  const auto found = io::rows_of(view, 100);
  REQUIRE_FALSE(found.ok());
  CHECK(found.error().message == "it has 100 rows; expected at least 1000");
  CHECK_FALSE(io::rows_of({"", 101, H5View::kAllRows, 0, 0, {}}, 100).ok());
}

TEST_CASE("h5 view: a list of files survives its encoding, a damaged one is refused") {
  const std::vector<io::H5Source> sources = {{"/a b\n", "one"}, {"/c", ""}};
  const std::string bytes = io::encode_sources(sources);
  const auto back = io::decode_sources(bytes);
  REQUIRE(back.ok());
  REQUIRE(back->size() == 2);
  CHECK((*back)[0].path == "/a b\n");
  CHECK((*back)[1].path == "/c");
  CHECK((*back)[1].name.empty());
  CHECK(io::decode_sources("").ok());
  for (size_t cut = 1; cut < bytes.size(); ++cut) {
    const auto part = io::decode_sources(std::string_view(bytes).substr(0, cut));
    CHECK((!part.ok() || part->size() == 1));
  }
}
