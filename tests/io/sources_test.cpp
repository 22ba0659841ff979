#include "io/sources.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temporary_folder.h"

namespace {

using namespace sluice;
using namespace sluice::io;
namespace fs = std::filesystem;

class Folder : public test::TemporaryFolder {
 public:
  fs::path write(const std::string& name, const std::string& text) const {
    test::write_text(path() / name, text);
    return path() / name;
  }
};

// So old that the cache trusts its time stamp.
void set_old_time(const fs::path& file) {
  struct timespec times[2] = {{1'600'000'000, 0}, {1'600'000'000, 0}};
  REQUIRE(::utimensat(AT_FDCWD, file.c_str(), times, 0) == 0);
}

}  // namespace

TEST_CASE("sources: the hash of a text is XXH3-128 and prints as 32 digits") {
  // Published test value: XXH3_128bits of no bytes, seed 0.
  CHECK(to_hex(hash_text("")) == "99aa06d3014798d86001c324468d497f");
  CHECK(to_hex({0x0123456789ABCDEFULL, 0xFULL}) == "0123456789abcdef000000000000000f");
}

TEST_CASE("sources: hex digits read back, anything else is refused") {
  const auto hash = hash_text("plate");
  const auto back = from_hex(to_hex(hash));
  REQUIRE(back.ok());
  CHECK(*back == hash);
  CHECK_FALSE(from_hex("12").ok());
  CHECK_FALSE(from_hex("z9aa06d3014798d86001c324468d497f").ok());
  CHECK_FALSE(from_hex("-9aa06d3014798d86001c324468d497f").ok());
}

TEST_CASE("sources: a file larger than one read hashes like its bytes") {
  const Folder folder;
  std::string text((size_t{1} << 20U) + 12345, 'a');
  text[1 << 20] = 'b';
  const auto hash = hash_file(folder.write("large", text));
  REQUIRE(hash.ok());
  CHECK(*hash == hash_text(text));
}

TEST_CASE("sources: what cannot be read is named with its reason") {
  const Folder folder;
  CHECK(hash_file(folder.path() / "none").error().message.find("does not exist") !=
        std::string::npos);
  CHECK(hash_file(folder.path()).error().message.find("is a directory") != std::string::npos);
  fs::create_symlink("gone.h5", folder.path() / "link");
  CHECK(hash_file(folder.path() / "link").error().message.find("is a link to 'gone.h5'") !=
        std::string::npos);
  REQUIRE(::mkfifo((folder.path() / "pipe").c_str(), 0600) == 0);
  CHECK(hash_file(folder.path() / "pipe").error().message.find("not a regular file") !=
        std::string::npos);
}

TEST_CASE("sources: an unchanged file is not read again, also by the next submission") {
  const Folder folder;
  const fs::path file = folder.write("obs", "first");
  set_old_time(file);
  const auto first = hash_text("first");
  {
    FileSourceIds ids(folder.path() / "cache");
    REQUIRE(ids.content_id(file).value() == first);
    REQUIRE(ids.save().ok());
  }
  // Other bytes, but the same size, time and inode: only a remembered id is still the first one.
  folder.write("obs", "other");
  set_old_time(file);
  FileSourceIds ids(folder.path() / "cache");
  CHECK(ids.content_id(file).value() == first);
  folder.write("obs", "longer text");
  set_old_time(file);
  CHECK(ids.content_id(file).value() == hash_text("longer text"));
}

TEST_CASE("sources: a file changed just now is not remembered") {
  const Folder folder;
  const fs::path file = folder.write("obs", "first");
  FileSourceIds ids(folder.path() / "cache");
  REQUIRE(ids.content_id(file).value() == hash_text("first"));
  struct stat before {};
  REQUIRE(::stat(file.c_str(), &before) == 0);
  folder.write("obs", "other");
  struct timespec times[2] = {before.st_atim, before.st_mtim};
  REQUIRE(::utimensat(AT_FDCWD, file.c_str(), times, 0) == 0);
  CHECK(ids.content_id(file).value() == hash_text("other"));
}

TEST_CASE("sources: a damaged cache is ignored and rebuilt") {
  const Folder folder;
  const fs::path file = folder.write("obs", "first");
  set_old_time(file);
  {
    FileSourceIds ids(folder.path() / "cache");
    REQUIRE(ids.content_id(file).ok());
    REQUIRE(ids.save().ok());
  }
  std::fstream cache(folder.path() / "cache", std::ios::in | std::ios::out);
  cache.seekp(-3, std::ios::end);
  cache << 'X';
  cache.close();
  folder.write("obs", "other");
  set_old_time(file);
  FileSourceIds ids(folder.path() / "cache");
  CHECK(ids.content_id(file).value() == hash_text("other"));
  CHECK(ids.save().ok());
}
