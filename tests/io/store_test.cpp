#include "io/store.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "io/sources.h"
#include "tests/support/temporary_folder.h"

using namespace sluice;
using scheduler::AttemptId;
using scheduler::ObjectId;
using sluice::test::read_text;
using sluice::test::ScopedVariable;
using sluice::test::TemporaryFolder;
using sluice::test::write_text;
namespace fs = std::filesystem;

namespace {

constexpr AttemptId kAttempt = AttemptId::make(1, 1);
constexpr ObjectId kObject(5);

// A store in two folders of its own, and an attempt with one output 'field' in field.dat.
struct Fixture {
  TemporaryFolder folder;
  io::StorePlace place{folder / "memory", folder / "node.disk"};
  io::Store store;
  io::AttemptSpec spec;

  explicit Fixture(int64_t budget_bytes = 1 << 20)
      : store(std::move(io::Store::create(place, budget_bytes).value())) {
    io::AttemptOutput output;
    output.name = "field";
    output.file_name = "field.dat";
    output.object = kObject;
    spec.outputs = {output};
    spec.words = {{{io::Piece::Kind::kText, 0, "/bin/true"}}};
  }
  fs::path stage(AttemptId attempt = kAttempt) {
    return store.stage(attempt, spec, {}).value().output_paths.at(0);
  }
  void seal(const std::string& text) {
    write_text(stage(), text);
    REQUIRE(store.seal(kAttempt, spec, 0));
    REQUIRE(store.clean(kAttempt));
  }
};

mode_t mode_of(const fs::path& path) {
  struct stat info {};
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info.st_mode & 07777U;
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string read_object(io::Store& store, ObjectId object, int64_t offset, int64_t length) {
  io::ObjectForm form;
  const auto bytes = store.read_piece(object, offset, length, form);
  REQUIRE(bytes);
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

}  // namespace

TEST_CASE("store: its folders are closed to other users") {
  const Fixture f;
  CHECK(mode_of(f.place.memory) == 0700);
  CHECK(mode_of(f.place.disk) == 0700);
}

TEST_CASE("store: a folder that others may enter is not taken over") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "disk");
  ::chmod((folder / "disk").c_str(), 0777);
  const auto store = io::Store::create({folder / "memory", folder / "disk"}, 0);
  REQUIRE_FALSE(store);
  CHECK(store.error().message.find("no one else may enter") != std::string::npos);
}

TEST_CASE("store: without node memory both tiers are on disk, below what the launcher removes") {
  const TemporaryFolder folder;
  write_text(folder / "file", "");
  const auto store = io::Store::create({folder.path() / "file/memory", folder / "disk"}, 1000);
  REQUIRE(store);
  CHECK(store->place().memory.parent_path() == folder / "disk");
}

TEST_CASE("store: a sealed output is a read-only object and counts") {
  Fixture f;
  write_text(f.stage(), "twelve bytes");
  const auto sealed = f.store.seal(kAttempt, f.spec, 0);
  REQUIRE(sealed);
  CHECK(sealed->bytes == 12);
  CHECK(sealed->path == f.store.object_path(kObject));
  CHECK(read_text(sealed->path) == "twelve bytes");
  CHECK(mode_of(sealed->path) == 0444);
  CHECK(f.store.memory_bytes() == 12);
  CHECK_FALSE(fs::exists(f.store.output_path(kAttempt, f.spec, 0)));
}

TEST_CASE("store: an executable output stays executable") {
  Fixture f;
  const fs::path output = f.stage();
  write_text(output, "#!/bin/sh\n");
  ::chmod(output.c_str(), 0744);
  CHECK(mode_of(f.store.seal(kAttempt, f.spec, 0)->path) == 0555);
}

TEST_CASE("store: an output with a second name is copied, so that no one can change the object") {
  Fixture f;
  const fs::path output = f.stage();
  write_text(f.folder / "mine", "before");
  fs::create_hard_link(f.folder / "mine", output);
  REQUIRE(f.store.seal(kAttempt, f.spec, 0));
  std::ofstream(f.folder / "mine") << "after!";
  CHECK(read_text(f.store.object_path(kObject)) == "before");
}

TEST_CASE("store: a missing output's message says what is there instead") {
  Fixture f;
  const fs::path output = f.stage();
  SUBCASE("nothing") {
    CHECK(f.store.seal(kAttempt, f.spec, 0).error().message ==
          "output 'field' was not written: no file 'field.dat' in the attempt's directory; it is "
          "empty");
  }
  SUBCASE("other files") {
    write_text(output.parent_path() / "fields.dat", "");
    write_text(output.parent_path() / "core\n1", "");
    CHECK(f.store.seal(kAttempt, f.spec, 0).error().message ==
          "output 'field' was not written: no file 'field.dat' in the attempt's directory; it "
          "holds: core%0A1, fields.dat");
  }
  SUBCASE("more than ten") {
    for (int i = 0; i < 12; ++i) {
      write_text(output.parent_path() / ("f" + std::to_string(10 + i)), "");
    }
    const std::string message = f.store.seal(kAttempt, f.spec, 0).error().message;
    CHECK(message.find("f10, f11, f12, f13, f14, f15, f16, f17, f18, f19 and 2 more") !=
          std::string::npos);
  }
}

TEST_CASE("store: only regular files are sealed") {
  Fixture f;
  const fs::path output = f.stage();
  SUBCASE("link") {
    write_text(output.parent_path() / "real", "x");
    fs::create_symlink("real", output);
    CHECK(f.store.seal(kAttempt, f.spec, 0).error().message ==
          "output 'field': 'field.dat' is a symbolic link to 'real'; expected a regular file: "
          "write or copy the bytes there");
  }
  SUBCASE("directory") {
    fs::create_directory(output);
    CHECK(f.store.seal(kAttempt, f.spec, 0).error().message.find("is a directory") !=
          std::string::npos);
  }
  SUBCASE("pipe") {
    REQUIRE(::mkfifo(output.c_str(), 0600) == 0);
    CHECK(f.store.seal(kAttempt, f.spec, 0).error().message.find("is a named pipe") !=
          std::string::npos);
  }
  CHECK_FALSE(f.store.holds(kObject));
  CHECK(f.store.memory_bytes() == 0);
}

TEST_CASE("store: above its budget attempts go to the second tier, and their objects stay there") {
  Fixture f(10);
  f.seal("more than ten bytes");
  CHECK(f.store.object_path(kObject).parent_path().parent_path() == f.place.memory);
  const AttemptId second = AttemptId::make(1, 2);
  f.spec.outputs[0].object = ObjectId(6);
  write_text(f.stage(second), "on disk");
  REQUIRE(f.store.seal(second, f.spec, 0));
  CHECK(f.store.object_path(ObjectId(6)).parent_path().parent_path() == f.place.disk);
  CHECK(f.store.memory_bytes() == 19);
  REQUIRE(f.store.remove(kObject));
  CHECK(f.store.memory_bytes() == 0);
  f.spec.label = "another task, of which nothing is known";
  CHECK(f.stage(AttemptId::make(1, 3)).string().starts_with(f.place.memory.string()));
}

TEST_CASE("store: an attempt whose outputs would not fit, as others of its task tell, is on disk") {
  Fixture f(100);
  f.spec.label = "make[n=1]";
  const AttemptId first = AttemptId::make(1, 1);
  write_text(f.stage(first), std::string(60, 'x'));
  REQUIRE(f.store.seal(first, f.spec, 0));
  REQUIRE(f.store.remove(kObject));
  const auto in_memory = [&](uint32_t attempt) {
    return f.stage(AttemptId::make(1, attempt)).string().starts_with(f.place.memory.string());
  };
  f.spec.label = "make[n=2]";
  CHECK(in_memory(2));
  f.spec.label = "make[n=3]";
  CHECK_FALSE(in_memory(3));  // 60 bytes of the second are still to come
  f.spec.label = "other";
  CHECK(in_memory(4));
  REQUIRE(f.store.clean(AttemptId::make(1, 2)));
  f.spec.label = "make[n=3]";
  CHECK(in_memory(5));
}

TEST_CASE("store: a recomputed object replaces the one before and is counted once") {
  Fixture f;
  f.seal("first");
  f.seal("second one");
  CHECK(read_text(f.store.object_path(kObject)) == "second one");
  CHECK(f.store.memory_bytes() == 10);
}

TEST_CASE("store: removing is complete and may be repeated") {
  Fixture f;
  f.seal("bytes");
  const fs::path path = f.store.object_path(kObject);
  CHECK(f.store.remove(kObject));
  CHECK_FALSE(fs::exists(path));
  CHECK_FALSE(f.store.holds(kObject));
  CHECK(f.store.object_path(kObject).empty());
  CHECK(f.store.remove(kObject));
}

TEST_CASE("store: cleaning removes all of an attempt, unwritable directories included") {
  Fixture f;
  const fs::path output = f.stage();
  write_text(output.parent_path() / "deep/er/file", "x");
  ::chmod((output.parent_path() / "deep/er").c_str(), 0500);
  ::chmod((output.parent_path() / "deep").c_str(), 0500);
  REQUIRE(f.store.clean(kAttempt));
  CHECK(fs::is_empty(f.place.memory / "a"));
  CHECK(fs::is_empty(f.place.disk / "a"));
  CHECK(f.store.clean(kAttempt));
}

TEST_CASE("store: peers on a node share an object by hard link") {
  Fixture owner;
  owner.seal("shared");
  const io::StorePlace place{owner.folder / "peer", owner.folder / "peer.disk"};
  auto peer = std::move(io::Store::create(place, 1 << 20).value());
  REQUIRE(peer.link_from(kObject, owner.store.place().memory));
  CHECK(fs::equivalent(peer.object_path(kObject), owner.store.object_path(kObject)));
  CHECK(peer.memory_bytes() == 6);
  REQUIRE(owner.store.remove(kObject));
  CHECK(read_text(peer.object_path(kObject)) == "shared");
  CHECK(peer.link_from(kObject, owner.store.place().memory));  // it is here already
}

TEST_CASE("store: an object in a peer's second tier is found by its name") {
  const TemporaryFolder folder;
  auto owner = std::move(io::Store::create({folder / "one", folder / "one.disk"}, -1).value());
  Fixture f;
  write_text(owner.stage(kAttempt, f.spec, {}).value().output_paths[0], "on disk");
  REQUIRE(owner.seal(kAttempt, f.spec, 0));
  auto peer = std::move(io::Store::create({folder / "two", folder / "two.disk"}, 1000).value());
  REQUIRE(peer.link_from(kObject, owner.place().memory));
  CHECK(peer.object_path(kObject).string().starts_with((folder / "two.disk").string()));
  CHECK(peer.memory_bytes() == 0);
}

TEST_CASE("store: linking what the peer does not hold is an error with a place") {
  Fixture f;
  const Status status = f.store.link_from(ObjectId(77), f.folder / "nobody");
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ENOENT);
  CHECK_FALSE(f.store.holds(ObjectId(77)));
}

TEST_CASE("store: an object arrives in pieces of any order and is there when finished") {
  Fixture f;
  REQUIRE(f.store.begin_receive(kObject, {10, 0, 0755}));
  CHECK_FALSE(f.store.holds(kObject));
  CHECK(f.store.memory_bytes() == 10);
  REQUIRE(f.store.write_piece(kObject, 5, bytes_of("world")));
  CHECK_FALSE(f.store.finish_receive(kObject));  // half is missing
  REQUIRE(f.store.write_piece(kObject, 0, bytes_of("hello")));
  REQUIRE(f.store.finish_receive(kObject));
  CHECK(f.store.holds(kObject));
  CHECK(read_text(f.store.object_path(kObject)) == "helloworld");
  CHECK(mode_of(f.store.object_path(kObject)) == 0555);
}

TEST_CASE("store: an empty object arrives without a piece") {
  Fixture f;
  REQUIRE(f.store.begin_receive(kObject, {0, 0, 0644}));
  REQUIRE(f.store.finish_receive(kObject));
  CHECK(f.store.holds(kObject));
  CHECK(read_object(f.store, kObject, 0, 100).empty());
}

TEST_CASE("store: a piece outside the object is refused") {
  Fixture f;
  REQUIRE(f.store.begin_receive(kObject, {4, 0, 0444}));
  CHECK_FALSE(f.store.write_piece(kObject, 1, bytes_of("abcd")));
  CHECK_FALSE(f.store.write_piece(kObject, -1, bytes_of("a")));
  CHECK_FALSE(f.store.write_piece(ObjectId(9), 0, bytes_of("a")));
  CHECK_FALSE(f.store.begin_receive(kObject, {4, 0, 0444}));
}

TEST_CASE("store: an abandoned object leaves nothing") {
  Fixture f;
  REQUIRE(f.store.begin_receive(kObject, {4, 0, 0444}));
  f.store.abandon_receive(kObject);
  CHECK(f.store.memory_bytes() == 0);
  CHECK(fs::is_empty(f.place.memory / "o"));
  CHECK(f.store.begin_receive(kObject, {4, 0, 0444}));
}

TEST_CASE("store: pieces are read as asked for, with size and mode") {
  Fixture f;
  f.seal("0123456789");
  io::ObjectForm form;
  REQUIRE(f.store.read_piece(kObject, 0, 1, form));
  CHECK(form.total_bytes == 10);
  CHECK(form.manifest_bytes == 0);
  CHECK(form.mode == 0444);
  CHECK(read_object(f.store, kObject, 3, 4) == "3456");
  CHECK(read_object(f.store, kObject, 8, 100) == "89");
  CHECK(read_object(f.store, kObject, 10, 5).empty());
  CHECK(read_object(f.store, kObject, 1LL << 60, 1LL << 60).empty());
  CHECK_FALSE(f.store.read_piece(ObjectId(9), 0, 1, form));
  CHECK(form.total_bytes == -1);
}

TEST_CASE("store: an object cut behind its back is an error, not short data") {
  Fixture f;
  f.seal("0123456789");
  const fs::path path = f.store.object_path(kObject);
  ::chmod(path.c_str(), 0600);
  REQUIRE(::truncate(path.c_str(), 4) == 0);
  io::ObjectForm form;
  CHECK_FALSE(f.store.read_piece(kObject, 0, 10, form));
}

TEST_CASE("store: a saved object is a read-only copy") {
  Fixture f;
  f.seal("result");
  const fs::path saved = f.folder / "run/results/.tmp/17";
  const mode_t before = ::umask(022);
  REQUIRE(f.store.save(kObject, saved));
  ::umask(before);
  CHECK(read_text(saved) == "result");
  CHECK(mode_of(saved) == 0444);
  CHECK(f.store.holds(kObject));
  CHECK_FALSE(f.store.save(ObjectId(9), saved));
}

TEST_CASE("store: saving to where no folder can be made is an error with its code") {
  Fixture f;
  f.seal("result");
  write_text(f.folder / "file", "");
  CHECK(f.store.save(kObject, f.folder.path() / "file/x").error().code == ENOTDIR);
}

TEST_CASE("store: of a failed attempt what fits is kept, links as links") {
  Fixture f;
  const fs::path work = f.stage().parent_path();
  write_text(work / "a.log", "1234");
  write_text(work / "b.big", std::string(100, 'x'));
  write_text(work / "sub/c.log", "5678");
  fs::create_symlink("/somewhere/else", work / "link");
  const fs::path kept = f.folder / "failed/1";
  REQUIRE(f.store.keep_failed(kAttempt, kept, 10));
  CHECK(read_text(kept / "a.log") == "1234");
  CHECK(read_text(kept / "sub/c.log") == "5678");
  CHECK(fs::read_symlink(kept / "link") == "/somewhere/else");
  CHECK_FALSE(fs::exists(kept / "b.big"));
  CHECK(read_text(kept / "LEFT_OUT") == "b.big\ta regular file, 100 bytes\n");
}

TEST_CASE("store: an object that was written to is not as sealed, one that was touched is") {
  Fixture f;
  f.seal("bytes");
  const fs::path path = f.store.object_path(kObject);
  CHECK(f.store.as_sealed(kObject));
  CHECK_FALSE(f.store.as_sealed(ObjectId(6)));
  f.store.remember_content(kObject, io::hash_text("bytes"));
  const auto write = [&path](const std::string& text) {
    REQUIRE(::chmod(path.c_str(), 0644) == 0);
    write_text(path, text);
    // Not left to the clock of the file system, which may stand still that long.
    const timespec times[2] = {{1, 0}, {1, 0}};
    REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  };
  SUBCASE("a second name or other permissions say nothing") {
    fs::create_hard_link(path, f.folder / "second");
    REQUIRE(::chmod(path.c_str(), 0600) == 0);
    CHECK(f.store.as_sealed(kObject));
  }
  SUBCASE("the same bytes") {
    write("bytes");
    CHECK(f.store.as_sealed(kObject));
  }
  SUBCASE("other bytes of that number") {
    write("BYTES");
    CHECK_FALSE(f.store.as_sealed(kObject));
  }
  SUBCASE("more bytes") {
    write("bytes and more");
    CHECK_FALSE(f.store.as_sealed(kObject));
  }
  SUBCASE("none: it is gone, or something else has its name") {
    fs::remove(path);
    CHECK_FALSE(f.store.as_sealed(kObject));
    fs::create_directory(path);
    CHECK_FALSE(f.store.as_sealed(kObject));
  }
}
