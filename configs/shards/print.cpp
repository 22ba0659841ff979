// print FILE: /sums of FILE, a row on each line: its number and its sum.
#include <hdf5.h>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const hid_t file = H5Fopen(argv[1], H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t set = H5Dopen2(file, "/sums", H5P_DEFAULT);
  hsize_t rows = 0;
  H5Sget_simple_extent_dims(H5Dget_space(set), &rows, nullptr);
  std::vector<double> sums(rows);
  if (rows > 0 && H5Dread(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, sums.data()) < 0) {
    return 1;
  }
  std::printf("row\tsum\n");
  for (size_t row = 0; row < sums.size(); ++row) std::printf("%zu\t%.10g\n", row, sums[row]);
  return 0;
}
