#include "io/item_sources.h"

#include <fnmatch.h>

#include <algorithm>
#include <fstream>
#include <system_error>
#include <utility>

namespace sluice::io {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kAnyFolders = "**";

bool is_blank(const std::string& line) {
  return line.find_first_not_of(" \t") == std::string::npos;
}

// The fault that makes a line no item, or "".
std::string line_fault(const std::string& line) {
  if (is_blank(line)) {
    return "is blank, but every line is an item";
  }
  return line.find('\0') == std::string::npos ? "" : "has a NUL byte, so this is no text file";
}

bool has_wildcard(const std::string& part) {
  return part.find_first_of("*?[\\") != std::string::npos;
}

bool name_matches(const std::string& part, const std::string& name) {
  return ::fnmatch(part.c_str(), name.c_str(), FNM_PERIOD) == 0;
}

bool is_hidden(const std::string& name) { return !name.empty() && name[0] == '.'; }

std::vector<std::string> names_of_path(const fs::path& path) {
  std::vector<std::string> names;
  for (const fs::path& name : path) {
    if (!name.empty() && name != "/" && name != ".") {
      names.push_back(name.string());
    }
  }
  return names;
}

// Goes down the folders along the parts of a pattern. Paths are kept as the items show them.
class GlobWalk {
 public:
  GlobWalk(const std::vector<std::string>& parts, fs::path folder, const fs::path& left_out)
      : parts_(parts), folder_(std::move(folder)), left_out_(left_out) {}

  Expected<std::vector<std::string>> run(const std::string& top) {
    walk(top, 0);
    if (!error_.message.empty()) {
      return error_;
    }
    std::sort(found_.begin(), found_.end());  // several ways through `**` may lead to one file
    found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
    return std::move(found_);
  }

 private:
  static std::string below(const std::string& base, const std::string& name) {
    return base.empty() || base.back() == '/' ? base + name : base + "/" + name;
  }

  void walk(const std::string& base, size_t part) {
    if (part == parts_.size() || is_left_out(base)) {
      return;
    }
    if (parts_[part] == kAnyFolders) {
      walk(base, part + 1);
      each_entry(base, [&](const fs::directory_entry& entry, const std::string& name) {
        std::error_code ignored;
        if (!is_hidden(name) && !entry.is_symlink(ignored) && entry.is_directory(ignored)) {
          walk(below(base, name), part);
        }
      });
    } else if (!has_wildcard(parts_[part])) {
      take(fs::directory_entry(), below(base, parts_[part]), part);
    } else {
      each_entry(base, [&](const fs::directory_entry& entry, const std::string& name) {
        if (name_matches(parts_[part], name)) {
          take(entry, below(base, name), part);
        }
      });
    }
  }

  // `entry` knows the file's type already where a folder was read; it is empty where the pattern
  // gives the name.
  void take(const fs::directory_entry& entry, const std::string& path, size_t part) {
    std::error_code ignored;
    const bool read = !entry.path().empty();
    const bool is_folder =
        read ? entry.is_directory(ignored) : fs::is_directory(folder_ / path, ignored);
    if (is_folder) {
      walk(path, part + 1);
    } else if (part + 1 == parts_.size() &&
               (read ||
                fs::symlink_status(folder_ / path, ignored).type() != fs::file_type::not_found)) {
      found_.push_back(path[0] == '-' ? "./" + path : path);
    }
  }

  template <class Visit>
  void each_entry(const std::string& base, const Visit& visit) {
    std::error_code code;
    fs::directory_iterator entry(folder_ / base, code);
    for (; !code && entry != fs::directory_iterator(); entry.increment(code)) {
      visit(*entry, entry->path().filename().string());
    }
    if (code && code != std::errc::no_such_file_or_directory && error_.message.empty()) {
      error_ =
          Error{"the folder " + (folder_ / base).string() + " cannot be read: " + code.message(),
                code.value()};
    }
  }

  [[nodiscard]] bool is_left_out(const std::string& base) const {
    std::error_code ignored;
    const fs::path path = folder_ / base;
    return path.filename() == left_out_.filename() && !left_out_.empty() &&
           fs::equivalent(path, left_out_, ignored);
  }

  const std::vector<std::string>& parts_;
  fs::path folder_;
  const fs::path& left_out_;
  std::vector<std::string> found_;
  Error error_;
};

}  // namespace

Expected<LineList> read_line_list(const fs::path& file) {
  std::error_code code;
  const fs::file_status status = fs::status(file, code);
  if (status.type() == fs::file_type::not_found) {
    return Error{"there is no file " + file.string(), ENOENT};
  }
  std::ifstream in(file, std::ios::binary);
  if (!fs::is_regular_file(status) || !in) {
    return Error{
        file.string() + (fs::is_regular_file(status) ? " cannot be read" : " is no regular file"),
        EINVAL};
  }
  LineList list;
  std::string line;
  while (std::getline(in, line)) {
    if (list.lines.empty() && line.compare(0, kByteOrderMark.size(), kByteOrderMark) == 0) {
      line.erase(0, kByteOrderMark.size());
    }
    if (!line.empty() && line.back() == '\r') {
      line.pop_back();
      list.carriage_returns = true;
    }
    list.lines.push_back(line);
  }
  if (in.bad()) {
    return Error{file.string() + " cannot be read to its end", EIO};
  }
  while (!list.lines.empty() && is_blank(list.lines.back())) {
    list.lines.pop_back();
  }
  for (size_t i = 0; i < list.lines.size(); ++i) {
    if (const std::string fault = line_fault(list.lines[i]); !fault.empty()) {
      return Error{"line " + std::to_string(i + 1) + " of " + file.string() + " " + fault, 0};
    }
  }
  return list;
}

GlobPattern::GlobPattern(const std::string& pattern)
    : absolute_(!pattern.empty() && pattern[0] == '/') {
  for (std::string& name : names_of_path(pattern)) {
    if (name != kAnyFolders || parts_.empty() || parts_.back() != kAnyFolders) {
      parts_.push_back(std::move(name));
    }
  }
  if (!parts_.empty() && parts_.back() == kAnyFolders) {
    parts_.emplace_back("*");
  }
}

Expected<std::vector<std::string>> GlobPattern::files(const fs::path& folder,
                                                      const fs::path& left_out) const {
  return GlobWalk(parts_, folder, left_out).run(absolute_ ? "/" : "");
}

bool GlobPattern::reaches(const fs::path& folder, const fs::path& directory) const {
  const std::vector<std::string> names = names_of_path(
      absolute_ ? directory : directory.lexically_normal().lexically_relative(folder));
  // reached[p]: the first p parts can stand for the names so far.
  std::vector<bool> reached(parts_.size() + 1, false);
  reached[0] = true;
  const auto skip_any = [&] {
    for (size_t p = 0; p < parts_.size(); ++p) {
      if (reached[p] && parts_[p] == kAnyFolders) {
        reached[p + 1] = true;
      }
    }
  };
  for (const std::string& name : names) {
    skip_any();
    std::vector<bool> next(parts_.size() + 1, false);
    for (size_t p = 0; p < parts_.size(); ++p) {
      if (reached[p] && parts_[p] == kAnyFolders && !is_hidden(name)) {
        next[p] = true;
      } else if (reached[p] && parts_[p] != kAnyFolders && name_matches(parts_[p], name)) {
        next[p + 1] = true;
      }
    }
    reached = std::move(next);
  }
  return std::find(reached.begin(), reached.end() - 1, true) != reached.end() - 1;
}

}  // namespace sluice::io
