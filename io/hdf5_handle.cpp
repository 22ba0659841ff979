#include "io/hdf5_handle.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "io/checker.h"
#include "io/tier.h"

namespace sluice::io::h5 {

namespace fs = std::filesystem;

namespace {

herr_t take_description(unsigned index, const H5E_error2_t* error, void* text) {
  if (index == 0 && error->desc != nullptr) *static_cast<std::string*>(text) = error->desc;
  return 0;
}

}  // namespace

std::string innermost_message() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_description, &text);
  return text.empty() ? "HDF5 does not say why" : text;
}

Error unreadable(const std::string& what) {
  return {what + " cannot be read: " + innermost_message() +
          "; the file is damaged or was not written to its end"};
}

namespace {

std::string array_text(hid_t type) {
  const Handle base(H5Tget_super(type), H5Tclose);
  std::array<hsize_t, H5S_MAX_RANK> dims{};
  const int rank = H5Tget_array_dims2(type, dims.data());
  std::string text = type_text(base.get());
  for (int i = 0; i < rank; ++i) text += "x" + std::to_string(dims[static_cast<size_t>(i)]);
  return text;
}

}  // namespace

std::string type_text(hid_t type) {
  const std::string bits = std::to_string(8 * H5Tget_size(type));
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return (H5Tget_sign(type) == H5T_SGN_NONE ? "u" : "i") + bits;
    case H5T_FLOAT:
      return "f" + bits;
    case H5T_STRING:
      return "string";
    case H5T_COMPOUND:
      return "compound(" + std::to_string(H5Tget_nmembers(type)) + ")";
    case H5T_ENUM:
      return "enum";
    case H5T_ARRAY:
      return array_text(type);
    case H5T_VLEN:
      return "list of " + type_text(Handle(H5Tget_super(type), H5Tclose).get());
    case H5T_REFERENCE:
      return "reference";
    case H5T_OPAQUE:
      return "opaque";
    case H5T_BITFIELD:
      return "bits" + bits;
    default:
      return "other";
  }
}

std::string extent_text(const Extent& dims) {
  if (dims.empty()) return "";
  std::string text = "[";
  for (size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(dims[i]);
  return text + "]";
}

bool may_allocate(hid_t type) {
  const H5T_class_t kind = H5Tget_class(type);
  return kind == H5T_VLEN || kind == H5T_COMPOUND || kind == H5T_ARRAY ||
         (kind == H5T_STRING && H5Tis_variable_str(type) > 0);
}

Extent extent_of(hid_t space) {
  const int rank = H5Sget_simple_extent_ndims(space);
  Extent extent(static_cast<size_t>(std::max(rank, 0)));
  H5Sget_simple_extent_dims(space, extent.data(), nullptr);
  return extent;
}

namespace {

// How many elements to read at once: whole units (chunks), as many as fit into a piece, the last
// dimension first. Nothing if one unit alone is larger than any chunk may be.
Extent piece_extent(const Extent& dims, const Extent& unit, hsize_t element_bytes) {
  Extent piece(dims.size());
  hsize_t bytes = element_bytes;
  for (size_t d = 0; d < dims.size(); ++d) {
    piece[d] = std::min(dims[d], unit[d]);
    if (bytes > kPieceBytesMax / piece[d]) return {};
    bytes *= piece[d];
  }
  for (size_t d = dims.size(); d-- > 0;) {
    const hsize_t rest = bytes / piece[d];
    const hsize_t fit = kPieceBytes / std::max<hsize_t>(rest, 1);
    piece[d] = fit >= dims[d] ? dims[d] : std::max(piece[d], fit / unit[d] * unit[d]);
    bytes = rest * piece[d];
    if (piece[d] < dims[d]) break;
  }
  return piece;
}

}  // namespace

Error too_large(const std::string& what, hsize_t bytes) {
  return {what + " has a chunk or element of " + std::to_string(bytes) +
          " bytes; expected at most " + std::to_string(kPieceBytesMax) + ": the file is damaged"};
}

Status for_each_piece(const Extent& dims, const Extent& unit, hsize_t element_bytes,
                      const std::string& what, const PieceFunction& piece) {
  const Extent whole = piece_extent(dims, unit, element_bytes);
  if (whole.size() != dims.size()) return too_large(what, kPieceBytesMax + 1);
  Extent offset(dims.size(), 0);
  while (true) {
    Extent count = whole;
    for (size_t d = 0; d < dims.size(); ++d) count[d] = std::min(whole[d], dims[d] - offset[d]);
    const Status done = piece(offset, count);
    if (!done) return done;
    size_t d = dims.size();
    while (d > 0) {
      --d;
      offset[d] += whole[d];
      if (offset[d] < dims[d]) break;
      offset[d] = 0;
      if (d == 0) return Done{};
    }
    if (dims.empty()) return Done{};
  }
}

Handle access_without_locks() {
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_file_locking(access.get(), 0, 1);  // locks fail on some parallel file systems
  H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
  return access;
}

namespace {

Error not_hdf5(const fs::path& file, const std::string& name) {
  const Expected<FileDescriptor> in = open_file(file, O_RDONLY);
  if (!in) return in.error();
  std::array<char, 24> start{};
  const ssize_t count = ::read(in->get(), start.data(), start.size());
  if (count == 0) return {name + " is empty; expected an HDF5 file"};
  return {name + " is not an HDF5 file: it starts with " +
          shortened({start.data(), static_cast<size_t>(std::max<ssize_t>(count, 0))})};
}

}  // namespace

Expected<Handle> open_to_read(const fs::path& file, const std::string& name) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // messages go into the Error, not to stderr
  const Handle access = access_without_locks();
  Handle opened(H5Fopen(file.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose);
  if (opened.ok()) return opened;
  const std::string why = innermost_message();
  if (H5Fis_hdf5(file.c_str()) <= 0) return not_hdf5(file, name);
  return Error{name + " cannot be opened: " + why +
               "; the file is damaged or was not closed by its writer"};
}

}  // namespace sluice::io::h5
