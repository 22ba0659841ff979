#include <doctest/doctest.h>
#include <sys/stat.h>

#include <sstream>
#include <string>
#include <vector>

#include "io/store.h"
#include "tests/support/temporary_folder.h"

using namespace sluice;
using sluice::test::ScopedVariable;
using sluice::test::TemporaryFolder;
using sluice::test::write_text;
namespace fs = std::filesystem;

namespace {

// Parts of a store's name between the dots: sluice, user, owner's pid, its start time, pid space,
// rank.
constexpr size_t kUser = 1;
constexpr size_t kOwner = 2;
constexpr size_t kPidSpace = 4;

std::vector<std::string> parts_of(const fs::path& store) {
  std::istringstream name(store.filename().string());
  std::vector<std::string> parts;
  for (std::string part; std::getline(name, part, '.');) parts.push_back(part);
  return parts;
}

// The same store's name but for one part.
fs::path with_part(const fs::path& store, size_t index, const std::string& text) {
  std::vector<std::string> parts = parts_of(store);
  REQUIRE(index < parts.size());
  parts[index] = text;
  std::string name;
  for (const std::string& part : parts) name += (name.empty() ? "" : ".") + part;
  return store.parent_path() / name;
}

}  // namespace

TEST_CASE("store place: the names say owner and rank, and follow the two variables") {
  const TemporaryFolder memory;
  const TemporaryFolder disk;
  const ScopedVariable first("SLUICE_NODE_MEMORY", memory.path());
  const ScopedVariable second("TMPDIR", disk.path());
  const io::StorePlace place = io::store_place(123, 456, 7);
  const std::vector<std::string> parts = parts_of(place.memory);
  REQUIRE(parts.size() == 6);
  const std::string& pid_space = parts[kPidSpace];
  CHECK(pid_space.size() == 8);
  CHECK(pid_space.find_first_not_of("0123456789abcdef") == std::string::npos);
  CHECK(pid_space != "00000000");  // what it is where boot and namespace cannot be read
  const std::string name = "sluice." + std::to_string(geteuid()) + ".123.456." + pid_space + ".7";
  CHECK(place.memory == memory.path() / name);
  CHECK(place.disk == disk.path() / (name + ".disk"));
}

TEST_CASE("store place: both tiers can be below one folder") {
  const TemporaryFolder folder;
  const ScopedVariable first("SLUICE_NODE_MEMORY", folder.path());
  const ScopedVariable second("TMPDIR", folder.path());
  const io::StorePlace place = io::store_place(1, 2, 3);
  CHECK(place.memory != place.disk);
  CHECK(place.memory.parent_path() == place.disk.parent_path());
}

TEST_CASE("store place: a TMPDIR that does not exist is not used") {
  const ScopedVariable variable("TMPDIR", "/does/not/exist");
  CHECK(io::store_place(1, 2, 3).disk.parent_path() == "/tmp");
}

TEST_CASE("store place: a process's start time tells it from a later one with its pid") {
  CHECK(io::process_start_time(getpid()) > 0);
  CHECK(io::process_start_time(getpid()) == io::process_start_time(getpid()));
  CHECK(io::process_start_time(999999999) == 0);
}

TEST_CASE("store place: remove_store takes both tiers, directories without permission included") {
  const TemporaryFolder folder;
  const io::StorePlace place{folder / "memory", folder / "disk"};
  write_text(place.memory / "o/1", "x");
  write_text(place.disk / "a/1/w/deep/file", "x");
  ::chmod((place.disk / "a/1/w/deep").c_str(), 0500);
  CHECK(io::remove_store(place).empty());
  CHECK_FALSE(fs::exists(place.memory));
  CHECK_FALSE(fs::exists(place.disk));
  CHECK(io::remove_store(place).empty());
}

TEST_CASE("store place: only stores whose owner is gone are removed as orphans") {
  const TemporaryFolder folder;
  const ScopedVariable first("SLUICE_NODE_MEMORY", folder.path());
  const ScopedVariable second("TMPDIR", folder.path());
  const auto start = io::process_start_time(getpid());
  const io::StorePlace alive = io::store_place(getpid(), start, 0);
  const io::StorePlace reused_pid = io::store_place(getpid(), start + 1, 0);
  const io::StorePlace dead = io::store_place(999999999, 5, 0);
  const fs::path other_user = with_part(dead.memory, kUser, std::to_string(geteuid() + 1));
  const fs::path other_name = dead.memory.string() + ".more";
  for (const fs::path& path : {alive.memory, alive.disk, reused_pid.memory, dead.memory, dead.disk,
                               other_user, other_name}) {
    write_text(path / "o/1", "x");
  }
  fs::create_directory_symlink(alive.memory, with_part(dead.memory, kOwner, "999999998"));

  CHECK(io::remove_orphaned_stores() == 2);
  CHECK(fs::exists(alive.memory / "o/1"));
  CHECK(fs::exists(alive.disk / "o/1"));
  CHECK_FALSE(fs::exists(reused_pid.memory));
  CHECK_FALSE(fs::exists(dead.memory));
  CHECK_FALSE(fs::exists(dead.disk));
  CHECK(fs::exists(other_user));
  CHECK(fs::exists(other_name));
}

TEST_CASE("store place: a store of another host, boot or container is never taken for orphaned") {
  const TemporaryFolder folder;  // seen by them all
  const ScopedVariable first("SLUICE_NODE_MEMORY", folder.path());
  const ScopedVariable second("TMPDIR", folder.path());
  const io::StorePlace dead = io::store_place(999999999, 5, 0);
  std::string elsewhere = parts_of(dead.memory)[kPidSpace];
  elsewhere.back() = elsewhere.back() == '0' ? '1' : '0';
  const fs::path memory = with_part(dead.memory, kPidSpace, elsewhere);
  const fs::path disk = with_part(dead.disk, kPidSpace, elsewhere);
  // As an older version named it: nobody knows where its owner is.
  const fs::path nowhere = folder / ("sluice." + std::to_string(geteuid()) + ".999999999.5.0");
  for (const fs::path& store : {dead.memory, memory, disk, nowhere}) write_text(store / "o/1", "x");

  CHECK(io::remove_orphaned_stores() >= 1);
  CHECK_FALSE(fs::exists(dead.memory));
  for (const fs::path& store : {memory, disk, nowhere}) CHECK(fs::exists(store / "o/1"));
}

TEST_CASE("store place: the memory budget is half of what group and node leave") {
  const TemporaryFolder root;
  constexpr int64_t kMebibyte = 1LL << 20U;  // small, so that no disk is too full for the test
  write_text(root / "proc/meminfo", "MemTotal: 99 kB\nMemAvailable: 16384 kB\n");

  SUBCASE("no control group: half of the free memory") {
    CHECK(io::node_memory_budget_bytes("/", root.path()) == 8 * kMebibyte);
  }
  SUBCASE("version 2: the smallest limit on the way up counts") {
    write_text(root / "proc/self/cgroup", "0::/job/step\n");
    write_text(root / "sys/fs/cgroup/job/step/memory.max", "max\n");
    write_text(root / "sys/fs/cgroup/job/memory.max", "1048576\n");
    CHECK(io::node_memory_budget_bytes("/", root.path()) == kMebibyte / 2);
  }
  SUBCASE("version 1") {
    write_text(root / "proc/self/cgroup", "9:cpuset:/a\n4:cpu,memory:/job\n0::/\n");
    write_text(root / "sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2097152\n");
    write_text(root / "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    CHECK(io::node_memory_budget_bytes("/", root.path()) == kMebibyte);
  }
  SUBCASE("the variable overrides") {
    const ScopedVariable variable("SLUICE_NODE_MEMORY_BYTES", "12345");
    CHECK(io::node_memory_budget_bytes("/", root.path()) == 12345);
  }
}
