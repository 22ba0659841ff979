// A directory as an object: what it holds, in one canonical order.
//
// The manifest lists everything below the directory but not the directory itself: relative path,
// kind, whether a file may be executed, its bytes, where a link points. Entries are sorted by the
// bytes of their paths, so a folder comes before what is in it. Times, owners, inodes and all other
// permissions are no part of it: the same tree gives the same manifest wherever and however often
// it is written.
//
//   content id   XXH3-128 of "sluice tree 1", the number of entries, and for each entry its
//                encoding and, of a file, the content id of its bytes
//   encoding     as io/wire.h has it: a vector of TreeEntry; the first part of a directory's bytes
//                when it travels (io/tree_stream.h)
//
// Links are kept as they are. They must be relative and stay inside the directory, because what
// they mean must not depend on where the directory lies; everything but files, directories and such
// links is an Error that names the path. The walk is done here, in process, whatever the number of
// files; it takes some 150 bytes of memory for each. Values and functions, any thread. Test:
// tests/io/manifest_test.cpp
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "io/transport.h"
#include "scheduler/expected.h"
#include "scheduler/types.h"

namespace sluice::io {

struct TreeEntry {
  enum class Kind : uint8_t { kDirectory, kFile, kLink };
  std::string path;  // relative, parts separated by one '/', none of them "." or ".."
  Kind kind = Kind::kDirectory;
  bool executable = false;  // files: by anyone
  int64_t bytes = 0;        // files
  std::string target;       // links
  bool operator==(const TreeEntry&) const = default;
};

struct Manifest {
  std::vector<TreeEntry> entries;
  int64_t bytes = 0;  // of all files

  bool operator==(const Manifest&) const = default;
};

// What the walk saw beside the content.
struct TreeTimes {
  int64_t newest_ms = 0;  // the latest modification of anything in it, the directory included
};

[[nodiscard]] Expected<Manifest> scan_tree(const std::filesystem::path& root,
                                           TreeTimes* times = nullptr);
// Reads every file. `progress` is called now and then.
[[nodiscard]] Expected<scheduler::Hash128> hash_tree(const std::filesystem::path& root,
                                                     const Manifest& manifest,
                                                     const std::function<void()>& progress = {});
// The content id of whatever lies there: a regular file or a directory.
[[nodiscard]] Expected<scheduler::Hash128> hash_object(const std::filesystem::path& path);

[[nodiscard]] Bytes encode_manifest(const Manifest& manifest);
// Trusts nothing: order, names, links and sizes are checked, so that what is unpacked after it
// stays inside its directory.
[[nodiscard]] Expected<Manifest> decode_manifest(std::span<const std::byte> bytes);

// What it takes in a tier whose blocks have 4 KiB.
[[nodiscard]] int64_t occupied_bytes(const Manifest& manifest);

}  // namespace sluice::io
