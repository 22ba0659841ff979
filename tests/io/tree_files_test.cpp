#include "io/tree_files.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cerrno>
#include <random>

#include "tests/support/random_tree.h"
#include "tests/support/seeds.h"

using namespace sluice;
using io::Manifest;
using io::Sync;
using test::read_text;
using test::TemporaryFolder;
using test::TreeModel;
namespace fs = std::filesystem;

namespace {

mode_t mode_of(const fs::path& path) {
  struct stat info {};
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info.st_mode & 07777U;
}

Manifest scan(const fs::path& root) { return io::scan_tree(root).value(); }

const TreeModel kTree = {
    {"bin", "d"},        {"bin/tool", "x#!/bin/sh\n"}, {"data", "fbytes"},  {"empty", "d"},
    {"empty file", "f"}, {"latest", "ldata"},          {"bin/up", "l../d"}, {"bin/in", "d"}};

}  // namespace

TEST_CASE("tree files: a sealed tree can be read and run, not written") {
  const TemporaryFolder folder;
  test::write_tree(folder / "t", kTree);
  REQUIRE(io::seal_tree(folder / "t", scan(folder / "t")));
  CHECK(mode_of(folder / "t") == 0555);
  CHECK(mode_of(folder / "t/bin") == 0555);
  CHECK(mode_of(folder / "t/bin/tool") == 0555);
  CHECK(mode_of(folder / "t/data") == 0444);
  CHECK(test::read_tree(folder / "t") == kTree);
  CHECK(io::remove_tree(folder / "t"));
  CHECK_FALSE(fs::exists(folder / "t"));
}

TEST_CASE("tree files: a file with a second name is copied, so that no one can change the tree") {
  const TemporaryFolder folder;
  test::write_tree(folder / "t", {{"a", "fbefore"}});
  fs::create_hard_link(folder / "t/a", folder / "mine");
  fs::create_hard_link(folder / "t/a", folder / "t/b");
  REQUIRE(io::seal_tree(folder / "t", scan(folder / "t")));
  std::ofstream(folder / "mine") << "after!";
  CHECK(test::read_tree(folder / "t") == TreeModel{{"a", "fbefore"}, {"b", "fbefore"}});
  CHECK(mode_of(folder / "t/a") == 0444);
}

TEST_CASE("tree files: a linked tree has the same files under other names, and is sealed") {
  tests::for_each_seed([](uint64_t seed) {
    std::mt19937_64 random(seed);
    const TemporaryFolder folder;
    const TreeModel model = test::random_tree(random, 30);
    test::write_tree(folder / "from", model);
    const Manifest manifest = scan(folder / "from");
    REQUIRE(io::seal_tree(folder / "from", manifest));
    REQUIRE(io::link_tree(folder / "from", folder / "to", manifest));
    CHECK(test::read_tree(folder / "to") == model);
    CHECK(mode_of(folder / "to") == 0555);
    for (const auto& [path, what] : model) {
      if (what[0] == 'f') CHECK(fs::equivalent(folder / "from" / path, folder / "to" / path));
      if (what[0] == 'd') CHECK(mode_of(folder / "to" / path) == 0555);
    }
    REQUIRE(io::remove_tree(folder / "from"));
    CHECK(test::read_tree(folder / "to") == model);
  });
}

TEST_CASE("tree files: a file that went meanwhile leaves no half of a linked tree") {
  const TemporaryFolder folder;
  test::write_tree(folder / "from", kTree);
  const Manifest manifest = scan(folder / "from");
  fs::remove(folder / "from/data");
  const Status linked = io::link_tree(folder / "from", folder / "to", manifest);
  REQUIRE_FALSE(linked);
  CHECK(linked.error().code == ENOENT);
  CHECK_FALSE(fs::exists(folder / "to"));
}

TEST_CASE("tree files: a copy is whole, its files are read-only, and it stays by itself") {
  const TemporaryFolder folder;
  test::write_tree(folder / "from", kTree);
  const Manifest manifest = scan(folder / "from");
  REQUIRE(io::seal_tree(folder / "from", manifest));
  const mode_t before = ::umask(022);
  REQUIRE(io::copy_tree(folder / "from", folder / "to", manifest, Sync::kFileAndFolder));
  ::umask(before);
  CHECK(test::read_tree(folder / "to") == kTree);
  CHECK(mode_of(folder / "to") == 0755);
  CHECK(mode_of(folder / "to/bin") == 0755);
  CHECK(mode_of(folder / "to/bin/tool") == 0555);
  CHECK(mode_of(folder / "to/data") == 0444);
  CHECK_FALSE(fs::equivalent(folder / "from/data", folder / "to/data"));
}

TEST_CASE("tree files: a copy onto what is there is refused and leaves that alone") {
  const TemporaryFolder folder;
  test::write_tree(folder / "from", kTree);
  test::write_tree(folder / "to", {{"mine", "fbytes"}});
  const Status copied =
      io::copy_tree(folder / "from", folder / "to", scan(folder / "from"), Sync::kNo);
  REQUIRE_FALSE(copied);
  CHECK(copied.error().code == EEXIST);
  CHECK(read_text(folder / "to/mine") == "bytes");
}
