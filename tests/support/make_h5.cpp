// make_h5 KIND FILE: writes a small HDF5 file for the tests of sluice-h5, which link no HDF5
// themselves. Ends with 0, or with 1 if the library refused something.
#include <hdf5.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

namespace {

bool failed = false;
hid_t must(hid_t id) {
  if (id < 0) failed = true;
  return id;
}

// Writes 0, 1, 2, … as doubles.
void write_numbers(hid_t file, const char* name, std::vector<hsize_t> dims, hid_t creation) {
  size_t count = 1;
  for (const hsize_t n : dims) count *= n;
  std::vector<double> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0.0);
  const hid_t space = must(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr));
  const hid_t set =
      must(H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, creation, H5P_DEFAULT));
  must(H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers.data()));
  H5Dclose(set);
  H5Sclose(space);
}

// Contiguous u, chunked g/v, an attribute.
void plain(hid_t file) {
  write_numbers(file, "u", {64, 64}, H5P_DEFAULT);
  const hid_t group = must(H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t chunk = 4;
  H5Pset_chunk(creation, 1, &chunk);
  write_numbers(group, "v", {10}, creation);
  const hid_t scalar = H5Screate(H5S_SCALAR);
  const hid_t attribute =
      must(H5Acreate2(group, "answer", H5T_NATIVE_INT, scalar, H5P_DEFAULT, H5P_DEFAULT));
  const int value = 42;
  must(H5Awrite(attribute, H5T_NATIVE_INT, &value));
  H5Aclose(attribute);
  H5Sclose(scalar);
  H5Pclose(creation);
  H5Gclose(group);
}

void compressed(hid_t file) {
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  const hsize_t chunk[] = {100, 30};
  H5Pset_chunk(creation, 2, chunk);
  H5Pset_deflate(creation, 1);
  H5Pset_fletcher32(creation);
  write_numbers(file, "u", {1000, 70}, creation);
  H5Pclose(creation);
}

void strings(hid_t file) {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, H5T_VARIABLE);
  const hsize_t count = 2;
  const hid_t space = H5Screate_simple(1, &count, nullptr);
  const hid_t set =
      must(H5Dcreate2(file, "names", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  const char* names[] = {"one", "a longer one"};
  must(H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, names));
  H5Dclose(set);
  H5Sclose(space);
  H5Tclose(type);
}

// 8 TB of numbers, of which one was written.
void sparse(hid_t file) {
  const hsize_t dims[] = {1'000'000, 1'000'000};
  const hsize_t chunk[] = {10, 10};
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(creation, 2, chunk);
  const hid_t space = H5Screate_simple(2, dims, nullptr);
  const hid_t set =
      must(H5Dcreate2(file, "s", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, creation, H5P_DEFAULT));
  const hsize_t start[] = {500'000, 999'999};
  const hsize_t one[] = {1, 1};
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, nullptr, one, nullptr);
  const hid_t memory = H5Screate(H5S_SCALAR);
  const double value = 1;
  must(H5Dwrite(set, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, &value));
  H5Sclose(memory);
  H5Dclose(set);
  H5Sclose(space);
  H5Pclose(creation);
}

// Twice 16 MiB, in rows of 8 KiB.
void large(hid_t file) {
  for (const char* name : {"u", "v"}) write_numbers(file, name, {2048, 1024}, H5P_DEFAULT);
}

// A dataset of addresses of other objects.
void references(hid_t file) {
  plain(file);
  const hsize_t count = 1;
  const hid_t space = H5Screate_simple(1, &count, nullptr);
  const hid_t set =
      must(H5Dcreate2(file, "r", H5T_STD_REF_OBJ, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  hobj_ref_t reference = 0;
  must(H5Rcreate(&reference, file, "u", H5R_OBJECT, -1));
  must(H5Dwrite(set, H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, &reference));
  H5Dclose(set);
  H5Sclose(space);
}

void relative_link(hid_t file) {
  must(H5Lcreate_external("other.h5", "/u", file, "x", H5P_DEFAULT, H5P_DEFAULT));
}

void missing_link(hid_t file) {
  must(H5Lcreate_external("/does/not/exist.h5", "/u", file, "x", H5P_DEFAULT, H5P_DEFAULT));
}

void missing_source(hid_t file) {
  const hsize_t count = 10;
  const hid_t space = H5Screate_simple(1, &count, nullptr);
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  must(H5Pset_virtual(creation, space, "/does/not/exist.h5", "/u", space));
  const hid_t set =
      must(H5Dcreate2(file, "virtual", H5T_NATIVE_INT, space, H5P_DEFAULT, creation, H5P_DEFAULT));
  H5Dclose(set);
  H5Pclose(creation);
  H5Sclose(space);
}

void many(hid_t file) {
  for (int i = 0; i < 200; ++i) {
    write_numbers(file, ("dataset_" + std::to_string(1000 + i)).c_str(), {3}, H5P_DEFAULT);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<void(hid_t)>> kinds = {
      {"plain", plain},
      {"unclosed", plain},
      {"compressed", compressed},
      {"strings", strings},
      {"sparse", sparse},
      {"references", references},
      {"large", large},
      {"relative_link", relative_link},
      {"missing_link", missing_link},
      {"missing_source", missing_source},
      {"many", many},
      {"nothing", [](hid_t) {}},
  };
  const auto kind = kinds.find(argc == 3 ? argv[1] : "");
  if (kind == kinds.end()) {
    std::fprintf(stderr, "usage: make_h5 KIND FILE\n");
    return 2;
  }
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  if (kind->first == "unclosed") H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  const hid_t file = must(H5Fcreate(argv[2], H5F_ACC_TRUNC, H5P_DEFAULT, access));
  kind->second(file);
  // Its writer dies: what was flushed is there, and the mark "being written" too.
  if (kind->first == "unclosed") {
    H5Fflush(file, H5F_SCOPE_GLOBAL);
    _exit(failed ? 1 : 0);
  }
  must(H5Fclose(file));
  H5Pclose(access);
  return failed ? 1 : 0;
}
