// Directories for tests: a model of one (path -> what is there), random ones, the model written to
// disk, and read back with nothing but std::filesystem. For tests only.
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/temporary_folder.h"

namespace sluice::test {

// "d" a directory, "l<target>" a link, "f<bytes>" and "x<bytes>" a file, the latter executable.
using TreeModel = std::map<std::string, std::string>;

inline void write_tree(const std::filesystem::path& root, const TreeModel& model) {
  namespace fs = std::filesystem;
  fs::create_directory(root);
  for (const auto& [path, what] : model) {
    if (what[0] == 'd') {
      fs::create_directory(root / path);
    } else if (what[0] == 'l') {
      fs::create_symlink(what.substr(1), root / path);
    } else {
      write_text(root / path, what.substr(1));
      ::chmod((root / path).c_str(), what[0] == 'x' ? 0744 : 0640);
    }
  }
}

inline TreeModel read_tree(const std::filesystem::path& root) {
  namespace fs = std::filesystem;
  TreeModel model;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string path = entry.path().lexically_relative(root).string();
    if (entry.is_symlink()) {
      model[path] = "l" + fs::read_symlink(entry.path()).string();
    } else if (entry.is_directory()) {
      model[path] = "d";
    } else {
      const bool executable =
          (entry.status().permissions() & fs::perms::owner_exec) != fs::perms::none;
      model[path] = (executable ? "x" : "f") + read_text(entry.path());
    }
  }
  return model;
}

// At most `entries` of them, some deep, some empty, with names that sort oddly.
inline TreeModel random_tree(std::mt19937_64& random, size_t entries) {
  const auto below = [&random](size_t n) { return static_cast<size_t>(random() % n); };
  const std::vector<std::string> names = {"a",   "a-b", "a.b", "B",    "0", "new\nline", "\xff\x01",
                                          "a b", "-x",  "é",   "run:", "*", "~"};
  std::vector<std::string> folders = {""};
  TreeModel model;
  for (size_t i = 0; i < entries; ++i) {
    const std::string& folder = folders[below(folders.size())];
    const std::string path = folder + names[below(names.size())];
    if (model.contains(path)) continue;
    const size_t kind = below(10);
    if (kind < 3) {
      model[path] = "d";
      folders.push_back(path + "/");
    } else if (kind < 4) {
      model[path] = "l" + names[below(names.size())];  // beside it; perhaps nothing is there
    } else {
      std::string bytes(below(4) == 0 ? 0 : below(kind == 9 ? 300'000 : 200), '\0');
      std::generate(bytes.begin(), bytes.end(), [&random] { return static_cast<char>(random()); });
      model[path] = (below(4) == 0 ? "x" : "f") + bytes;
    }
  }
  return model;
}

}  // namespace sluice::test
