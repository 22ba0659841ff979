// One case of the study: the heat equation  u_t = alpha (u_xx + u_yy)  on the unit square, zero on
// the boundary, sin(pi x) sin(pi y) at the start, advanced to TIME by the explicit five-point
// scheme. A plain serial program: it knows nothing of the pipeline that starts it.
//
//   heat GRID ALPHA TIME FIELD.h5
//
// FIELD.h5 gets the dataset `u`, (GRID+1) x (GRID+1) values, row by row in y, with the attributes
// grid, alpha, time and dx. Exit status: 0 written, 1 could not write, 2 wrong arguments.
#include <hdf5.h>
#include <hdf5_hl.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

const double kPi = std::acos(-1.0);

// alpha dt / dx^2. The scheme is stable up to 1/4, and of second order in dx at any fixed ratio.
const double kStepRatio = 0.2;

struct Case {
  int grid;  // cells along each side
  double alpha;
  double time;
  double dx() const { return 1.0 / grid; }
  size_t points() const { return static_cast<size_t>(grid) + 1; }  // along each side
};

bool parse_positive(const char* text, double* value) {
  char* end = nullptr;
  *value = std::strtod(text, &end);
  return end != text && *end == '\0' && std::isfinite(*value) && *value > 0;
}

bool parse_case(char** arguments, Case* result) {
  double grid = 0;
  if (!parse_positive(arguments[0], &grid) || grid != std::floor(grid) || grid < 2 || grid > 1e4) {
    std::fprintf(stderr, "heat: GRID is '%s', expected a whole number from 2 to 10000\n",
                 arguments[0]);
    return false;
  }
  result->grid = static_cast<int>(grid);
  if (!parse_positive(arguments[1], &result->alpha)) {
    std::fprintf(stderr, "heat: ALPHA is '%s', expected a number above 0\n", arguments[1]);
    return false;
  }
  if (!parse_positive(arguments[2], &result->time)) {
    std::fprintf(stderr, "heat: TIME is '%s', expected a number above 0\n", arguments[2]);
    return false;
  }
  return true;
}

std::vector<double> initial_field(const Case& c) {
  const size_t n = c.points();
  std::vector<double> u(n * n, 0.0);
  for (size_t row = 1; row + 1 < n; ++row) {
    for (size_t column = 1; column + 1 < n; ++column) {
      u[row * n + column] = std::sin(kPi * c.dx() * static_cast<double>(row)) *
                            std::sin(kPi * c.dx() * static_cast<double>(column));
    }
  }
  return u;
}

std::vector<double> solve(const Case& c) {
  // A whole number of equal steps ends exactly at `time`.
  const double steps = std::ceil(c.alpha * c.time / (kStepRatio * c.dx() * c.dx()));
  const double ratio = c.alpha * (c.time / steps) / (c.dx() * c.dx());
  const size_t n = c.points();
  std::vector<double> u = initial_field(c);
  std::vector<double> next = u;
  for (long step = 0; step < static_cast<long>(steps); ++step) {
    for (size_t row = 1; row + 1 < n; ++row) {
      const double* below = &u[(row - 1) * n];
      const double* here = &u[row * n];
      const double* above = &u[(row + 1) * n];
      double* out = &next[row * n];
      for (size_t i = 1; i + 1 < n; ++i) {
        out[i] = here[i] + ratio * (here[i - 1] + here[i + 1] + below[i] + above[i] - 4 * here[i]);
      }
    }
    u.swap(next);
  }
  return u;
}

bool write_field(const Case& c, const std::vector<double>& u, const char* path) {
  const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  if (file < 0) return false;
  const hsize_t shape[2] = {c.points(), c.points()};
  const double dx = c.dx();
  // Without the time of its making in it, a file that is computed again has the same bytes.
  const hid_t untimed = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_obj_track_times(untimed, 0);
  const hid_t space = H5Screate_simple(2, shape, nullptr);
  const hid_t set =
      H5Dcreate2(file, "u", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, untimed, H5P_DEFAULT);
  const bool written =
      H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, u.data()) >= 0 &&
      H5LTset_attribute_int(file, "u", "grid", &c.grid, 1) >= 0 &&
      H5LTset_attribute_double(file, "u", "alpha", &c.alpha, 1) >= 0 &&
      H5LTset_attribute_double(file, "u", "time", &c.time, 1) >= 0 &&
      H5LTset_attribute_double(file, "u", "dx", &dx, 1) >= 0;
  H5Dclose(set);
  H5Sclose(space);
  H5Pclose(untimed);
  return H5Fclose(file) >= 0 && written;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr, "usage: heat GRID ALPHA TIME FIELD.h5\n");
    return 2;
  }
  Case c{};
  if (!parse_case(argv + 1, &c)) return 2;
  if (!write_field(c, solve(c), argv[4])) {
    std::fprintf(stderr, "heat: cannot write '%s': HDF5 says why above\n", argv[4]);
    return 1;
  }
  return 0;
}
