// The whole study: a table, a picture, and the order of the scheme.
//
//   report ERRORS.txt FIELDS.txt TABLE.csv PICTURE.svg ORDER
//
// ERRORS.txt names one file of `reduce` per line, one per grid; FIELDS.txt the field files of
// `heat`. TABLE.csv gets one line per grid and alpha; PICTURE.svg a field of the finest
// grid beside the error curves; ORDER the order observed between the two finest grids, the mean
// over all alphas. Exit status: 0 written, 1 could not read or write, 2 wrong arguments.
#include <hdf5.h>
#include <hdf5_hl.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace {

struct Row {
  double alpha;
  double max_u;
  double mean_u;
  double l2_error;
};

struct Grid {
  int cells = 0;
  double time = 0;
  std::vector<Row> rows;  // by alpha, rising
};

struct Field {
  int cells = 0;
  double alpha = 0;
  double time = 0;
  std::vector<double> u;
};

std::string text(const char* format, ...) __attribute__((format(printf, 1, 2)));
std::string text(const char* format, ...) {
  char buffer[512];
  va_list values;
  va_start(values, format);
  std::vsnprintf(buffer, sizeof buffer, format, values);
  va_end(values);
  return buffer;
}

// ---------------------------------------------------------------- input

std::vector<std::string> read_lines(const char* path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

bool read_grid(const std::string& path, Grid* grid) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file < 0) return false;
  hsize_t shape[2] = {0, 0};
  bool read = H5LTget_attribute_int(file, "rows", "grid", &grid->cells) >= 0 &&
              H5LTget_attribute_double(file, "rows", "time", &grid->time) >= 0 &&
              H5LTget_dataset_info(file, "rows", shape, nullptr, nullptr) >= 0 && shape[1] == 4;
  if (read) {
    grid->rows.resize(shape[0]);
    read = H5LTread_dataset_double(file, "rows", &grid->rows.data()->alpha) >= 0;
  }
  H5Fclose(file);
  std::sort(grid->rows.begin(), grid->rows.end(),
            [](const Row& a, const Row& b) { return a.alpha < b.alpha; });
  return read;
}

bool read_field(const std::string& path, Field* field) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file < 0) return false;
  hsize_t shape[2] = {0, 0};
  bool read = H5LTget_attribute_int(file, "u", "grid", &field->cells) >= 0 &&
              H5LTget_attribute_double(file, "u", "alpha", &field->alpha) >= 0 &&
              H5LTget_attribute_double(file, "u", "time", &field->time) >= 0 &&
              H5LTget_dataset_info(file, "u", shape, nullptr, nullptr) >= 0;
  if (read) {
    field->u.resize(shape[0] * shape[1]);
    read = H5LTread_dataset_double(file, "u", field->u.data()) >= 0;
  }
  H5Fclose(file);
  return read;
}

// The field to show: the finest grid, and there the smallest alpha, which kept the most heat.
bool shown_before(const Field& a, const Field& b) {
  return a.cells != b.cells ? a.cells > b.cells : a.alpha < b.alpha;
}

// ---------------------------------------------------------------- the table

double order_between(const Grid& coarse, const Grid& fine, size_t row) {
  return std::log(coarse.rows[row].l2_error / fine.rows[row].l2_error) /
         std::log(static_cast<double>(fine.cells) / coarse.cells);
}

std::string make_table(const std::vector<Grid>& grids) {
  std::string table = "grid,alpha,time,max_u,mean_u,l2_error,order\n";
  for (size_t g = 0; g < grids.size(); ++g) {
    for (size_t r = 0; r < grids[g].rows.size(); ++r) {
      const Row& row = grids[g].rows[r];
      table += text("%d,%.10g,%.10g,%.10g,%.10g,%.10g,", grids[g].cells, row.alpha, grids[g].time,
                    row.max_u, row.mean_u, row.l2_error);
      if (g > 0) table += text("%.3f", order_between(grids[g - 1], grids[g], r));
      table += '\n';
    }
  }
  return table;
}

std::string make_order(const std::vector<Grid>& grids) {
  if (grids.size() < 2) return "nan\n";
  const Grid& fine = grids.back();
  double sum = 0;
  for (size_t r = 0; r < fine.rows.size(); ++r) sum += order_between(grids.end()[-2], fine, r);
  return text("%.3f\n", sum / static_cast<double>(fine.rows.size()));
}

// ---------------------------------------------------------------- the picture

// Dark violet to pale yellow, lightness rising evenly: readable in grey and by the colour-blind.
std::string colour(double fraction) {
  static const std::array<std::array<double, 3>, 6> stops{{{20, 11, 52},
                                                           {87, 16, 110},
                                                           {158, 40, 100},
                                                           {222, 74, 55},
                                                           {250, 150, 20},
                                                           {250, 240, 150}}};
  const double position = std::clamp(fraction, 0.0, 1.0) * (stops.size() - 1);
  const size_t low = std::min(static_cast<size_t>(position), stops.size() - 2);
  const double weight = position - static_cast<double>(low);
  std::array<int, 3> rgb{};
  for (size_t i = 0; i < 3; ++i) {
    rgb[i] =
        static_cast<int>(std::lround(stops[low][i] + weight * (stops[low + 1][i] - stops[low][i])));
  }
  return text("#%02x%02x%02x", static_cast<unsigned>(rgb[0]), static_cast<unsigned>(rgb[1]),
              static_cast<unsigned>(rgb[2]));
}

std::string label(double x, double y, const char* anchor, const std::string& words) {
  return text("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor) + words +
         "</text>\n";
}

std::string line(double x1, double y1, double x2, double y2, const char* style) {
  return text("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x1, y1, x2,
              y2, style);
}

constexpr double kTop = 70;
constexpr double kSide = 360;  // of the heat map, and height of the curves
constexpr double kMapLeft = 60;
constexpr double kCurveLeft = 600;
constexpr double kCurveWidth = 400;
constexpr size_t kPixels = 120;  // of the heat map, along each side
constexpr int kLevels = 24;

// One path per colour level, made of horizontal runs of pixels of that level.
std::string heat_pixels(const Field& field, double largest) {
  const size_t n = static_cast<size_t>(field.cells) + 1;
  auto level_at = [&](size_t x, size_t y) {
    const size_t column = (2 * x + 1) * static_cast<size_t>(field.cells) / (2 * kPixels);
    const size_t row = (2 * y + 1) * static_cast<size_t>(field.cells) / (2 * kPixels);
    const double fraction = field.u[row * n + column] / largest;
    return std::clamp(static_cast<int>(fraction * kLevels), 0, kLevels - 1);
  };
  std::array<std::string, kLevels> paths;
  for (size_t y = 0; y < kPixels; ++y) {
    for (size_t x = 0; x < kPixels;) {
      const int level = level_at(x, y);
      size_t end = x + 1;
      while (end < kPixels && level_at(end, y) == level) ++end;
      paths[static_cast<size_t>(level)] +=
          text("M%zu %zuh%zuv1h-%zuz", x, kPixels - 1 - y, end - x, end - x);
      x = end;
    }
  }
  std::string out = text(
      "<g transform=\"translate(%g %g) scale(%g)\" "
      "shape-rendering=\"crispEdges\">\n",
      kMapLeft, kTop, kSide / kPixels);
  for (int level = 0; level < kLevels; ++level) {
    const std::string fill = colour((level + 0.5) / kLevels);
    out += "<path fill=\"" + fill + "\" d=\"" + paths[static_cast<size_t>(level)] + "\"/>\n";
  }
  return out + "</g>\n";
}

std::string heat_map(const Field& field) {
  const double largest = *std::max_element(field.u.begin(), field.u.end());
  const double bottom = kTop + kSide;
  std::string out = heat_pixels(field, largest);
  out += text("<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" class=\"frame\"/>\n", kMapLeft,
              kTop, kSide, kSide);
  for (int tick = 0; tick <= 4; ++tick) {
    const double at = tick / 4.0;
    out += label(kMapLeft + at * kSide, bottom + 18, "middle", text("%g", at));
    out += label(kMapLeft - 8, bottom - at * kSide + 4, "end", text("%g", at));
  }
  out += label(kMapLeft + kSide / 2, bottom + 40, "middle", "x");
  out += label(kMapLeft - 42, kTop + kSide / 2 + 4, "middle", "y");
  const double bar = kMapLeft + kSide + 20;
  for (int level = 0; level < kLevels; ++level) {
    out += text(
        "<rect x=\"%g\" y=\"%.2f\" width=\"16\" height=\"%.2f\" fill=\"%s\" "
        "shape-rendering=\"crispEdges\"/>\n",
        bar, bottom - (level + 1) * kSide / kLevels, kSide / kLevels,
        colour((level + 0.5) / kLevels).c_str());
  }
  for (int tick = 0; tick <= 4; ++tick) {
    out += label(bar + 22, bottom - tick / 4.0 * kSide + 4, "start",
                 text("%.2f", largest * tick / 4.0));
  }
  return out + "<g class=\"title\">" +
         label(kMapLeft, kTop - 18, "start",
               text("u at t = %g, alpha = %g, grid %d", field.time, field.alpha, field.cells)) +
         "</g>\n";
}

// The frame of the error curves: both axes logarithmic.
struct Axes {
  double x_low, x_high;  // grid cells
  int y_low, y_high;     // decades of the error
  double x(double cells) const {
    return kCurveLeft + kCurveWidth * std::log(cells / x_low) / std::log(x_high / x_low);
  }
  double y(double error) const {
    return kTop + kSide * (y_high - std::log10(error)) / (y_high - y_low);
  }
};

Axes make_axes(const std::vector<Grid>& grids) {
  double least = 1;
  double most = 0;
  for (const Grid& grid : grids) {
    for (const Row& row : grid.rows) {
      least = std::min(least, std::max(row.l2_error, 1e-16));
      most = std::max(most, row.l2_error);
    }
  }
  Axes axes{grids.front().cells * 0.9, grids.back().cells * 1.1, 0, 0};
  axes.y_low = static_cast<int>(std::floor(std::log10(least)));
  axes.y_high =
      std::max(static_cast<int>(std::ceil(std::log10(std::max(most, 1e-16)))), axes.y_low + 1);
  return axes;
}

std::string draw_axes(const std::vector<Grid>& grids, const Axes& axes) {
  const double bottom = kTop + kSide;
  std::string out;
  for (int decade = axes.y_low; decade <= axes.y_high; ++decade) {
    const double y = axes.y(std::pow(10.0, decade));
    out += line(kCurveLeft, y, kCurveLeft + kCurveWidth, y, "raster");
    out += label(kCurveLeft - 8, y + 4, "end",
                 text("10<tspan dy=\"-6\" font-size=\"9\">%d</tspan>", decade));
  }
  for (const Grid& grid : grids) {
    const double x = axes.x(grid.cells);
    out += line(x, kTop, x, bottom, "raster");
    out += label(x, bottom + 18, "middle", text("%d", grid.cells));
  }
  out += text("<rect x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" class=\"frame\"/>\n", kCurveLeft,
              kTop, kCurveWidth, kSide);
  out += label(kCurveLeft + kCurveWidth / 2, bottom + 40, "middle", "grid cells along each side");
  return out;
}

// A dashed triangle side that falls by four where the grid doubles.
std::string second_order(const std::vector<Grid>& grids, const Axes& axes) {
  double start = 0;
  for (const Row& row : grids.front().rows) start = std::max(start, row.l2_error);
  start = std::min(start * 1.6, std::pow(10.0, axes.y_high));
  const double from = grids.front().cells;
  const double to = grids.back().cells;
  const double end = start * (from / to) * (from / to);
  return line(axes.x(from), axes.y(start), axes.x(to), axes.y(end), "slope") +
         label(axes.x(std::sqrt(from * to)) + 8, axes.y(start * from / to) - 8, "start",
               "second order");
}

std::string error_curves(const std::vector<Grid>& grids, const std::string& order) {
  const Axes axes = make_axes(grids);
  std::string out = draw_axes(grids, axes) + second_order(grids, axes);
  const size_t count = grids.front().rows.size();
  for (size_t r = 0; r < count; ++r) {
    const std::string ink = colour(0.1 + 0.7 * static_cast<double>(r) / static_cast<double>(count));
    std::string points;
    std::string dots;
    for (const Grid& grid : grids) {
      const double x = axes.x(grid.cells);
      const double y = axes.y(std::max(grid.rows[r].l2_error, 1e-16));
      points += text("%.1f,%.1f ", x, y);
      dots += text("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\"/>\n", x, y, ink.c_str());
    }
    out += "<polyline points=\"" + points + "\" class=\"curve\" stroke=\"" + ink + "\"/>\n" + dots;
    const double y = kTop + kSide - 14 - 18 * static_cast<double>(count - 1 - r);
    out += text("<rect x=\"%g\" y=\"%.1f\" width=\"18\" height=\"4\" fill=\"%s\"/>\n",
                kCurveLeft + 14, y - 6, ink.c_str());
    out += label(kCurveLeft + 40, y, "start", text("alpha = %g", grids.front().rows[r].alpha));
  }
  return out + "<g class=\"title\">" +
         label(kCurveLeft, kTop - 18, "start", "L2 error, observed order " + order) + "</g>\n";
}

std::string make_picture(const Field& field, const std::vector<Grid>& grids, std::string order) {
  order.pop_back();  // its newline
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1040\" height=\"500\" "
         "viewBox=\"0 0 1040 500\">\n"
         "<style>text{font:12px sans-serif;fill:#333}.title text{font-size:15px}"
         ".frame{fill:none;stroke:#555}.raster{stroke:#ddd}.curve{fill:none;stroke-width:2}"
         ".slope{stroke:#888;stroke-dasharray:5 4}</style>\n"
         "<rect width=\"1040\" height=\"500\" fill=\"white\"/>\n" +
         heat_map(field) + error_curves(grids, order) + "</svg>\n";
}

// ---------------------------------------------------------------- main

bool write_text(const char* path, const std::string& content) {
  std::ofstream file(path, std::ios::binary);
  file << content;
  file.close();
  if (!file) std::fprintf(stderr, "report: cannot write '%s'\n", path);
  return static_cast<bool>(file);
}

bool read_grids(const char* list, std::vector<Grid>* grids) {
  for (const std::string& path : read_lines(list)) {
    if (!read_grid(path, &grids->emplace_back()) || grids->back().rows.empty()) {
      std::fprintf(stderr, "report: '%s' is not a file of reduce\n", path.c_str());
      return false;
    }
  }
  std::sort(grids->begin(), grids->end(),
            [](const Grid& a, const Grid& b) { return a.cells < b.cells; });
  for (const Grid& grid : *grids) {
    if (grid.rows.size() != grids->front().rows.size()) {
      std::fprintf(stderr, "report: grid %d has %zu alphas, grid %d has %zu; expected the same\n",
                   grid.cells, grid.rows.size(), grids->front().cells, grids->front().rows.size());
      return false;
    }
  }
  if (grids->empty()) std::fprintf(stderr, "report: the list '%s' names no file\n", list);
  return !grids->empty();
}

bool read_shown_field(const char* list, Field* shown) {
  for (const std::string& path : read_lines(list)) {
    Field field;
    if (!read_field(path, &field)) {
      std::fprintf(stderr, "report: '%s' is not a field file of heat\n", path.c_str());
      return false;
    }
    if (shown->u.empty() || shown_before(field, *shown)) *shown = std::move(field);
  }
  if (shown->u.empty()) std::fprintf(stderr, "report: the list '%s' names no field\n", list);
  return !shown->u.empty();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: report ERRORS.txt FIELDS.txt TABLE.csv PICTURE.svg ORDER\n");
    return 2;
  }
  std::vector<Grid> grids;
  Field shown;
  if (!read_grids(argv[1], &grids) || !read_shown_field(argv[2], &shown)) return 1;
  const std::string order = make_order(grids);
  const bool written = write_text(argv[3], make_table(grids)) &&
                       write_text(argv[4], make_picture(shown, grids, order)) &&
                       write_text(argv[5], order);
  return written ? 0 : 1;
}
