#include "io/tier.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "tests/support/temporary_folder.h"

using namespace sluice;
using sluice::test::read_text;
using sluice::test::TemporaryFolder;
using sluice::test::write_text;
namespace fs = std::filesystem;

TEST_CASE(
    "tier: an error names what was done, the path, the reason and, on a full disk, a remedy") {
  const Error error = io::system_error("write", "/a/b", ENOSPC);
  CHECK(error.code == ENOSPC);
  CHECK(error.message ==
        "cannot write '/a/b': No space left on device; free space on that file system and run "
        "again");
  CHECK(io::system_error("open", "/a/b", EACCES).message ==
        "cannot open '/a/b': Permission denied");
  CHECK(io::system_error("write", "/a/b", EDQUOT).message.find("quota") != std::string::npos);
}

TEST_CASE("tier: a full file system is told by its code") {
  const auto full = io::open_file("/dev/full", O_WRONLY);
  REQUIRE(full);
  const std::byte byte{1};
  const Status written = io::write_at(full->get(), {&byte, 1}, 0, "/dev/full");
  REQUIRE_FALSE(written);
  CHECK(written.error().code == ENOSPC);
}

TEST_CASE("tier: folders are made with their parents, new ones must be new") {
  const TemporaryFolder folder;
  CHECK(io::make_folder(folder / "a/b/c"));
  CHECK(io::make_folder(folder / "a/b/c"));
  CHECK(io::make_new_folder(folder / "a/new"));
  CHECK(io::make_new_folder(folder / "a/new").error().code == EEXIST);
  write_text(folder / "file", "");
  CHECK(io::make_folder(folder / "file/x").error().code == ENOTDIR);
}

TEST_CASE("tier: nothing is opened through a link") {
  const TemporaryFolder folder;
  write_text(folder / "target", "x");
  REQUIRE(io::make_link(folder / "target", folder / "link"));
  CHECK(io::open_file(folder / "link", O_RDONLY).error().code == ELOOP);
  CHECK_FALSE(io::write_file(folder / "link", "changed"));
  CHECK(read_text(folder / "target") == "x");
}

TEST_CASE("tier: a copy has all bytes, from any file system, and the mode asked for") {
  const TemporaryFolder folder;
  std::string bytes(3'000'001, 'x');
  for (size_t i = 0; i < bytes.size(); i += 997) bytes[i] = static_cast<char>(i);
  write_text(folder / "from", bytes);
  REQUIRE(io::copy_file(folder / "from", folder / "to", 0440, io::Sync::kFileAndFolder));
  CHECK(read_text(folder / "to") == bytes);
  struct stat info {};
  REQUIRE(::stat((folder / "to").c_str(), &info) == 0);
  CHECK((info.st_mode & 07777U) == 0440);
  // A file of /proc has no size: the kernel's copy gives nothing and reading has to go on.
  REQUIRE(io::copy_file("/proc/self/maps", folder / "maps", 0600, io::Sync::kNo));
  CHECK(read_text(folder / "maps").find("[stack]") != std::string::npos);
}

TEST_CASE("tier: a copy that fails leaves no half of it") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "from");
  CHECK_FALSE(io::copy_file(folder / "from", folder / "to", 0600, io::Sync::kNo));
  CHECK_FALSE(fs::exists(folder / "to"));
  CHECK(io::copy_file(folder / "none", folder / "to", 0600, io::Sync::kNo).error().code == ENOENT);
}

TEST_CASE("tier: a tree is removed without following links") {
  const TemporaryFolder folder;
  write_text(folder / "outside/file", "x");
  write_text(folder / "tree/a/b", "x");
  fs::create_directory_symlink(folder / "outside", folder / "tree/link");
  CHECK(io::remove_tree(folder / "tree"));
  CHECK_FALSE(fs::exists(folder / "tree"));
  CHECK(read_text(folder / "outside/file") == "x");
  CHECK(io::remove_tree(folder / "tree"));
}

TEST_CASE("tier: a descriptor has one owner and is not passed on to programs") {
  const TemporaryFolder folder;
  write_text(folder / "x", "");
  auto first = std::move(io::open_file(folder / "x", O_RDONLY).value());
  const int fd = first.get();
  CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  io::FileDescriptor second = std::move(first);
  CHECK(second.get() == fd);
  second = io::FileDescriptor();
  CHECK(::fcntl(fd, F_GETFD) == -1);
}
