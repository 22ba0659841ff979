// A directory as a string of bytes, to be moved in pieces: its encoded manifest, then the bytes of
// its files in the manifest's order with nothing between them. So ten thousand small files fill a
// few pieces, and a file of any size spans many.
//
//   [0, manifest_bytes)               encode_manifest (io/manifest.h); at least one byte
//   [manifest_bytes, total_bytes)     the files
//
// Owner: the store, one thread. Test: tests/io/tree_stream_test.cpp
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "io/manifest.h"
#include "scheduler/expected.h"

namespace sluice::io {

// Where each file's bytes begin, counted from the end of the manifest.
class TreeLayout {
 public:
  explicit TreeLayout(const Manifest& manifest);

  struct Span {
    size_t entry = 0;    // of the manifest
    int64_t offset = 0;  // in that file
    int64_t bytes = 0;
  };
  // The files that hold [offset, offset + bytes), in order; what lies beyond the end is left out.
  [[nodiscard]] std::vector<Span> find(int64_t offset, int64_t bytes) const;

 private:
  struct File {
    int64_t begin = 0;
    int64_t bytes = 0;
    size_t entry = 0;
  };
  std::vector<File> files_;  // those with bytes
};

// The string of a sealed directory, piece by piece, in any order.
class TreeReader {
 public:
  [[nodiscard]] static Expected<TreeReader> open(const std::filesystem::path& root);

  [[nodiscard]] int64_t manifest_bytes() const { return static_cast<int64_t>(head_.size()); }
  [[nodiscard]] size_t entry_count() const { return manifest_.entries.size(); }
  [[nodiscard]] int64_t total_bytes() const { return manifest_bytes() + manifest_.bytes; }
  // Cut at the end. A file that is shorter than it was is an Error.
  [[nodiscard]] Expected<Bytes> read(int64_t offset, int64_t length) const;

 private:
  TreeReader(std::filesystem::path root, Manifest manifest);

  std::filesystem::path root_;
  Manifest manifest_;
  Bytes head_;
  TreeLayout layout_;
};

// Writes a directory that does not exist yet. Pieces that begin in the manifest come first and in
// order, so that no more is kept in memory than has come; the others come in any order.
class TreeWriter {
 public:
  // 0 < manifest_bytes <= total_bytes.
  TreeWriter(std::filesystem::path root, int64_t manifest_bytes, int64_t total_bytes);

  Status write(int64_t offset, std::span<const std::byte> bytes);
  // Of a directory that has arrived completely.
  [[nodiscard]] const Manifest& manifest() const { return manifest_; }
  [[nodiscard]] bool unpacked() const { return layout_.has_value(); }

 private:
  Status write_head(int64_t offset, std::span<const std::byte> bytes);
  Status unpack();
  Status write_files(int64_t offset, std::span<const std::byte> bytes);

  std::filesystem::path root_;
  int64_t manifest_bytes_;
  int64_t total_bytes_;
  Bytes head_;  // the pieces that begin in the manifest, until it is complete
  Manifest manifest_;
  std::optional<TreeLayout> layout_;
};

}  // namespace sluice::io
