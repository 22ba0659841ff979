// What the parts of io/hdf5*.cpp share: identifiers with an owner, errors in words, walking over a
// dataset in pieces. For these files only. One thread. Test: tests/engine/h5_checker_test.cpp
#pragma once

#include <hdf5.h>

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/expected.h"

namespace sluice::io::h5 {

using Extent = std::vector<hsize_t>;

constexpr hsize_t kPieceBytes = hsize_t{4} << 20U;
constexpr hsize_t kPieceBytesMax = hsize_t{8} << 30U;  // one chunk is at most 4 GiB

// An HDF5 identifier with one owner. Negative: the call that should have given it failed.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&&) = delete;
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  [[nodiscard]] hid_t get() const { return id_; }
  [[nodiscard]] bool ok() const { return id_ >= 0; }

 private:
  hid_t id_;
  Close close_;
};

// What the library said at the place where it failed: of its whole stack the line that helps.
[[nodiscard]] std::string innermost_message();
[[nodiscard]] Error unreadable(const std::string& what);
// The file, to be read and without locks. An Error says what it is instead of an HDF5 file; `name`
// is what people call it.
[[nodiscard]] Expected<Handle> open_to_read(const std::filesystem::path& file,
                                            const std::string& name);
[[nodiscard]] Handle access_without_locks();

[[nodiscard]] std::string type_text(hid_t type);              // "f64"
[[nodiscard]] std::string extent_text(const Extent& extent);  // "[64,64]", "" for a single value
// Of a simple dataspace. Empty: a single value, or none.
[[nodiscard]] Extent extent_of(hid_t space);
// Whether reading allocates memory that only the library can free.
[[nodiscard]] bool may_allocate(hid_t type);

// Calls `piece(offset, count)` for pieces that together are all of a dataset with these dimensions,
// in row-major order. A piece consists of whole units (chunks) and has about kPieceBytes. An Error
// if one unit alone is larger than any chunk may be.
using PieceFunction = std::function<Status(const Extent& offset, const Extent& count)>;
[[nodiscard]] Status for_each_piece(const Extent& dims, const Extent& unit, hsize_t element_bytes,
                                    const std::string& what, const PieceFunction& piece);
[[nodiscard]] Error too_large(const std::string& what, hsize_t bytes);

}  // namespace sluice::io::h5
