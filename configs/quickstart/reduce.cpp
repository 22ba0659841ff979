// All cases of one grid in one table.
//
//   reduce FIELDS.txt ERRORS.h5
//
// FIELDS.txt names one field file of `heat` per line, all of the same grid and time. ERRORS.h5 gets
// the dataset `rows`, one row per field in that order: alpha, largest u, mean u, and the error in
// the L2 norm against the analytic solution  exp(-2 pi^2 alpha t) sin(pi x) sin(pi y); with the
// attributes grid and time. Exit status: 0 written, 1 could not read or write, 2 wrong arguments.
#include <hdf5.h>
#include <hdf5_hl.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace {

const double kPi = std::acos(-1.0);

struct Field {
  int grid = 0;
  double alpha = 0;
  double time = 0;
  std::vector<double> u;
};

struct Row {
  double alpha;
  double max_u;
  double mean_u;
  double l2_error;
};
static_assert(sizeof(Row) == 4 * sizeof(double), "rows are written as a table of doubles");

bool read_field(const std::string& path, Field* field) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file < 0) return false;
  bool read = H5LTget_attribute_int(file, "u", "grid", &field->grid) >= 0 &&
              H5LTget_attribute_double(file, "u", "alpha", &field->alpha) >= 0 &&
              H5LTget_attribute_double(file, "u", "time", &field->time) >= 0;
  hsize_t shape[2] = {0, 0};
  read = read && H5LTget_dataset_info(file, "u", shape, nullptr, nullptr) >= 0 &&
         shape[0] == static_cast<hsize_t>(field->grid) + 1 && shape[1] == shape[0];
  if (read) {
    field->u.resize(shape[0] * shape[1]);
    read = H5LTread_dataset_double(file, "u", field->u.data()) >= 0;
  }
  H5Fclose(file);
  return read;
}

// Integrals by the trapezoidal rule: the boundary is zero, so a plain sum times dx^2.
Row reduce(const Field& field) {
  const size_t n = static_cast<size_t>(field.grid) + 1;
  const double dx = 1.0 / field.grid;
  const double decay = std::exp(-2 * kPi * kPi * field.alpha * field.time);
  double sum = 0;
  double squares = 0;
  for (size_t row = 0; row < n; ++row) {
    for (size_t column = 0; column < n; ++column) {
      const double exact = decay * std::sin(kPi * dx * static_cast<double>(row)) *
                           std::sin(kPi * dx * static_cast<double>(column));
      const double value = field.u[row * n + column];
      sum += value;
      squares += (value - exact) * (value - exact);
    }
  }
  const double max_u = *std::max_element(field.u.begin(), field.u.end());
  return {field.alpha, max_u, sum * dx * dx, std::sqrt(squares) * dx};
}

bool write_rows(const Field& any, const std::vector<Row>& rows, const char* path) {
  const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  if (file < 0) return false;
  const hsize_t shape[2] = {rows.size(), 4};
  // Without the time of its making in it, as in heat.cpp.
  const hid_t untimed = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_obj_track_times(untimed, 0);
  const hid_t space = H5Screate_simple(2, shape, nullptr);
  const hid_t set =
      H5Dcreate2(file, "rows", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, untimed, H5P_DEFAULT);
  const bool written =
      H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, &rows.data()->alpha) >= 0 &&
      H5LTset_attribute_int(file, "rows", "grid", &any.grid, 1) >= 0 &&
      H5LTset_attribute_double(file, "rows", "time", &any.time, 1) >= 0 &&
      H5LTset_attribute_string(file, "rows", "columns", "alpha max_u mean_u l2_error") >= 0;
  H5Dclose(set);
  H5Sclose(space);
  H5Pclose(untimed);
  return H5Fclose(file) >= 0 && written;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: reduce FIELDS.txt ERRORS.h5\n");
    return 2;
  }
  std::ifstream list(argv[1]);
  std::vector<Row> rows;
  Field first;
  for (std::string path; std::getline(list, path);) {
    Field field;
    if (!read_field(path, &field)) {
      std::fprintf(stderr, "reduce: '%s' is not a field file of heat\n", path.c_str());
      return 1;
    }
    if (!rows.empty() && (field.grid != first.grid || field.time != first.time)) {
      std::fprintf(stderr, "reduce: '%s' has grid %d and time %g, the first field %d and %g\n",
                   path.c_str(), field.grid, field.time, first.grid, first.time);
      return 1;
    }
    rows.push_back(reduce(field));
    if (rows.size() == 1) first = field;
  }
  if (rows.empty()) {
    std::fprintf(stderr, "reduce: the list '%s' names no field\n", argv[1]);
    return 1;
  }
  if (!write_rows(first, rows, argv[2])) {
    std::fprintf(stderr, "reduce: cannot write '%s': HDF5 says why above\n", argv[2]);
    return 1;
  }
  return 0;
}
