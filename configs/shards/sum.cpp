// sum IN OUT: /sums in OUT has the sum of each row of /u in IN, however many rows that has.
#include <hdf5.h>

#include <numeric>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const hid_t in = H5Fopen(argv[1], H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t u_set = H5Dopen2(in, "/u", H5P_DEFAULT);
  hsize_t dims[2] = {0, 0};
  H5Sget_simple_extent_dims(H5Dget_space(u_set), dims, nullptr);
  std::vector<double> u(dims[0] * dims[1]);
  if (!u.empty() &&
      H5Dread(u_set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, u.data()) < 0) {
    return 1;
  }
  std::vector<double> sums(dims[0]);
  for (hsize_t row = 0; row < dims[0]; ++row) {
    const double* begin = u.data() + row * dims[1];
    sums[row] = std::accumulate(begin, begin + dims[1], 0.0);
  }
  const hid_t out = H5Fcreate(argv[2], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_obj_track_times(creation, false);
  const hid_t space = H5Screate_simple(1, dims, nullptr);
  const hid_t set =
      H5Dcreate2(out, "sums", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  const herr_t written =
      sums.empty() ? 0
                   : H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, sums.data());
  H5Dclose(set);
  return written < 0 || H5Fclose(out) < 0 ? 1 : 0;
}
