#include "io/hdf5.h"

#include <fcntl.h>
#include <hdf5.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "io/checker.h"
#include "io/tier.h"

namespace sluice::io {

namespace {

namespace fs = std::filesystem;

constexpr hsize_t kPieceBytes = hsize_t{4} << 20U;
constexpr hsize_t kPieceBytesMax = hsize_t{8} << 30U;  // one chunk is at most 4 GiB
constexpr hsize_t kChunksByIndexMax = 4000;  // finding the n-th chunk takes the library n steps
constexpr size_t kDescriptionBytesMax = 480;

using Extent = std::vector<hsize_t>;

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

herr_t take_description(unsigned index, const H5E_error2_t* error, void* text) {
  if (index == 0 && error->desc != nullptr) *static_cast<std::string*>(text) = error->desc;
  return 0;
}

// What the library said at the place where it failed: of its whole stack the line that helps.
std::string innermost_message() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_description, &text);
  return text.empty() ? "HDF5 does not say why" : text;
}

Error unreadable(const std::string& what) {
  return {what + " cannot be read: " + innermost_message() +
          "; the file is damaged or was not written to its end"};
}

std::string type_text(hid_t type);

std::string array_text(hid_t type) {
  const Handle base(H5Tget_super(type), H5Tclose);
  std::array<hsize_t, H5S_MAX_RANK> dims{};
  const int rank = H5Tget_array_dims2(type, dims.data());
  std::string text = type_text(base.get());
  for (int i = 0; i < rank; ++i) text += "x" + std::to_string(dims[static_cast<size_t>(i)]);
  return text;
}

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

// Whether reading allocates memory that only the library can free.
bool may_allocate(hid_t type) {
  const H5T_class_t kind = H5Tget_class(type);
  return kind == H5T_VLEN || kind == H5T_COMPOUND || kind == H5T_ARRAY ||
         (kind == H5T_STRING && H5Tis_variable_str(type) > 0);
}

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

// One dataset, read once.
class DatasetReader {
 public:
  DatasetReader(hid_t dataset, std::string name)
      : dataset_(dataset),
        name_(std::move(name)),
        space_(H5Dget_space(dataset), H5Sclose),
        type_(H5Dget_type(dataset), H5Tclose),
        creation_(H5Dget_create_plist(dataset), H5Pclose) {}

  Status read() {
    if (!space_.ok() || !type_.ok() || !creation_.ok()) return unreadable(what());
    const int rank = H5Sget_simple_extent_ndims(space_.get());
    if (rank < 0) return unreadable(what());
    dims_.resize(static_cast<size_t>(rank));
    H5Sget_simple_extent_dims(space_.get(), dims_.data(), nullptr);
    if (H5Sget_simple_extent_npoints(space_.get()) == 0) return Done{};  // empty, or no dataspace
    switch (H5Pget_layout(creation_.get())) {
      case H5D_CHUNKED:
        return read_chunked();
      case H5D_VIRTUAL:
        return check_virtual_sources();
      case H5D_CONTIGUOUS:
        return read_contiguous();
      default:
        return read_pieces(Extent(dims_.size(), 1));
    }
  }

  // After read(): "u f64[64,64]".
  [[nodiscard]] std::string text() const {
    return name_ + " " + type_text(type_.get()) + extent_text(dims_) + note_;
  }

 private:
  [[nodiscard]] std::string what() const { return "dataset '" + name_ + "'"; }

  Status read_contiguous() {
    const int files = H5Pget_external_count(creation_.get());
    for (int i = 0; i < files; ++i) {
      std::array<char, 4096> file{};
      off_t offset = 0;
      hsize_t bytes = 0;
      H5Pget_external(creation_.get(), static_cast<unsigned>(i), file.size() - 1, file.data(),
                      &offset, &bytes);
      const Status there = check_outside(what() + " has its data in", file.data());
      if (!there) return there;
    }
    // No storage: never written, all fill value.
    if (files <= 0 && H5Dget_storage_size(dataset_) == 0) return Done{};
    return read_pieces(Extent(dims_.size(), 1));
  }

  Status check_virtual_sources() {
    size_t count = 0;
    if (H5Pget_virtual_count(creation_.get(), &count) < 0) return unreadable(what());
    for (size_t i = 0; i < count; ++i) {
      std::array<char, 4096> file{};
      if (H5Pget_virtual_filename(creation_.get(), i, file.data(), file.size()) < 0) {
        return unreadable(what());
      }
      const std::string source = file.data();
      // "%b" stands for a number: a family of files that need not be there yet.
      if (source == "." || source.find("%b") != std::string::npos) continue;
      const Status there = check_outside(what() + " is virtual and takes its data from", source);
      if (!there) return there;
    }
    note_ = " virtual";
    return Done{};
  }

  Status read_chunked() {
    Extent chunk(dims_.size());
    hsize_t count = 0;
    const int rank = static_cast<int>(dims_.size());
    if (H5Pget_chunk(creation_.get(), rank, chunk.data()) != rank ||
        H5Dget_num_chunks(dataset_, space_.get(), &count) < 0) {
      return unreadable(what());
    }
    if (std::count(chunk.begin(), chunk.end(), 0) > 0) {
      return Error{what() + " has chunks of no size; the file is damaged"};
    }
    const int missing = missing_filter();
    if (missing != 0) {
      note_ = " not decoded: filter " + std::to_string(missing) + " is not installed";
      return read_undecoded(count);
    }
    hsize_t all = 1;
    for (size_t d = 0; d < dims_.size(); ++d) {
      const hsize_t along = (dims_[d] - 1) / chunk[d] + 1;
      all = all > std::numeric_limits<hsize_t>::max() / along ? std::numeric_limits<hsize_t>::max()
                                                              : all * along;
    }
    // A sparse dataset: what was never written is not worth reading and may be enormous.
    if (count < all && count <= kChunksByIndexMax) return read_chunks(chunk, count);
    return read_pieces(chunk);
  }

  [[nodiscard]] int missing_filter() const {
    const int count = H5Pget_nfilters(creation_.get());
    for (int i = 0; i < count; ++i) {
      unsigned flags = 0;
      size_t values = 0;
      const H5Z_filter_t filter = H5Pget_filter2(creation_.get(), static_cast<unsigned>(i), &flags,
                                                 &values, nullptr, 0, nullptr, nullptr);
      if (filter > 0 && H5Zfilter_avail(filter) <= 0) return filter;
    }
    return 0;
  }

  Status read_chunks(const Extent& chunk, hsize_t count) {
    Extent offset(dims_.size());
    for (hsize_t i = 0; i < count; ++i) {
      unsigned filters = 0;
      haddr_t address = 0;
      hsize_t bytes = 0;
      if (H5Dget_chunk_info(dataset_, space_.get(), i, offset.data(), &filters, &address, &bytes) <
          0) {
        return unreadable(what());
      }
      Extent piece(dims_.size());
      bool inside = true;
      for (size_t d = 0; d < dims_.size(); ++d) {
        inside = inside && offset[d] < dims_[d];
        piece[d] = inside ? std::min(chunk[d], dims_[d] - offset[d]) : 0;
      }
      if (!inside) continue;
      const Status read = read_piece(offset, piece);
      if (!read) return read;
    }
    return Done{};
  }

  // The bytes as they are stored: all that can be looked at without the filter.
  Status read_undecoded(hsize_t count) {
    Extent offset(dims_.size());
    for (hsize_t i = 0; i < std::min(count, kChunksByIndexMax); ++i) {
      unsigned filters = 0;
      haddr_t address = 0;
      hsize_t bytes = 0;
      if (H5Dget_chunk_info(dataset_, space_.get(), i, offset.data(), &filters, &address, &bytes) <
          0) {
        return unreadable(what());
      }
      if (bytes > kPieceBytesMax) return too_large(bytes);
      uint32_t mask = 0;
      buffer_.resize(bytes);
      if (H5Dread_chunk(dataset_, H5P_DEFAULT, offset.data(), &mask, buffer_.data()) < 0) {
        return unreadable(what());
      }
    }
    return Done{};
  }

  [[nodiscard]] Error too_large(hsize_t bytes) const {
    return {what() + " has a chunk or element of " + std::to_string(bytes) +
            " bytes; expected at most " + std::to_string(kPieceBytesMax) + ": the file is damaged"};
  }

  Status read_pieces(const Extent& unit) {
    const Extent piece = piece_extent(dims_, unit, H5Tget_size(type_.get()));
    if (piece.size() != dims_.size()) return too_large(kPieceBytesMax + 1);
    Extent offset(dims_.size(), 0);
    while (true) {
      Extent count = piece;
      for (size_t d = 0; d < dims_.size(); ++d) count[d] = std::min(piece[d], dims_[d] - offset[d]);
      const Status read = read_piece(offset, count);
      if (!read) return read;
      size_t d = dims_.size();
      while (d > 0) {
        --d;
        offset[d] += piece[d];
        if (offset[d] < dims_[d]) break;
        offset[d] = 0;
        if (d == 0) return Done{};
      }
      if (dims_.empty()) return Done{};
    }
  }

  Status read_piece(const Extent& offset, const Extent& count) {
    hsize_t elements = 1;
    for (const hsize_t n : count) elements *= n;
    const hsize_t bytes = elements * H5Tget_size(type_.get());
    if (bytes > kPieceBytesMax) return too_large(bytes);
    const Handle memory(
        count.empty() ? H5Screate(H5S_SCALAR)
                      : H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr),
        H5Sclose);
    if (!count.empty()) {
      H5Sselect_hyperslab(space_.get(), H5S_SELECT_SET, offset.data(), nullptr, count.data(),
                          nullptr);
    }
    const bool allocates = may_allocate(type_.get());
    buffer_.resize(bytes);
    if (allocates) std::fill(buffer_.begin(), buffer_.end(), std::byte{0});
    const herr_t read =
        H5Dread(dataset_, type_.get(), memory.get(), space_.get(), H5P_DEFAULT, buffer_.data());
    const Status status = read < 0 ? Status(unreadable(what())) : Status(Done{});
    if (allocates) H5Dvlen_reclaim(type_.get(), memory.get(), H5P_DEFAULT, buffer_.data());
    return status;
  }

 public:
  // What lies outside the file must be where every later reader finds it.
  static Status check_outside(const std::string& what, const std::string& file) {
    if (!fs::path(file).is_absolute()) {
      return Error{what + " '" + file +
                   "', a relative path that breaks when this file is moved: write the data into "
                   "this file, or make the other one an output of its own"};
    }
    if (::access(file.c_str(), R_OK) == 0) return Done{};
    return Error{what + " '" + file + "', which cannot be read: " + std::strerror(errno)};
  }

 private:
  hid_t dataset_;
  std::string name_;
  Handle space_;
  Handle type_;
  Handle creation_;
  Extent dims_;
  std::string note_;
  std::vector<std::byte> buffer_;
};

// All objects, attributes and links of a file. Callbacks give 1 to end a walk of the library early.
class FileWalk {
 public:
  Status walk(hid_t file) {
    if (H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, on_object, this, H5O_INFO_BASIC) < 0 &&
        status_) {
      status_ = unreadable("the list of objects");
    }
    if (status_ && H5Lvisit(file, H5_INDEX_NAME, H5_ITER_INC, on_link, this) < 0 && status_) {
      status_ = unreadable("the list of links");
    }
    return status_;
  }

  [[nodiscard]] std::string description() const {
    std::string text = std::to_string(datasets_) + (datasets_ == 1 ? " dataset" : " datasets");
    return text + (listed_.empty() ? "" : ": " + listed_) +
           (listed_datasets_ < datasets_ ? ", …" : "");
  }

 private:
  static herr_t on_object(hid_t group, const char* name, const H5O_info_t* info, void* self) {
    return static_cast<FileWalk*>(self)->keep(
        [&](FileWalk& walk) { return walk.object(group, name, info->type); });
  }
  static herr_t on_attribute(hid_t object, const char* name, const H5A_info_t* /*info*/,
                             void* self) {
    return static_cast<FileWalk*>(self)->keep([&](FileWalk&) { return attribute(object, name); });
  }
  static herr_t on_link(hid_t group, const char* name, const H5L_info_t* info, void* self) {
    return static_cast<FileWalk*>(self)->keep([&](FileWalk&) { return link(group, name, *info); });
  }

  // No exception may cross the library's C frames.
  template <class Step>
  herr_t keep(Step step) {
    try {
      const Status status = step(*this);
      if (!status) status_ = status;
      return status ? 0 : 1;
    } catch (const std::bad_alloc&) {
      status_ = Error{"there is not enough memory to read it"};
      return 1;
    }
  }

  Status object(hid_t group, const char* name, H5O_type_t type) {
    const Handle opened(H5Oopen(group, name, H5P_DEFAULT), H5Oclose);
    if (!opened.ok()) return unreadable("object '" + std::string(name) + "'");
    if (H5Aiterate2(opened.get(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, on_attribute, this) < 0 &&
        status_) {
      return unreadable("the attributes of '" + std::string(name) + "'");
    }
    if (!status_ || type != H5O_TYPE_DATASET) return status_;
    DatasetReader reader(opened.get(), name);
    const Status read = reader.read();
    if (!read) return read;
    list(reader.text());
    return Done{};
  }

  void list(const std::string& text) {
    ++datasets_;
    if (listed_.size() + text.size() + 2 > kDescriptionBytesMax - 40) return;
    if (listed_datasets_ + 1 != datasets_) return;  // nothing after the first that did not fit
    listed_ += (listed_.empty() ? "" : ", ") + text;
    ++listed_datasets_;
  }

  static Status attribute(hid_t object, const char* name) {
    const std::string what = "attribute '" + std::string(name) + "'";
    const Handle opened(H5Aopen(object, name, H5P_DEFAULT), H5Aclose);
    if (!opened.ok()) return unreadable(what);
    const Handle type(H5Aget_type(opened.get()), H5Tclose);
    const Handle space(H5Aget_space(opened.get()), H5Sclose);
    if (!type.ok() || !space.ok()) return unreadable(what);
    const hssize_t elements = H5Sget_simple_extent_npoints(space.get());
    const size_t size = H5Tget_size(type.get());
    if (elements <= 0) return Done{};
    if (static_cast<hsize_t>(elements) > kPieceBytesMax / std::max<size_t>(size, 1)) {
      return Error{what + " has more than " + std::to_string(kPieceBytesMax) +
                   " bytes: the file is damaged"};
    }
    std::vector<std::byte> buffer(static_cast<size_t>(elements) * size);
    const herr_t read = H5Aread(opened.get(), type.get(), buffer.data());
    const Status status = read < 0 ? Status(unreadable(what)) : Status(Done{});
    if (may_allocate(type.get())) {
      H5Dvlen_reclaim(type.get(), space.get(), H5P_DEFAULT, buffer.data());
    }
    return status;
  }

  static Status link(hid_t group, const char* name, const H5L_info_t& info) {
    if (info.type != H5L_TYPE_EXTERNAL) return Done{};
    const std::string what = "link '" + std::string(name) + "'";
    std::vector<char> value(info.u.val_size + 1, '\0');
    const char* file = nullptr;
    const char* path = nullptr;
    unsigned flags = 0;
    if (H5Lget_val(group, name, value.data(), info.u.val_size, H5P_DEFAULT) < 0 ||
        H5Lunpack_elink_val(value.data(), info.u.val_size, &flags, &file, &path) < 0) {
      return unreadable(what);
    }
    return DatasetReader::check_outside(what + " points into", file);
  }

  Status status_ = Done{};
  size_t datasets_ = 0;
  size_t listed_datasets_ = 0;
  std::string listed_;
};

Error not_hdf5(const fs::path& file) {
  const std::string name = "'" + file.filename().string() + "'";
  const Expected<FileDescriptor> in = open_file(file, O_RDONLY);
  if (!in) return in.error();
  std::array<char, 24> start{};
  const ssize_t count = ::read(in->get(), start.data(), start.size());
  if (count == 0) return {name + " is empty; expected an HDF5 file"};
  return {name + " is not an HDF5 file: it starts with " +
          shortened({start.data(), static_cast<size_t>(std::max<ssize_t>(count, 0))})};
}

Handle access_without_locks() {
  Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_file_locking(access.get(), 0, 1);  // locks fail on some parallel file systems
  H5Pset_fclose_degree(access.get(), H5F_CLOSE_STRONG);
  return access;
}

}  // namespace

Expected<std::string> describe_h5(const fs::path& file) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // messages go into the Error, not to stderr
  const Handle access = access_without_locks();
  const Handle opened(H5Fopen(file.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose);
  const std::string name = "'" + file.filename().string() + "'";
  if (!opened.ok()) {
    const std::string why = innermost_message();
    if (H5Fis_hdf5(file.c_str()) <= 0) return not_hdf5(file);
    return Error{name + " cannot be opened: " + why +
                 "; the file is damaged or was not closed by its writer"};
  }
  FileWalk walk;
  const Status walked = walk.walk(opened.get());
  if (!walked) return Error{name + ": " + walked.error().message};
  return walk.description();
}

}  // namespace sluice::io
