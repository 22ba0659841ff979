#include "io/manifest.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <utime.h>

#include <limits>
#include <random>

#include "io/codec.h"
#include "io/sources.h"
#include "tests/support/random_tree.h"
#include "tests/support/seeds.h"

using namespace sluice;
using io::Manifest;
using io::TreeEntry;
using scheduler::Hash128;
using test::TemporaryFolder;
using test::TreeModel;
using Kind = TreeEntry::Kind;
namespace fs = std::filesystem;

namespace {

Manifest scan(const fs::path& root) {
  auto manifest = io::scan_tree(root);
  REQUIRE_MESSAGE(manifest.ok(), manifest.error().message);
  return std::move(*manifest);
}

std::string scan_error(const fs::path& root) {
  const auto manifest = io::scan_tree(root);
  REQUIRE_FALSE(manifest.ok());
  return manifest.error().message;
}

Hash128 id_of(const fs::path& root) {
  const auto id = io::hash_object(root);
  REQUIRE_MESSAGE(id.ok(), id.error().message);
  return *id;
}

// The manifest by other means: std::map has the order, the model the rest.
Manifest expected_manifest(const TreeModel& model) {
  Manifest manifest;
  for (const auto& [path, what] : model) {
    TreeEntry entry;
    entry.path = path;
    entry.kind = what[0] == 'd' ? Kind::kDirectory : what[0] == 'l' ? Kind::kLink : Kind::kFile;
    entry.executable = what[0] == 'x';
    if (entry.kind == Kind::kLink) entry.target = what.substr(1);
    if (entry.kind == Kind::kFile) entry.bytes = static_cast<int64_t>(what.size()) - 1;
    manifest.bytes += entry.bytes;
    manifest.entries.push_back(entry);
  }
  return manifest;
}

// One change of a tree that must show in its content id.
TreeModel changed(TreeModel model, std::mt19937_64& random) {
  if (model.empty() || random() % 4 == 0) {
    model["one more"] = random() % 2 == 0 ? "d" : "f";
    return model;
  }
  auto at = model.begin();
  std::advance(at, random() % model.size());
  const char kind = at->second[0];
  if (kind == 'f' && random() % 2 == 0) {
    at->second[0] = 'x';
  } else if (kind == 'f' || kind == 'x' || kind == 'l') {
    at->second += 'b';
  } else {
    model[at->first + "/one more"] = "f";
  }
  return model;
}

}  // namespace

TEST_CASE("manifest: of any tree it lists each thing once, sorted by bytes") {
  tests::for_each_seed([](uint64_t seed) {
    std::mt19937_64 random(seed);
    const TemporaryFolder folder;
    const TreeModel model = test::random_tree(random, 60);
    test::write_tree(folder / "tree", model);
    CHECK(scan(folder / "tree") == expected_manifest(model));
  });
}

TEST_CASE("manifest: the same tree has the same content id, whatever its times, order and place") {
  tests::for_each_seed([](uint64_t seed) {
    std::mt19937_64 random(seed);
    const TemporaryFolder folder;
    const TreeModel model = test::random_tree(random, 40);
    test::write_tree(folder / "one", model);
    // Files made in the opposite order, with other permissions and times.
    TreeModel folders;
    for (const auto& [path, what] : model) {
      if (what[0] == 'd') folders.emplace(path, what);
    }
    test::write_tree(folder / "two", folders);
    for (auto at = model.rbegin(); at != model.rend(); ++at) {
      const fs::path path = folder / "two" / at->first;
      if (at->second[0] == 'd') continue;
      if (at->second[0] == 'l') {
        fs::create_symlink(at->second.substr(1), path);
        continue;
      }
      test::write_text(path, at->second.substr(1));
      ::chmod(path.c_str(), at->second[0] == 'x' ? 0711 : 0600);
      const utimbuf old{1'000'000, 1'000'000};
      ::utime(path.c_str(), &old);
    }
    CHECK(id_of(folder / "one") == id_of(folder / "two"));
    test::write_tree(folder / "three", changed(model, random));
    CHECK(id_of(folder / "one") != id_of(folder / "three"));
  });
}

TEST_CASE("manifest: bytes that move from one file to the next change the content id") {
  const TemporaryFolder folder;
  test::write_tree(folder / "a", {{"1", "fab"}, {"2", "fc"}});
  test::write_tree(folder / "b", {{"1", "fa"}, {"2", "fbc"}});
  test::write_tree(folder / "c", {{"1", "d"}, {"1/2", "fab"}});
  test::write_tree(folder / "d", {{"1", "d"}, {"12", "fab"}});
  CHECK(id_of(folder / "a") != id_of(folder / "b"));
  CHECK(id_of(folder / "c") != id_of(folder / "d"));
}

TEST_CASE("manifest: an empty directory is one too, and a file is no directory") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "empty");
  CHECK(scan(folder / "empty").entries.empty());
  CHECK(id_of(folder / "empty").known());
  test::write_text(folder / "file", "bytes");
  CHECK(id_of(folder / "file") == io::hash_text("bytes"));
  CHECK_FALSE(io::scan_tree(folder / "file"));
  CHECK_FALSE(io::scan_tree(folder / "nothing"));
}

// UC-041
TEST_CASE("manifest: links that stay inside are kept, all others are named") {
  const TemporaryFolder folder;
  const fs::path root = folder / "parts";
  test::write_tree(root, {{"a", "d"}, {"a/b", "d"}, {"a/b/file", "f"}, {"up", "la/b/.."}});
  const auto verdict = [&root](const std::string& place, const std::string& target) {
    fs::create_symlink(target, root / place);
    const auto manifest = io::scan_tree(root);
    fs::remove(root / place);
    return manifest.ok() ? std::string("kept") : manifest.error().message;
  };
  CHECK(verdict("a/l", "b/file") == "kept");
  CHECK(verdict("a/b/l", "../../a/./b//file") == "kept");
  CHECK(verdict("l", ".") == "kept");
  CHECK(verdict("l", "not there yet") == "kept");
  CHECK(verdict("l", "l") == "kept");  // goes nowhere, but stays
  const std::string remedy =
      "'; a directory keeps only relative links that lead to something in 'parts': copy what it "
      "points to, or make the link with ln -sr";
  CHECK(verdict("a/l", "/etc/passwd") == "'parts/a/l' is a link to '/etc/passwd" + remedy);
  CHECK(verdict("l", (root / "a/b/file").string()) ==
        "'parts/l' is a link to '" + (root / "a/b/file").string() + remedy);
  CHECK(verdict("l", "..") == "'parts/l' is a link to '.." + remedy);
  CHECK(verdict("a/b/l", "../../../x") == "'parts/a/b/l' is a link to '../../../x" + remedy);
  // By its text a/b/file; but 'up' is 'a', and the way back from there leads out of the directory.
  CHECK(verdict("l", "up/../../b") == "'parts/l' is a link to 'up/../../b" + remedy);
  CHECK(verdict("l", "gone/../a") == "'parts/l' is a link to 'gone/../a" + remedy);
}

TEST_CASE("manifest: special files are named") {
  const TemporaryFolder folder;
  test::write_tree(folder / "parts", {{"a", "d"}});
  REQUIRE(::mkfifo((folder / "parts/a/pipe\n").c_str(), 0600) == 0);
  CHECK(scan_error(folder / "parts") ==
        "'parts/a/pipe%0A' is a named pipe; a directory output holds files, directories and links: "
        "remove it before the task ends");
}

TEST_CASE("manifest: the latest change of anything in a tree is noted") {
  const TemporaryFolder folder;
  test::write_tree(folder / "t", {{"a", "d"}, {"a/b", "f"}, {"c", "f"}});
  const utimbuf late{4'000'000'000, 4'000'000'000};
  REQUIRE(::utime((folder / "t/a/b").c_str(), &late) == 0);
  io::TreeTimes times;
  REQUIRE(io::scan_tree(folder / "t", &times));
  CHECK(times.newest_ms == 4'000'000'000'000);
}

TEST_CASE("manifest: what is encoded is decoded") {
  tests::for_each_seed([](uint64_t seed) {
    std::mt19937_64 random(seed);
    const Manifest manifest = expected_manifest(test::random_tree(random, 80));
    const auto decoded = io::decode_manifest(io::encode_manifest(manifest));
    REQUIRE_MESSAGE(decoded.ok(), decoded.error().message);
    CHECK(*decoded == manifest);
  });
}

TEST_CASE("manifest: damaged bytes are refused or mean something that stays inside") {
  tests::for_each_seed([](uint64_t seed) {
    std::mt19937_64 random(seed);
    const io::Bytes good = io::encode_manifest(expected_manifest(test::random_tree(random, 20)));
    for (int i = 0; i < 300; ++i) {
      io::Bytes bytes = good;
      if (random() % 3 == 0) bytes.resize(random() % (bytes.size() + 1));
      if (!bytes.empty()) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
      const auto decoded = io::decode_manifest(bytes);
      if (decoded) CHECK(io::decode_manifest(io::encode_manifest(*decoded)).ok());
    }
  });
}

TEST_CASE("manifest: a list that would lead out of its directory is refused") {
  const auto refused = [](const std::vector<TreeEntry>& entries) {
    return !io::decode_manifest(io::encode_manifest({entries, 0})).ok();
  };
  const auto file = [](const std::string& path, int64_t bytes = 0) {
    return TreeEntry{path, Kind::kFile, false, bytes, ""};
  };
  const TreeEntry directory{"d", Kind::kDirectory, false, 0, ""};
  CHECK_FALSE(refused({directory, file("d/f")}));
  CHECK(refused({file("../f")}));
  CHECK(refused({file("/f")}));
  CHECK(refused({file("")}));
  CHECK(refused({directory, file("d//f")}));
  CHECK(refused({directory, file("d/./f")}));
  CHECK(refused({file(std::string("a\0b", 3))}));
  CHECK(refused({file("d/f")}));  // no directory
  CHECK(refused({TreeEntry{"d", Kind::kLink, false, 0, "."}, file("d/f")}));
  CHECK(refused({TreeEntry{"l", Kind::kLink, false, 0, ".."}}));
  CHECK(refused({file("b"), file("a")}));
  CHECK(refused({file("a"), file("a")}));
  CHECK(refused({file("a", -1)}));
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  CHECK(refused({file("a", kMost), file("b", 1)}));
  CHECK_FALSE(refused({file("a", kMost - 1), file("b", 1)}));
}

// UC-019
TEST_CASE("manifest: a walk over many files lists them all") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "many");
  for (int i = 0; i < 5000; ++i) test::write_text(folder / "many" / std::to_string(i), "");
  CHECK(scan(folder / "many").entries.size() == 5000);
}
