// field ROWS FILE: writes the dataset /u, ROWS × 64 doubles, where row r and column c have r +
// c/64.
#include <hdf5.h>

#include <cstdlib>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const hsize_t dims[] = {std::strtoull(argv[1], nullptr, 10), 64};
  std::vector<double> u(dims[0] * dims[1]);
  for (size_t i = 0; i < u.size(); ++i) {
    u[i] = static_cast<double>(i / dims[1]) + static_cast<double>(i % dims[1]) / 64;
  }
  const hid_t file = H5Fcreate(argv[2], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_obj_track_times(creation, false);  // the same numbers, the same bytes
  const hid_t space = H5Screate_simple(2, dims, nullptr);
  const hid_t set =
      H5Dcreate2(file, "u", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  const herr_t written = H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, u.data());
  const hsize_t one = 1;
  const hid_t line = H5Screate_simple(1, &one, nullptr);
  const hid_t note =
      H5Dcreate2(file, "note", H5T_NATIVE_INT, line, H5P_DEFAULT, creation, H5P_DEFAULT);
  H5Dclose(note);
  H5Dclose(set);
  return written < 0 || H5Fclose(file) < 0 ? 1 : 0;
}
