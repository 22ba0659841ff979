#include "io/files.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace sluice::io {
namespace {

// A folder of its own for real files, removed at the end.
struct Scratch {
  std::filesystem::path path;
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "files_test.XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Scratch() { std::filesystem::remove_all(path); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
};

// The contract that both implementations keep.
void check_contract(Files& files, const std::filesystem::path& folder) {
  const auto file = folder / "a";
  CHECK(files.read(file).error().code == ENOENT);
  CHECK(files.size(file).error().code == ENOENT);
  {
    auto opened = files.open(file, Files::Open::kCreateNew);
    REQUIRE(opened.ok());
    CHECK((*opened)->append("hello ").ok());
    CHECK((*opened)->append("world").ok());
    CHECK((*opened)->sync().ok());
    CHECK((*opened)->truncate(7).ok());
    CHECK((*opened)->append("all").ok());  // behind the new end
  }
  CHECK(*files.read(file) == "hello wall");
  CHECK(*files.size(file) == 10);
  CHECK(files.open(file, Files::Open::kCreateNew).error().code == EEXIST);
  {
    auto opened = files.open(file, Files::Open::kAppend);
    REQUIRE(opened.ok());
    CHECK((*opened)->append("!").ok());
  }
  CHECK(*files.read(file) == "hello wall!");

  CHECK(files.replace(file, "new").ok());
  CHECK(*files.read(file) == "new");

  CHECK(files.link(file, folder / "b").ok());
  CHECK(files.link(file, folder / "b").error().code == EEXIST);
  CHECK(*files.read(folder / "b") == "new");

  CHECK(files.rename(file, folder / "deep" / "er" / "c").ok());
  CHECK(*files.read(folder / "deep" / "er" / "c") == "new");
  CHECK(files.rename(file, folder / "d").error().code == ENOENT);
  CHECK(files.remove(file).ok());  // absent: no error
  CHECK(files.remove(folder / "b").ok());
  CHECK(files.read(folder / "b").error().code == ENOENT);

  CHECK(files.replace(folder / "y", "").ok());
  CHECK(files.replace(folder / "x", "").ok());
  const auto names = files.list(folder);
  REQUIRE(names.ok());
  CHECK(std::find(names->begin(), names->end(), "x") + 1 ==
        std::find(names->begin(), names->end(), "y"));
  CHECK(files.list(folder / "absent")->empty());
}

}  // namespace

TEST_CASE("files: real and fake ones keep the same contract") {
  SUBCASE("real") {
    const Scratch scratch;
    check_contract(real_files(), scratch.path);
    // Nothing temporary is left.
    for (const auto& entry : std::filesystem::directory_iterator(scratch.path)) {
      CHECK(entry.path().string().find(".tmp.") == std::string::npos);
    }
  }
  SUBCASE("fake") {
    FakeFiles files;
    check_contract(files, "/run");
  }
}

TEST_CASE("files: a directory moves over what is there and is removed as a whole") {
  const Scratch scratch;
  Files& files = real_files();
  const auto make = [](const std::filesystem::path& folder, const std::string& text) {
    std::filesystem::create_directories(folder / "sub");
    REQUIRE(real_files().replace(folder / "sub/file", text).ok());
  };
  make(scratch.path / "tmp/new", "new");
  const auto place = scratch.path / "there/tree";
  SUBCASE("nothing") {}
  SUBCASE("another directory") { make(place, "old"); }
  SUBCASE("a file") {
    std::filesystem::create_directory(place.parent_path());
    REQUIRE(files.replace(place, "old").ok());
  }
  CHECK(files.rename(scratch.path / "tmp/new", place).ok());
  CHECK(*files.read(place / "sub/file") == "new");
  CHECK(std::filesystem::is_empty(scratch.path / "tmp"));
  REQUIRE(files.replace(scratch.path / "tmp/file", "a file").ok());
  CHECK(files.rename(scratch.path / "tmp/file", place).ok());
  CHECK(*files.read(place) == "a file");
  make(scratch.path / "tree", "x");
  CHECK(files.remove(scratch.path / "tree").ok());
  CHECK_FALSE(std::filesystem::exists(scratch.path / "tree"));
}

TEST_CASE("files: an error names the file and what the system said") {
  const Scratch scratch;
  const auto missing = real_files().read(scratch.path / "nothing");
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.error().message.find("nothing': No such file or directory") != std::string::npos);
  std::filesystem::create_directory(scratch.path / "folder");
  CHECK(real_files().size(scratch.path / "folder").error().code == EINVAL);
}

TEST_CASE("files: a full device is told with what to do") {
  if (access("/dev/full", W_OK) != 0) return;  // not on this system
  auto full = real_files().open("/dev/full", Files::Open::kAppend);
  if (!full.ok()) return;  // its folder may not be synced by an ordinary user
  const auto status = (*full)->append("x");
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code == ENOSPC);
  CHECK(status.error().message.find("free some space") != std::string::npos);
}

TEST_CASE("files: a crash loses what was not synced") {
  FakeFiles files;
  auto file = files.open("/run/a", Files::Open::kCreateNew);
  REQUIRE((*file)->append("kept").ok());
  REQUIRE((*file)->sync().ok());
  REQUIRE((*file)->append(" lost").ok());
  CHECK(files.replace("/run/b", "whole").ok());
  files.crash();
  CHECK(*files.read("/run/a") == "kept");
  CHECK(*files.read("/run/b") == "whole");
  CHECK((*file)->append("from the dead").ok());
  CHECK(*files.read("/run/a") == "kept");
}

TEST_CASE("files: what was only removed is back after a crash, until its folder is synced") {
  FakeFiles files;
  for (const char* name : {"/run/a", "/run/b", "/other/c"}) REQUIRE(files.replace(name, "x").ok());
  REQUIRE(files.remove("/run/a").ok());
  REQUIRE(files.rename("/run/b", "/other/b").ok());
  SUBCASE("not synced") {
    files.crash();
    CHECK(*files.read("/run/a") == "x");
    CHECK(*files.read("/run/b") == "x");
  }
  SUBCASE("synced") {
    REQUIRE(files.replace("/run/d", "x").ok());
    files.crash();
    CHECK(files.read("/run/a").error().code == ENOENT);
    CHECK(files.read("/run/b").error().code == ENOENT);
  }
  CHECK(*files.read("/other/b") == "x");
}

TEST_CASE("files: a slow disk is waited for in each call") {
  FakeFiles files;
  int calls = 0;
  files.set_on_call([&calls] { ++calls; });
  auto file = files.open("/run/a", Files::Open::kCreateNew);
  CHECK((*file)->append("1").ok());
  CHECK((*file)->sync().ok());
  CHECK(files.replace("/run/b", "x").ok());
  CHECK(calls == 3);
}

TEST_CASE("files: a full disk takes what fits and says so") {
  FakeFiles files;
  files.set_capacity(6);
  auto file = files.open("/run/a", Files::Open::kCreateNew);
  CHECK((*file)->append("1234").ok());
  CHECK((*file)->append("5678").error().code == ENOSPC);
  CHECK(*files.read("/run/a") == "123456");
  CHECK(files.replace("/run/b", "x").error().code == ENOSPC);
  CHECK(files.read("/run/b").error().code == ENOENT);
}

TEST_CASE("files: the n-th call fails, once") {
  FakeFiles files;
  auto file = files.open("/run/a", Files::Open::kCreateNew);
  files.fail_call(2);
  CHECK((*file)->append("12").ok());
  CHECK((*file)->append("3456").error().code == EIO);
  CHECK(*files.read("/run/a") == "1234");
  CHECK((*file)->append("z").ok());
  files.fail_call(1, EDQUOT);
  CHECK((*file)->sync().error().code == EDQUOT);
}

}  // namespace sluice::io
