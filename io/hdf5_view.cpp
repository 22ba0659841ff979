// One HDF5 file made of parts of others: see make_h5_view in io/hdf5.h.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <optional>
#include <string_view>

#include "io/hdf5.h"
#include "io/hdf5_handle.h"
#include "io/tier.h"

namespace sluice::io {

namespace {

using namespace h5;
namespace fs = std::filesystem;

constexpr hsize_t kAlignBytes = 4096;
constexpr hsize_t kAlignFromBytes = 4096;  // smaller datasets and the library's own lie anywhere

Error unwritable(const std::string& what) {
  return {what + " cannot be written: " + innermost_message()};
}

bool holds_references(hid_t type) { return H5Tdetect_class(type, H5T_REFERENCE) > 0; }

std::string quoted(const std::string& name) { return "'" + name + "'"; }

// The paths of a file's groups and datasets, groups before what is in them.
struct Contents {
  std::vector<std::string> groups;
  std::vector<std::string> datasets;

  static herr_t on_object(hid_t /*file*/, const char* name, const H5O_info_t* info, void* self) {
    auto& contents = *static_cast<Contents*>(self);
    const std::string path = std::string("/") + (std::string_view(name) == "." ? "" : name);
    if (info->type == H5O_TYPE_GROUP) contents.groups.push_back(path);
    if (info->type == H5O_TYPE_DATASET) contents.datasets.push_back(path);
    return 0;
  }
};

Expected<Contents> contents_of(hid_t file, const std::string& name) {
  Contents contents;
  if (H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, Contents::on_object, &contents, H5O_INFO_BASIC) <
      0) {
    return unreadable("the list of objects of " + name);
  }
  return contents;
}

// Each link on the way is asked for: of a path whose beginning is not there H5Lexists is an error.
bool has_dataset(hid_t file, const std::string& path) {
  for (size_t end = path.find('/', 1); true; end = path.find('/', end + 1)) {
    if (H5Lexists(file, path.substr(0, end).c_str(), H5P_DEFAULT) <= 0) return false;
    if (end == std::string::npos) break;
  }
  H5O_info_t info;
  return H5Oget_info_by_name2(file, path.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT) >= 0 &&
         info.type == H5O_TYPE_DATASET;
}

// A dataset of one source, opened. Of all files only one is open at a time, beside the first: there
// may be more of them than descriptors.
struct Part {
  Handle file;
  Handle dataset;
  Handle space;
  Handle type;
  std::string name;  // "dataset '/u' of field.h5"
  Extent dims;
  Rows rows;  // of it; a single value counts as one row
};

class ViewMaker {
 public:
  ViewMaker(const std::vector<H5Source>& sources, const H5View& view,
            const std::function<void()>& progress)
      : sources_(sources), view_(view), progress_(progress) {}

  Status make(const fs::path& to) {
    const Status made = create(to);
    if (!made) return made;
    const Status written = view_.dataset.empty() ? add_all() : add_named();
    if (!written) return written;
    return H5Fflush(out_->get(), H5F_SCOPE_LOCAL) < 0 ? Status(unwritable("the file"))
                                                      : Status(Done{});
  }

 private:
  Status create(const fs::path& to) {
    const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
    H5Pset_obj_track_times(creation.get(), false);
    const Handle access = access_without_locks();
    H5Pset_alignment(access.get(), kAlignFromBytes, kAlignBytes);
    out_.emplace(H5Fcreate(to.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()), H5Fclose);
    return out_->ok() ? Status(Done{}) : Status(unwritable(quoted(to.string())));
  }

  [[nodiscard]] Expected<Handle> open_source(size_t source) const {
    if (progress_) progress_();
    return open_to_read(sources_[source].path, quoted(sources_[source].name));
  }

  [[nodiscard]] Expected<Contents> first_contents() const {
    const Expected<Handle> file = open_source(0);
    if (!file) return file.error();
    return contents_of(file->get(), quoted(sources_[0].name));
  }

  Status add_all() {
    const Expected<Contents> contents = first_contents();
    if (!contents) return contents.error();
    for (const std::string& group : contents->groups) {
      const Status added = add_group(group);
      if (!added) return added;
    }
    for (const std::string& dataset : contents->datasets) {
      const Status added = add_dataset(dataset);
      if (!added) return added;
    }
    return Done{};
  }

  Status add_named() {
    const std::string& path = view_.dataset;
    const Status found = look_for_named();
    if (!found) return found;
    for (size_t slash = 0; slash != std::string::npos; slash = path.find('/', slash + 1)) {
      const Status added = add_group(slash == 0 ? "/" : path.substr(0, slash));
      if (!added) return added;
    }
    return add_dataset(path);
  }

  // An Error that says what is there, if the dataset is not.
  [[nodiscard]] Status look_for_named() const {
    const Expected<Contents> contents = first_contents();
    if (!contents) return contents.error();
    const auto& all = contents->datasets;
    if (std::find(all.begin(), all.end(), view_.dataset) != all.end()) return Done{};
    constexpr size_t kNamed = 10;
    std::string there;
    for (size_t i = 0; i < std::min(all.size(), kNamed); ++i) {
      there += (i == 0 ? "" : ", ") + all[i];
    }
    if (all.size() > kNamed) there += " and " + std::to_string(all.size() - kNamed) + " more";
    return Error{quoted(sources_[0].name) + " has no dataset '" + view_.dataset + "'; it has " +
                 (all.empty() ? "none" : there)};
  }

  Status add_group(const std::string& path) {
    const Expected<Handle> file = open_source(0);
    if (!file) return file.error();
    const Handle from(H5Gopen2(file->get(), path.c_str(), H5P_DEFAULT), H5Gclose);
    if (!from.ok()) return unreadable("group '" + path + "' of " + quoted(sources_[0].name));
    if (path == "/") return copy_attributes(from.get(), out_->get(), "the root group");
    const Handle creation(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
    H5Pset_obj_track_times(creation.get(), false);
    const Handle to(H5Gcreate2(out_->get(), path.c_str(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
                    H5Gclose);
    if (!to.ok()) return unwritable("group '" + path + "'");
    return copy_attributes(from.get(), to.get(), "group '" + path + "'");
  }

  Expected<Part> open(size_t source, const std::string& path) {
    const std::string name = "dataset '" + path + "' of " + quoted(sources_[source].name);
    Expected<Handle> opened = open_source(source);
    if (!opened) return opened.error();
    const hid_t file = opened->get();
    if (source > 0 && !has_dataset(file, path)) {
      return Error{name + " is missing, but '" + sources_[0].name +
                   "' has it: expected the same "
                   "datasets in all files that are gathered"};
    }
    Handle dataset(H5Dopen2(file, path.c_str(), H5P_DEFAULT), H5Dclose);
    if (!dataset.ok()) return unreadable(name);
    Handle space(H5Dget_space(dataset.get()), H5Sclose);
    Handle type(H5Dget_type(dataset.get()), H5Tclose);
    if (!space.ok() || !type.ok()) return unreadable(name);
    Part part{std::move(*opened),
              std::move(dataset),
              std::move(space),
              std::move(type),
              name,
              {},
              {0, 1}};
    part.dims = extent_of(part.space.get());
    if (H5Sget_simple_extent_type(part.space.get()) == H5S_NULL) {
      return Error{name + " has no elements at all; name another one by 'dataset'"};
    }
    if (holds_references(part.type.get())) {
      return Error{name +
                   " holds references to other objects of its file, which mean nothing in "
                   "another one; name another one by 'dataset'"};
    }
    return choose_rows(std::move(part));
  }

  [[nodiscard]] Expected<Part> choose_rows(Part part) const {
    const bool all = view_.first_row == 0 && view_.end_row == H5View::kAllRows && view_.shards == 0;
    if (part.dims.empty()) {
      if (all || view_.dataset.empty()) return part;  // single values belong to every part
      return Error{part.name + " is a single value; expected rows to take some of"};
    }
    const auto rows = rows_of(view_, static_cast<int64_t>(part.dims[0]));
    if (!rows) return Error{part.name + ": " + rows.error().message};
    part.rows = *rows;
    return part;
  }

  Status add_dataset(const std::string& path) {
    std::vector<hsize_t> rows;  // by source
    const Expected<Handle> to = begin_dataset(path, rows);
    if (!to) return to.error();
    hsize_t at = 0;
    for (size_t i = 0; i < sources_.size(); ++i) {
      const Expected<Part> part = open(i, path);
      if (!part) return part.error();
      const Status copied = copy_part(*part, to->get(), at);
      if (!copied) return copied;
      const bool one = view_.gather == H5View::Gather::kStack || part->dims.empty();
      at += one ? 1 : rows[i];
    }
    return Done{};
  }

  // All sources are looked at first: the dataset is as large as their parts together.
  Expected<Handle> begin_dataset(const std::string& path, std::vector<hsize_t>& rows) {
    const Expected<Part> first = open(0, path);
    if (!first) return first.error();
    rows = {static_cast<hsize_t>(first->rows.end - first->rows.begin)};
    for (size_t i = 1; i < sources_.size(); ++i) {
      const Expected<Part> other = open(i, path);
      if (!other) return other.error();
      const Status fits = check_alike(*first, *other);
      if (!fits) return fits.error();
      rows.push_back(static_cast<hsize_t>(other->rows.end - other->rows.begin));
    }
    Expected<Handle> to = create_dataset(path, first->type.get(), extent_of_all(*first, rows));
    if (!to) return to;
    const Status attributes =
        copy_attributes(first->dataset.get(), to->get(), "dataset '" + path + "'");
    if (!attributes) return attributes.error();
    return to;
  }

  [[nodiscard]] Extent extent_of_all(const Part& first, const std::vector<hsize_t>& rows) const {
    Extent dims = first.dims;
    if (view_.gather == H5View::Gather::kStack) {
      dims.insert(dims.begin(), sources_.size());
    } else if (!dims.empty()) {
      dims[0] = std::accumulate(rows.begin(), rows.end(), hsize_t{0});
    } else if (view_.gather == H5View::Gather::kConcat) {
      dims = {sources_.size()};
    }
    return dims;
  }

  Status check_alike(const Part& first, const Part& other) const {
    if (H5Tequal(first.type.get(), other.type.get()) <= 0) {
      return Error{other.name + " is of type " + type_text(other.type.get()) + "; expected " +
                   type_text(first.type.get()) + ", as in '" + sources_[0].name + "'"};
    }
    const bool concat = view_.gather == H5View::Gather::kConcat && !first.dims.empty();
    const auto same_from = static_cast<std::ptrdiff_t>(concat ? 1 : 0);
    if (first.dims.size() == other.dims.size() &&
        std::equal(first.dims.begin() + same_from, first.dims.end(),
                   other.dims.begin() + same_from)) {
      return Done{};
    }
    return Error{other.name + " has the shape " + extent_text(other.dims) + "; expected " +
                 extent_text(first.dims) + ", as in '" + sources_[0].name + "'" +
                 (concat ? ", but for the number of rows" : "")};
  }

  Expected<Handle> create_dataset(const std::string& path, hid_t type, const Extent& dims) {
    const Handle space(dims.empty()
                           ? H5Screate(H5S_SCALAR)
                           : H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr),
                       H5Sclose);
    const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
    H5Pset_obj_track_times(creation.get(), false);
    H5Pset_layout(creation.get(), H5D_CONTIGUOUS);
    H5Pset_alloc_time(creation.get(), H5D_ALLOC_TIME_EARLY);
    // Strings of any length are addresses: those that are not written must be none.
    if (!may_allocate(type)) H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER);
    const Handle own(H5Tcopy(type), H5Tclose);  // not the source's named type
    Handle to(H5Dcreate2(out_->get(), path.c_str(), own.get(), space.get(), H5P_DEFAULT,
                         creation.get(), H5P_DEFAULT),
              H5Dclose);
    if (!to.ok()) return unwritable("dataset '" + path + "'");
    return to;
  }

  // Whole chunks of the source, counted from its first row: a part that begins within a chunk reads
  // that chunk and the next together.
  Status copy_part(const Part& part, hid_t to, hsize_t at) {
    Extent dims = part.dims;
    if (!dims.empty()) dims[0] = static_cast<hsize_t>(part.rows.end - part.rows.begin);
    if (std::count(dims.begin(), dims.end(), hsize_t{0}) > 0) return Done{};
    return for_each_piece(dims, unit_of(part), H5Tget_size(part.type.get()), part.name,
                          [&](const Extent& offset, const Extent& count) {
                            return copy_piece(part, to, at, offset, count);
                          });
  }

  static Extent unit_of(const Part& part) {
    Extent unit(part.dims.size(), 1);
    const Handle creation(H5Dget_create_plist(part.dataset.get()), H5Pclose);
    if (H5Pget_layout(creation.get()) != H5D_CHUNKED) return unit;
    H5Pget_chunk(creation.get(), static_cast<int>(unit.size()), unit.data());
    std::replace(unit.begin(), unit.end(), hsize_t{0}, hsize_t{1});
    return unit;
  }

  Status copy_piece(const Part& part, hid_t to, hsize_t at, Extent offset, const Extent& count) {
    if (progress_) progress_();
    const Handle memory(
        count.empty() ? H5Screate(H5S_SCALAR)
                      : H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr),
        H5Sclose);
    hsize_t bytes = H5Tget_size(part.type.get());
    for (const hsize_t n : count) bytes *= n;
    if (bytes > kPieceBytesMax) return too_large(part.name, bytes);
    buffer_.assign(bytes, std::byte{0});
    const Handle target(H5Dget_space(to), H5Sclose);
    select_target(target.get(), at, offset, count);
    if (!count.empty()) {
      offset[0] += static_cast<hsize_t>(part.rows.begin);
      H5Sselect_hyperslab(part.space.get(), H5S_SELECT_SET, offset.data(), nullptr, count.data(),
                          nullptr);
    }
    if (H5Dread(part.dataset.get(), part.type.get(), memory.get(), part.space.get(), H5P_DEFAULT,
                buffer_.data()) < 0) {
      return unreadable(part.name);
    }
    const herr_t written =
        H5Dwrite(to, part.type.get(), memory.get(), target.get(), H5P_DEFAULT, buffer_.data());
    const Status status = written < 0 ? Status(unwritable(part.name)) : Status(Done{});
    if (may_allocate(part.type.get())) {
      H5Dvlen_reclaim(part.type.get(), memory.get(), H5P_DEFAULT, buffer_.data());
    }
    return status;
  }

  void select_target(hid_t target, hsize_t at, Extent offset, Extent count) const {
    const auto rank = static_cast<size_t>(std::max(H5Sget_simple_extent_ndims(target), 0));
    if (rank == 0) return;  // a single value
    if (rank > count.size()) {
      offset.insert(offset.begin(), at);
      count.insert(count.begin(), 1);
    } else {
      offset[0] += at;
    }
    H5Sselect_hyperslab(target, H5S_SELECT_SET, offset.data(), nullptr, count.data(), nullptr);
  }

  // -- attributes

  struct AttributeCopy {
    hid_t to;
    Status status;
  };

  static Status copy_attributes(hid_t from, hid_t to, const std::string& what) {
    AttributeCopy copy{to, Done{}};
    const herr_t done = H5Aiterate2(from, H5_INDEX_NAME, H5_ITER_INC, nullptr, on_attribute, &copy);
    if (!copy.status) return copy.status;
    return done < 0 ? Status(unreadable("the attributes of " + what)) : Status(Done{});
  }

  static herr_t on_attribute(hid_t from, const char* name, const H5A_info_t* /*info*/, void* copy) {
    auto& state = *static_cast<AttributeCopy*>(copy);
    state.status = copy_attribute(from, state.to, name);
    return state.status ? 0 : 1;
  }

  static Status copy_attribute(hid_t from, hid_t to, const char* name) {
    const std::string what = "attribute " + quoted(name);
    const Handle source(H5Aopen(from, name, H5P_DEFAULT), H5Aclose);
    const Handle type(source.ok() ? H5Aget_type(source.get()) : -1, H5Tclose);
    const Handle space(source.ok() ? H5Aget_space(source.get()) : -1, H5Sclose);
    if (!type.ok() || !space.ok()) return unreadable(what);
    if (holds_references(type.get())) return Done{};
    const Handle own(H5Tcopy(type.get()), H5Tclose);
    const Handle copy(H5Acreate2(to, name, own.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT),
                      H5Aclose);
    if (!copy.ok()) return unwritable(what);
    const hssize_t elements = H5Sget_simple_extent_npoints(space.get());
    if (elements <= 0) return Done{};
    const size_t size = H5Tget_size(type.get());
    if (static_cast<hsize_t>(elements) > kPieceBytesMax / std::max<size_t>(size, 1)) {
      return too_large(what, kPieceBytesMax + 1);
    }
    std::vector<std::byte> buffer(static_cast<size_t>(elements) * size);
    if (H5Aread(source.get(), type.get(), buffer.data()) < 0) return unreadable(what);
    const herr_t written = H5Awrite(copy.get(), type.get(), buffer.data());
    const Status status = written < 0 ? Status(unwritable(what)) : Status(Done{});
    if (may_allocate(type.get())) {
      H5Dvlen_reclaim(type.get(), space.get(), H5P_DEFAULT, buffer.data());
    }
    return status;
  }

  const std::vector<H5Source>& sources_;
  const H5View& view_;
  const std::function<void()>& progress_;
  std::optional<Handle> out_;
  std::vector<std::byte> buffer_;
};

}  // namespace

Expected<int64_t> make_h5_view(const std::vector<H5Source>& sources, const H5View& view,
                               const fs::path& to, const std::function<void()>& progress) {
  if (sources.empty()) return Error{"there is no file to read; expected at least one"};
  if (view.gather == H5View::Gather::kNone && sources.size() > 1) {
    return Error{"there are " + std::to_string(sources.size()) + " files; expected one"};
  }
  Status made = ViewMaker(sources, view, progress).make(to);  // closed at the end of this line
  struct stat info {};
  if (made && ::chmod(to.c_str(), 0444) != 0) made = system_error("make read-only", to, errno);
  if (made && ::stat(to.c_str(), &info) != 0) made = system_error("look at", to, errno);
  if (made) return int64_t{info.st_size};
  ::unlink(to.c_str());
  return made.error();
}

}  // namespace sluice::io
