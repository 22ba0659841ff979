#include "io/tree_stream.h"

#include <fcntl.h>

#include <algorithm>

#include "io/tier.h"
#include "io/tree_files.h"
#include "scheduler/check.h"

namespace sluice::io {

namespace fs = std::filesystem;

TreeLayout::TreeLayout(const Manifest& manifest) {
  int64_t begin = 0;
  for (size_t i = 0; i < manifest.entries.size(); ++i) {
    const int64_t bytes = manifest.entries[i].bytes;
    if (bytes > 0) files_.push_back({begin, bytes, i});
    begin += bytes;
  }
}

std::vector<TreeLayout::Span> TreeLayout::find(int64_t offset, int64_t bytes) const {
  std::vector<Span> spans;
  auto file = std::upper_bound(files_.begin(), files_.end(), offset,
                               [](int64_t at, const File& one) { return at < one.begin; });
  if (file != files_.begin()) --file;
  for (; file != files_.end() && bytes > 0; ++file) {
    const int64_t inside = offset - file->begin;
    if (inside >= file->bytes) continue;  // the last file ends before
    const int64_t part = std::min(bytes, file->bytes - inside);
    spans.push_back({file->entry, inside, part});
    offset += part;
    bytes -= part;
  }
  return spans;
}

TreeReader::TreeReader(fs::path root, Manifest manifest)
    : root_(std::move(root)),
      manifest_(std::move(manifest)),
      head_(encode_manifest(manifest_)),
      layout_(manifest_) {}

Expected<TreeReader> TreeReader::open(const fs::path& root) {
  Expected<Manifest> manifest = scan_tree(root);
  if (!manifest) return manifest.error();
  return TreeReader(root, std::move(*manifest));
}

Expected<Bytes> TreeReader::read(int64_t offset, int64_t length) const {
  const int64_t begin = std::clamp<int64_t>(offset, 0, total_bytes());
  const int64_t end = begin + std::clamp<int64_t>(length, 0, total_bytes() - begin);
  Bytes bytes(static_cast<size_t>(end - begin));
  std::span<std::byte> rest(bytes);
  if (begin < manifest_bytes()) {
    const auto part = static_cast<size_t>(std::min(end, manifest_bytes()) - begin);
    std::copy_n(head_.begin() + begin, part, rest.begin());
    rest = rest.subspan(part);
  }
  const int64_t first = std::max(begin, manifest_bytes()) - manifest_bytes();
  for (const TreeLayout::Span& span : layout_.find(first, static_cast<int64_t>(rest.size()))) {
    const auto part = static_cast<size_t>(span.bytes);
    const fs::path path = root_ / manifest_.entries[span.entry].path;
    const Expected<FileDescriptor> file = open_file(path, O_RDONLY);
    if (!file) return file.error();
    const Status read = read_at(file->get(), rest.first(part), span.offset, path);
    if (!read) return read.error();
    rest = rest.subspan(part);
  }
  return bytes;
}

TreeWriter::TreeWriter(fs::path root, int64_t manifest_bytes, int64_t total_bytes)
    : root_(std::move(root)), manifest_bytes_(manifest_bytes), total_bytes_(total_bytes) {
  SLUICE_ASSERT(0 < manifest_bytes && manifest_bytes <= total_bytes, manifest_bytes, total_bytes);
}

Status TreeWriter::write(int64_t offset, std::span<const std::byte> bytes) {
  if (offset < manifest_bytes_) return write_head(offset, bytes);
  if (!unpacked()) return Error{"a piece of a directory came before the list of its files"};
  return write_files(offset - manifest_bytes_, bytes);
}

// The last piece of the manifest may hold the first files too.
Status TreeWriter::write_head(int64_t offset, std::span<const std::byte> bytes) {
  if (unpacked() || offset != static_cast<int64_t>(head_.size())) {
    return Error{"a piece of a directory's list of files came out of order"};
  }
  head_.insert(head_.end(), bytes.begin(), bytes.end());
  const auto manifest_bytes = static_cast<size_t>(manifest_bytes_);
  if (head_.size() < manifest_bytes) return Done{};
  const Status unpacked = unpack();
  if (!unpacked) return unpacked;
  const Bytes head = std::move(head_);
  return write_files(0, std::span(head).subspan(manifest_bytes));
}

Status TreeWriter::unpack() {
  Expected<Manifest> manifest =
      decode_manifest(std::span(head_).first(static_cast<size_t>(manifest_bytes_)));
  if (!manifest) return manifest.error();
  if (manifest->bytes != total_bytes_ - manifest_bytes_) {
    return Error{"a directory's files have " + std::to_string(manifest->bytes) + " bytes, but " +
                 std::to_string(total_bytes_ - manifest_bytes_) + " were announced"};
  }
  manifest_ = std::move(*manifest);
  layout_.emplace(manifest_);
  return make_skeleton(root_, manifest_);
}

Status TreeWriter::write_files(int64_t offset, std::span<const std::byte> bytes) {
  for (const TreeLayout::Span& span : layout_->find(offset, static_cast<int64_t>(bytes.size()))) {
    const fs::path path = root_ / manifest_.entries[span.entry].path;
    const Expected<FileDescriptor> file = open_file(path, O_WRONLY | O_CREAT);
    if (!file) return file.error();
    const auto part = static_cast<size_t>(span.bytes);
    const Status written = write_at(file->get(), bytes.first(part), span.offset, path);
    if (!written) return written;
    bytes = bytes.subspan(part);
  }
  return Done{};
}

}  // namespace sluice::io
