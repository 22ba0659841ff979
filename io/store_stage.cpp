// The attempt directory: what a child process finds when it starts (Store::stage), and what is kept
// of it when it failed (Store::keep_failed).
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "io/checker.h"
#include "io/store.h"
#include "io/tier.h"
#include "scheduler/check.h"

namespace sluice::io {

using scheduler::AttemptId;
using scheduler::OutputKind;

namespace {

namespace fs = std::filesystem;

constexpr size_t kInputWordsBytesMax = 100'000;
constexpr size_t kWordBytesMax = 131'072;  // the kernel's MAX_ARG_STRLEN, final NUL included

struct StagedInput {
  std::string text;                // $IN_x
  std::string items;               // $IN_x_ITEMS; lists only
  std::vector<std::string> words;  // ${{ in.x.paths }}
};

// Makes one attempt's links and files, then its words and variables. Lives for one call of stage.
class Stager {
 public:
  Stager(const AttemptSpec& spec, const std::vector<std::string>& input_paths,
         const fs::path& attempt, fs::path temporary)
      : spec_(spec),
        input_paths_(input_paths),
        working_(attempt / "w"),
        script_(attempt / "s"),
        temporary_(std::move(temporary)) {}

  [[nodiscard]] Expected<StagedAttempt> stage() {
    StagedAttempt staged;
    staged.working_directory = working_;
    staged.stream_directory = temporary_.parent_path();
    for (const AttemptOutput& output : spec_.outputs) {
      staged.output_paths.push_back(working_ / output.file_name);
    }
    Status done = stage_inputs();
    if (done) done = write_script();
    if (done) done = fill_words(staged);
    if (!done) return done.error();
    fill_environment(staged);
    done = check_sizes(staged);
    if (!done) return done.error();
    return staged;
  }

 private:
  Status stage_inputs() {
    size_t first = 0;
    for (const InputSpec& input : spec_.inputs) {
      SLUICE_ASSERT(first + input.files.size() <= input_paths_.size(), input_paths_.size());
      StagedInput staged;
      Status done = Done{};
      if (input.kind == OutputKind::kValue) {
        for (const InputFile& file : input.files) staged.words.push_back(file.value);
        if (input.is_list) done = write_value_list(input, staged);
      } else {
        done = place_files(input, first, staged);
        if (done && input.is_list) done = write_path_list(input, staged);
      }
      if (!done) return done;
      if (!input.is_list) staged.text = staged.words.front();
      inputs_.push_back(std::move(staged));
      first += input.files.size();
    }
    return Done{};
  }

  // A single file is linked. A list's files are used where they are, unless their path does not fit
  // on a line.
  Status place_files(const InputSpec& input, size_t first, StagedInput& staged) {
    for (size_t i = 0; i < input.files.size(); ++i) {
      const InputFile& file = input.files[i];
      const std::string& target = input_paths_[first + i];
      if (target.empty()) {
        return Error{"input '" + input.name + "': no copy of '" + file.file_name +
                     (file.item.empty() ? "" : "' of [" + file.item + "]") +
                     "' is on this node any more"};
      }
      if (input.is_list && one_line_name(target) == target) {
        staged.words.push_back(target);
        continue;
      }
      std::string name = one_line_name(file.file_name);
      if (input.is_list) name.insert(0, std::to_string(i) + ".");
      const Status linked = link(input.name, name, target);
      if (!linked) return linked;
      staged.words.push_back(working_ / "in" / input.name / name);
    }
    return Done{};
  }

  Status link(const std::string& input, const std::string& name, const std::string& target) {
    const fs::path folder = working_ / "in" / input;
    const Status made = make_folder(folder);
    if (!made) return made;
    return make_link(target, folder / name);
  }

  Status write_path_list(const InputSpec& input, StagedInput& staged) {
    std::string lines;
    std::string items;
    for (size_t i = 0; i < staged.words.size(); ++i) {
      lines += staged.words[i] + "\n";
      items += one_line_name(input.files[i].item) + "\t" + staged.words[i] + "\n";
    }
    return write_lists(input, ".list", lines, items, staged);
  }

  Status write_value_list(const InputSpec& input, StagedInput& staged) {
    std::string lines;
    std::string items;
    for (const InputFile& file : input.files) {
      const std::string json = value_to_json(file.value, input.value_type);
      lines += json + "\n";
      items += one_line_name(file.item) + "\t" + json + "\n";
    }
    return write_lists(input, ".jsonl", lines, items, staged);
  }

  Status write_lists(const InputSpec& input, const char* suffix, const std::string& lines,
                     const std::string& items, StagedInput& staged) {
    staged.text = script_ / (input.name + suffix);
    staged.items = script_ / (input.name + ".items");
    const Status written = write_file(staged.text, lines);
    if (!written) return written;
    return write_file(staged.items, items);
  }

  Status write_script() {
    if (!spec_.words.empty()) return Done{};
    return write_file(script_ / "script", spec_.script);
  }

  Status fill_words(StagedAttempt& staged) const {
    if (spec_.words.empty()) {
      const bool usual = ::access("/bin/bash", X_OK) == 0;
      staged.argv = {usual ? "/bin/bash" : "bash", "-euo", "pipefail", script_ / "script"};
      return Done{};
    }
    for (const Word& word : spec_.words) {
      if (word.size() == 1 && word.front().kind == Piece::Kind::kInputPaths) {
        const Status added = add_input_words(word.front().index, staged);
        if (!added) return added;
      } else {
        staged.argv.push_back(join(word, staged));
      }
    }
    return Done{};
  }

  [[nodiscard]] Status add_input_words(size_t index, StagedAttempt& staged) const {
    const std::vector<std::string>& words = inputs_[index].words;
    size_t bytes = 0;
    for (const std::string& word : words) bytes += word.size() + 1;
    if (bytes > kInputWordsBytesMax) {
      const std::string& name = spec_.inputs[index].name;
      return Error{"input '" + name + "' has " + std::to_string(words.size()) + " paths, " +
                   std::to_string(bytes) + " bytes as words; at most " +
                   std::to_string(kInputWordsBytesMax) + " fit on a command line: use ${{ in." +
                   name + " }}, a file with one path per line, instead of ${{ in." + name +
                   ".paths }}"};
    }
    staged.argv.insert(staged.argv.end(), words.begin(), words.end());
    return Done{};
  }

  [[nodiscard]] std::string join(const Word& word, const StagedAttempt& staged) const {
    std::string text;
    for (const Piece& piece : word) {
      switch (piece.kind) {
        case Piece::Kind::kText:
          text += piece.text;
          break;
        case Piece::Kind::kInput:
          text += inputs_[piece.index].text;
          break;
        case Piece::Kind::kOutput:
          text += staged.output_paths[piece.index];
          break;
        case Piece::Kind::kInputPaths:
          SLUICE_ASSERT(false, piece.index);  // the spec's reader lets it stand alone only
      }
    }
    return text;
  }

  void fill_environment(StagedAttempt& staged) const {
    staged.environment = spec_.environment;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const std::string name = "IN_" + spec_.inputs[i].name;
      staged.environment.emplace_back(name, inputs_[i].text);
      if (spec_.inputs[i].is_list)
        staged.environment.emplace_back(name + "_ITEMS", inputs_[i].items);
    }
    for (size_t i = 0; i < spec_.outputs.size(); ++i) {
      staged.environment.emplace_back("OUT_" + spec_.outputs[i].name, staged.output_paths[i]);
    }
    staged.environment.emplace_back("PIPELINE_DIR", spec_.pipeline_folder);
    staged.environment.emplace_back("TMPDIR", temporary_);
  }

  // The kernel would only say "argument list too long".
  [[nodiscard]] static Status check_sizes(const StagedAttempt& staged) {
    const std::string remedy = "; the system passes at most " + std::to_string(kWordBytesMax - 1) +
                               ": hand over long texts as a file";
    for (size_t i = 0; i < staged.argv.size(); ++i) {
      if (staged.argv[i].size() < kWordBytesMax) continue;
      return Error{"word " + std::to_string(i + 1) + " of the command has " +
                       std::to_string(staged.argv[i].size()) + " bytes" + remedy,
                   E2BIG};
    }
    for (const auto& [name, value] : staged.environment) {
      if (name.size() + 1 + value.size() < kWordBytesMax) continue;
      std::string text = "the variable " + name + " has ";
      text += std::to_string(value.size()) + " bytes";
      return Error{text + remedy, E2BIG};
    }
    return Done{};
  }

  const AttemptSpec& spec_;
  const std::vector<std::string>& input_paths_;
  fs::path working_;
  fs::path script_;
  fs::path temporary_;
  std::vector<StagedInput> inputs_;
};

// What the kept directory of a failed attempt may still take.
struct Keeper {
  fs::path from;
  fs::path to;
  int64_t bytes_left = 0;
  std::string left_out;

  Status keep(const fs::path& path) {
    const fs::path name = path.lexically_relative(from);
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) return Done{};
    if (S_ISDIR(info.st_mode)) return make_folder(to / name);
    if (S_ISLNK(info.st_mode)) {
      std::error_code code;
      fs::copy_symlink(path, to / name, code);
      if (!code || code == std::errc::file_exists) return Done{};
      return system_error("make the link", to / name, code.value());
    }
    if (!S_ISREG(info.st_mode) || info.st_size > bytes_left) {
      left_out += one_line_name(name.string()) + "\t" + kind_of_file(path) + ", " +
                  std::to_string(info.st_size) + " bytes\n";
      return Done{};
    }
    bytes_left -= info.st_size;
    return copy_file(path, to / name, (info.st_mode & 0777U) | 0600U, Sync::kNo);
  }
};

}  // namespace

Expected<StagedAttempt> Store::stage_in(AttemptId attempt, const AttemptSpec& spec,
                                        const std::vector<std::string>& input_paths, bool on_disk) {
  attempts_[attempt].on_disk = on_disk;
  const fs::path folder = attempt_folder(attempt, on_disk);
  const fs::path disk_folder = attempt_folder(attempt, true);
  std::vector<fs::path> folders = {folder, folder / "w", folder / "s"};
  if (!on_disk) folders.push_back(disk_folder);
  folders.push_back(disk_folder / "t");
  for (const fs::path& path : folders) {
    const Status made = make_new_folder(path);
    if (!made) return made.error();
  }
  return Stager(spec, input_paths, folder, disk_folder / "t").stage();
}

Status Store::keep_failed(AttemptId attempt, const fs::path& to, int64_t bytes_max) {
  Keeper keeper{working_directory(attempt), to, bytes_max, ""};
  std::vector<fs::path> entries;
  std::error_code code;
  fs::recursive_directory_iterator entry(keeper.from, fs::directory_options::skip_permission_denied,
                                         code);
  for (; !code && entry != fs::recursive_directory_iterator(); entry.increment(code)) {
    entries.push_back(entry->path());
  }
  std::sort(entries.begin(), entries.end());  // the same files are kept each time
  const Status made = make_folder(to);
  if (!made) return made;
  for (const fs::path& path : entries) {
    const Status kept = keeper.keep(path);
    if (!kept) return kept;
  }
  return keeper.left_out.empty() ? Status(Done{}) : write_file(to / "LEFT_OUT", keeper.left_out);
}

}  // namespace sluice::io
