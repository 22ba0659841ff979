#include "io/tree_stream.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <random>

#include "tests/support/random_tree.h"
#include "tests/support/seeds.h"

using namespace sluice;
using io::Manifest;
using io::TreeEntry;
using io::TreeReader;
using io::TreeWriter;
using test::TemporaryFolder;
using test::TreeModel;
using Kind = TreeEntry::Kind;
namespace fs = std::filesystem;

namespace {

TreeReader open(const fs::path& root) {
  auto reader = TreeReader::open(root);
  REQUIRE_MESSAGE(reader.ok(), reader.error().message);
  return std::move(*reader);
}

// Cuts [begin, end) into pieces of random sizes.
std::vector<std::pair<int64_t, int64_t>> pieces(std::mt19937_64& random, int64_t begin,
                                                int64_t end) {
  std::vector<std::pair<int64_t, int64_t>> cut;
  while (begin < end) {
    const auto most = static_cast<uint64_t>(random() % 3 == 0 ? 20 : 100'000);
    const int64_t bytes = std::min(end - begin, static_cast<int64_t>(1 + random() % most));
    cut.emplace_back(begin, bytes);
    begin += bytes;
  }
  return cut;
}

void move(const TreeReader& reader, const std::pair<int64_t, int64_t>& piece, TreeWriter& writer) {
  const auto bytes = reader.read(piece.first, piece.second);
  REQUIRE_MESSAGE(bytes.ok(), bytes.error().message);
  REQUIRE(static_cast<int64_t>(bytes->size()) == piece.second);
  const Status written = writer.write(piece.first, *bytes);
  REQUIRE_MESSAGE(written.ok(), written.error().message);
}

}  // namespace

TEST_CASE(
    "tree stream: any tree arrives as it was, in pieces of any size, the files in any order") {
  tests::for_each_seed([](uint64_t seed) {
    std::mt19937_64 random(seed);
    const TemporaryFolder folder;
    const TreeModel model = test::random_tree(random, 50);
    test::write_tree(folder / "from", model);
    const TreeReader reader = open(folder / "from");
    TreeWriter writer(folder / "to", reader.manifest_bytes(), reader.total_bytes());
    auto cut = pieces(random, 0, reader.total_bytes());
    const auto files = std::partition_point(cut.begin(), cut.end(), [&reader](const auto& piece) {
      return piece.first < reader.manifest_bytes();
    });
    std::shuffle(files, cut.end(), random);
    for (const auto& piece : cut) move(reader, piece, writer);
    CHECK(writer.unpacked());
    // Whether it may be executed is set when it is sealed.
    TreeModel expected = model;
    for (auto& [path, what] : expected) what[0] = what[0] == 'x' ? 'f' : what[0];
    CHECK(test::read_tree(folder / "to") == expected);
    CHECK(writer.manifest() == io::scan_tree(folder / "from").value());
  });
}

TEST_CASE("tree stream: what lies beyond the end is left out") {
  const TemporaryFolder folder;
  test::write_tree(folder / "t", {{"a", "f123"}, {"b", "f"}, {"c", "f45"}});
  const TreeReader reader = open(folder / "t");
  const int64_t head = reader.manifest_bytes();
  CHECK(reader.total_bytes() == head + 5);
  CHECK(reader.read(head + 2, 100)->size() == 3);
  CHECK(reader.read(head + 5, 1)->empty());
  CHECK(reader.read(1LL << 60U, 1LL << 60U)->empty());
  CHECK(reader.read(0, 1LL << 60U)->size() == static_cast<size_t>(head) + 5);
}

TEST_CASE("tree stream: an empty directory is a list of nothing") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "from");
  const TreeReader reader = open(folder / "from");
  CHECK(reader.manifest_bytes() >= 1);
  TreeWriter writer(folder / "to", reader.manifest_bytes(), reader.total_bytes());
  move(reader, {0, reader.total_bytes()}, writer);
  CHECK(fs::is_directory(folder / "to"));
}

TEST_CASE("tree stream: sizes beyond 4 GiB are found where they are") {
  constexpr int64_t kHuge = (5LL << 30U) + 3;
  const Manifest manifest{{{"a", Kind::kFile, false, kHuge, ""},
                           {"b", Kind::kFile, false, 0, ""},
                           {"c", Kind::kFile, false, 7, ""},
                           {"d", Kind::kFile, false, 1LL << 50U, ""}},
                          0};
  const io::TreeLayout layout(manifest);
  const auto spans = layout.find(kHuge - 2, 20);
  REQUIRE(spans.size() == 3);
  CHECK(spans[0].entry == 0);
  CHECK(spans[0].offset == kHuge - 2);
  CHECK(spans[0].bytes == 2);
  CHECK(spans[1].entry == 2);
  CHECK(spans[1].offset == 0);
  CHECK(spans[1].bytes == 7);
  CHECK(spans[2].entry == 3);
  CHECK(spans[2].bytes == 11);
  const int64_t last = kHuge + 7 + (1LL << 50U) - 1;
  REQUIRE(layout.find(last, 10).size() == 1);
  CHECK(layout.find(last, 10)[0].offset == (1LL << 50U) - 1);
  CHECK(layout.find(last + 1, 10).empty());
}

TEST_CASE("tree stream: what does not fit together is refused") {
  const TemporaryFolder folder;
  test::write_tree(folder / "from", {{"a", "f12345"}});
  const TreeReader reader = open(folder / "from");
  const auto all = reader.read(0, reader.total_bytes());
  const std::span<const std::byte> head =
      std::span(*all).first(static_cast<size_t>(reader.manifest_bytes()));
  SUBCASE("files before the list of them") {
    TreeWriter writer(folder / "to", reader.manifest_bytes(), reader.total_bytes());
    CHECK_FALSE(writer.write(reader.manifest_bytes(), std::span(*all).last(5)));
  }
  SUBCASE("fewer bytes than the list says") {
    TreeWriter writer(folder / "to", reader.manifest_bytes(), reader.total_bytes() - 1);
    CHECK_FALSE(writer.write(0, head));
    CHECK_FALSE(fs::exists(folder / "to"));
  }
  SUBCASE("the list twice") {
    TreeWriter writer(folder / "to", reader.manifest_bytes(), reader.total_bytes());
    CHECK(writer.write(0, head));
    CHECK_FALSE(writer.write(0, head));
  }
  SUBCASE("the end of the list before its begin") {
    TreeWriter writer(folder / "to", 1 << 30, 1 << 30);
    CHECK_FALSE(writer.write(1 << 29, head));
  }
  SUBCASE("a place that is taken") {
    test::write_text(folder / "to", "mine");
    TreeWriter writer(folder / "to", reader.manifest_bytes(), reader.total_bytes());
    CHECK_FALSE(writer.write(0, *all));
  }
}

TEST_CASE("tree stream: a file that was cut meanwhile is an error, not short data") {
  const TemporaryFolder folder;
  test::write_tree(folder / "t", {{"a", "f12345"}, {"b", "f6"}});
  const TreeReader reader = open(folder / "t");
  test::write_text(folder / "t/a", "1");
  CHECK_FALSE(reader.read(0, reader.total_bytes()));
}
