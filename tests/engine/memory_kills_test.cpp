#include "engine/memory_kills.h"

#include <doctest/doctest.h>

#include "tests/support/temporary_folder.h"

using namespace sluice;

TEST_CASE("memory kills: the kernel's counter is found among its others, or said to be absent") {
  test::TemporaryFolder folder;
  test::write_text(folder.path() / "new", "pgfault 100\noom_kill 3\ndrop_pagecache 0\n");
  test::write_text(folder.path() / "old", "pgfault 100\n");
  CHECK(engine::memory_kills(folder.path() / "new") == 3);
  CHECK(engine::memory_kills(folder.path() / "old") == -1);
  CHECK(engine::memory_kills(folder.path() / "none") == -1);
}
