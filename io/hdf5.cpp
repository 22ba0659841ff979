#include "io/hdf5.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <new>
#include <utility>
#include <vector>

#include "io/checker.h"
#include "io/hdf5_handle.h"
#include "io/tier.h"

namespace sluice::io {

namespace {

using namespace h5;
namespace fs = std::filesystem;

constexpr hsize_t kChunksByIndexMax = 4000;  // finding the n-th chunk takes the library n steps
constexpr size_t kDescriptionBytesMax = 480;

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
      if (bytes > kPieceBytesMax) return too_large(what(), bytes);
      uint32_t mask = 0;
      buffer_.resize(bytes);
      if (H5Dread_chunk(dataset_, H5P_DEFAULT, offset.data(), &mask, buffer_.data()) < 0) {
        return unreadable(what());
      }
    }
    return Done{};
  }

  Status read_pieces(const Extent& unit) {
    return for_each_piece(
        dims_, unit, H5Tget_size(type_.get()), what(),
        [this](const Extent& offset, const Extent& count) { return read_piece(offset, count); });
  }

  Status read_piece(const Extent& offset, const Extent& count) {
    hsize_t elements = 1;
    for (const hsize_t n : count) elements *= n;
    const hsize_t bytes = elements * H5Tget_size(type_.get());
    if (bytes > kPieceBytesMax) return too_large(what(), bytes);
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

}  // namespace

Expected<std::string> describe_h5(const fs::path& file) {
  const std::string name = "'" + file.filename().string() + "'";
  const Expected<Handle> opened = open_to_read(file, name);
  if (!opened) return opened.error();
  FileWalk walk;
  const Status walked = walk.walk(opened->get());
  if (!walked) return Error{name + ": " + walked.error().message};
  return walk.description();
}

}  // namespace sluice::io
