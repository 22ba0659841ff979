// Directories as objects of a store.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cerrno>
#include <random>

#include "io/store.h"
#include "io/tier.h"
#include "tests/support/random_tree.h"
#include "tests/support/seeds.h"

using namespace sluice;
using scheduler::AttemptId;
using scheduler::ObjectId;
using scheduler::OutputKind;
using test::read_text;
using test::TemporaryFolder;
using test::TreeModel;
namespace fs = std::filesystem;

namespace {

constexpr AttemptId kAttempt = AttemptId::make(1, 1);
constexpr ObjectId kObject(5);
const TreeModel kTree = {{"a", "fbytes"}, {"sub", "d"}, {"sub/run", "x#!/bin/sh\n"}, {"l", "la"}};

// A store in two folders of its own, and an attempt with one output 'parts' in the directory parts.
struct Fixture {
  TemporaryFolder folder;
  io::Store store;
  io::AttemptSpec spec;

  explicit Fixture(int64_t budget_bytes = 1 << 30)
      : store(std::move(
            io::Store::create({folder / "memory", folder / "node.disk"}, budget_bytes).value())) {
    io::AttemptOutput output;
    output.name = "parts";
    output.kind = OutputKind::kDir;
    output.file_name = "parts";
    output.object = kObject;
    spec.outputs = {output};
    spec.words = {{{io::Piece::Kind::kText, 0, "/bin/true"}}};
  }
  fs::path stage() { return store.stage(kAttempt, spec, {}).value().output_paths.at(0); }
  void seal(const TreeModel& model) {
    test::write_tree(stage(), model);
    const auto sealed = store.seal(kAttempt, spec, 0);
    REQUIRE_MESSAGE(sealed.ok(), sealed.error().message);
    REQUIRE(store.clean(kAttempt));
  }
  std::string seal_error() {
    const auto sealed = store.seal(kAttempt, spec, 0);
    REQUIRE_FALSE(sealed.ok());
    CHECK_FALSE(store.holds(kObject));
    return sealed.error().message;
  }
};

bool is_read_only(const fs::path& path) {
  struct stat info {};
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return (info.st_mode & 0222U) == 0;
}

}  // namespace

TEST_CASE("store: a sealed directory is moved as a whole, read-only, and counts") {
  Fixture f;
  const fs::path output = f.stage();
  test::write_tree(output, kTree);
  struct stat before {};
  REQUIRE(::lstat(output.c_str(), &before) == 0);
  const auto sealed = f.store.seal(kAttempt, f.spec, 0);
  REQUIRE(sealed.ok());
  CHECK(sealed->bytes == 5 + 10);
  CHECK(sealed->path == f.store.object_path(kObject));
  struct stat after {};
  REQUIRE(::lstat(sealed->path.c_str(), &after) == 0);
  CHECK(after.st_ino == before.st_ino);  // no copy
  CHECK(test::read_tree(sealed->path) == kTree);
  CHECK(is_read_only(sealed->path));
  CHECK(is_read_only(sealed->path / "a"));
  CHECK(is_read_only(sealed->path / "sub"));
  CHECK_FALSE(fs::exists(output));
  CHECK(f.store.memory_bytes() == 4096 * (5 + 2));  // each has a block, files have theirs
}

TEST_CASE("store: a file where a directory was declared, and the reverse, say which key to use") {
  Fixture f;
  const fs::path output = f.stage();
  SUBCASE("a file") {
    test::write_text(output, "x");
    CHECK(f.seal_error() ==
          "output 'parts': 'parts' is a regular file; expected a directory: if a file is meant, "
          "declare the output as {file: parts}");
  }
  SUBCASE("a directory") {
    fs::create_directory(output);
    f.spec.outputs[0].kind = OutputKind::kFile;
    CHECK(f.seal_error() ==
          "output 'parts': 'parts' is a directory; expected a regular file: if a directory is "
          "meant, declare the output as {dir: parts}");
  }
  SUBCASE("a link to a directory") {  // UC-041
    fs::create_symlink("/tmp", output);
    CHECK(f.seal_error() ==
          "output 'parts': 'parts' is a symbolic link to '/tmp'; expected a directory: make one "
          "there and write into it");
  }
  SUBCASE("nothing") {
    test::write_text(output.parent_path() / "part", "");
    CHECK(f.seal_error() ==
          "output 'parts' was not written: no directory 'parts' in the attempt's directory; it "
          "holds: part");
  }
}

TEST_CASE("store: a directory that cannot be kept stays where it is, and the reason is given") {
  Fixture f;
  const fs::path output = f.stage();
  test::write_tree(output, kTree);
  fs::create_symlink("../../elsewhere", output / "sub/out");
  CHECK(f.seal_error().find("'parts/sub/out' is a link to '../../elsewhere'") != std::string::npos);
  CHECK(fs::exists(output / "a"));
  CHECK(f.store.memory_bytes() == 0);
}

TEST_CASE("store: a recomputed directory replaces the one before and is counted once") {
  Fixture f;
  f.seal(kTree);
  f.seal({{"b", "fother"}});
  CHECK(test::read_tree(f.store.object_path(kObject)) == TreeModel{{"b", "fother"}});
  CHECK(f.store.memory_bytes() == 3 * 4096);
}

TEST_CASE("store: a dropped directory is gone with all that was in it") {
  Fixture f;
  f.seal(kTree);
  const fs::path path = f.store.object_path(kObject);
  REQUIRE(f.store.remove(kObject));
  CHECK_FALSE(fs::exists(path));
  CHECK(f.store.memory_bytes() == 0);
  CHECK(f.store.remove(kObject));
}

TEST_CASE("store: peers on a node share a directory file by file") {
  Fixture owner;
  owner.seal(kTree);
  auto peer = std::move(
      io::Store::create({owner.folder / "peer", owner.folder / "peer.disk"}, 1 << 20).value());
  REQUIRE(peer.link_from(kObject, owner.store.place().memory));
  const fs::path there = peer.object_path(kObject);
  CHECK(test::read_tree(there) == kTree);
  CHECK(fs::equivalent(there / "a", owner.store.object_path(kObject) / "a"));
  CHECK(is_read_only(there));
  REQUIRE(owner.store.remove(kObject));
  CHECK(test::read_tree(there) == kTree);
  CHECK(peer.memory_bytes() == 7 * 4096);
}

TEST_CASE("store: any directory travels in pieces and is the same when finished") {
  tests::for_each_seed([](uint64_t seed) {
    std::mt19937_64 random(seed);
    Fixture from;
    Fixture to;
    const TreeModel model = test::random_tree(random, 30);
    from.seal(model);
    io::ObjectForm form;
    REQUIRE(from.store.read_piece(kObject, 0, 0, form));
    REQUIRE(form.manifest_bytes > 0);
    REQUIRE(to.store.begin_receive(kObject, form));
    CHECK_FALSE(to.store.holds(kObject));
    for (int64_t at = 0; at < form.total_bytes;) {
      const auto bytes =
          from.store.read_piece(kObject, at, static_cast<int64_t>(1 + random() % 5000), form);
      REQUIRE(bytes.ok());
      REQUIRE(to.store.write_piece(kObject, at, *bytes));
      at += static_cast<int64_t>(bytes->size());
    }
    REQUIRE(to.store.finish_receive(kObject));
    CHECK(test::read_tree(to.store.object_path(kObject)) == model);
    CHECK(is_read_only(to.store.object_path(kObject)));
    CHECK(to.store.memory_bytes() == from.store.memory_bytes());
  });
}

TEST_CASE("store: an abandoned directory leaves nothing") {
  Fixture from;
  from.seal(kTree);
  io::ObjectForm form;
  const auto all = from.store.read_piece(kObject, 0, 1 << 20, form);
  REQUIRE(all.ok());
  Fixture to;
  REQUIRE(to.store.begin_receive(kObject, form));
  REQUIRE(to.store.write_piece(kObject, 0, std::span(*all).first(all->size() - 1)));
  CHECK_FALSE(to.store.finish_receive(kObject));
  to.store.abandon_receive(kObject);
  CHECK(to.store.memory_bytes() == 0);
  CHECK(fs::is_empty(to.folder / "memory/o"));
  CHECK(to.store.begin_receive(kObject, form));
}

TEST_CASE("store: of a removed directory nothing is served, of a new one the new content") {
  Fixture f;
  f.seal(kTree);
  io::ObjectForm form;
  REQUIRE(f.store.read_piece(kObject, 0, 100, form));
  f.seal({{"b", "fother bytes"}});
  REQUIRE(f.store.read_piece(kObject, 0, 100, form));
  CHECK(form.total_bytes - form.manifest_bytes == 11);
  REQUIRE(f.store.remove(kObject));
  CHECK_FALSE(f.store.read_piece(kObject, 0, 100, form));
  CHECK(form.total_bytes == -1);
}

TEST_CASE("store: a saved directory is a copy of read-only files that its owner can remove") {
  Fixture f;
  f.seal(kTree);
  const fs::path saved = f.folder / "run/results/.tmp/17";
  REQUIRE(f.store.save(kObject, saved));
  CHECK(test::read_tree(saved) == kTree);
  CHECK_FALSE(is_read_only(saved));
  CHECK(is_read_only(saved / "a"));
  CHECK(f.store.holds(kObject));
}

TEST_CASE("store: the input path of a directory is the directory, a link to it lies below in/") {
  Fixture f;
  f.seal(kTree);
  const std::string held = f.store.object_path(kObject);
  io::InputSpec input;
  input.name = "tree";
  input.kind = OutputKind::kDir;
  input.files = {{kObject, "", "parts", "", ""}};
  f.spec.inputs = {input};
  const auto staged = f.store.stage(kAttempt, f.spec, {held});
  REQUIRE(staged.ok());
  const auto variable = std::find_if(staged->environment.begin(), staged->environment.end(),
                                     [](const auto& pair) { return pair.first == "IN_tree"; });
  REQUIRE(variable != staged->environment.end());
  CHECK(variable->second == held);
  CHECK(fs::read_symlink(fs::path(staged->working_directory) / "in/tree/parts") == held);
}

TEST_CASE("store: of a failed attempt a directory is kept too") {
  Fixture f;
  test::write_tree(f.stage(), kTree);
  REQUIRE(f.store.keep_failed(kAttempt, f.folder / "failed/1", 1000));
  CHECK(test::read_tree(f.folder / "failed/1/parts") == kTree);
}
