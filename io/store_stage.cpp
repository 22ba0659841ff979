// The attempt directory: what a child process finds when it starts (Store::stage), and what is kept
// of it when it failed (Store::keep_failed).
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "io/checker.h"
#include "io/command_size.h"
#include "io/pipeline.h"
#include "io/store.h"
#include "io/tier.h"
#include "scheduler/check.h"

namespace sluice::io {

using scheduler::AttemptId;
using scheduler::OutputKind;

namespace {

namespace fs = std::filesystem;

// Runs the script that is $0. It is sourced only so that a trap of ours can note the line at which
// `set -e` ends it: $0, $LINENO and BASH_SOURCE are as if bash had been given the file itself.
constexpr const char* kScriptRunner =
    R"(trap '[[ $- != *e* ]] || printf "%s\n" "$LINENO" 2>/dev/null >"${0%/*}/line"' ERR; . "$0")";
// Runs the setup that is $0, then the command that is given, in the environment that setup left.
// Setup sees no arguments; what it prints goes to the log, it cannot take the command's stdin, and
// where it goes to is not where the command starts.
constexpr const char* kSetupRunner = R"(sluice_command=("$@"); sluice_folder=$PWD; set --
exec {sluice_stdin}<&0 {sluice_stdout}>&1 </dev/null >&2
. "$0"
: >"${0%/*}/setup_state"
exec <&"$sluice_stdin" >&"$sluice_stdout" {sluice_stdin}<&- {sluice_stdout}>&-
cd -- "$sluice_folder"
exec -- "${sluice_command[@]}")";

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
    staged.working_directory = spec_.in_pipeline_folder ? spec_.pipeline_folder : working_.string();
    staged.stream_directory = temporary_.parent_path();
    for (const AttemptOutput& output : spec_.outputs) {
      staged.output_paths.push_back(working_ / output.file_name);
    }
    Status done = stage_inputs();
    if (done) done = redirect(staged);
    if (done) done = write_scripts(staged);
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
      } else if (!input.placed_as.empty()) {
        done = place_at_top(input, first, staged);
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
      if (target.empty()) return no_copy(input, file);
      if (input.is_list && one_line_name(target) == target) {
        staged.words.push_back(target);
        continue;
      }
      std::string name = one_line_name(file.file_name);
      if (input.is_list) name.insert(0, std::to_string(i) + ".");
      const Status linked = link(input.name, name, target);
      if (!linked) return linked;
      // Of a directory the path of itself: find, cp -r and du do not follow a link that they are
      // given.
      const bool in_place = input.kind == OutputKind::kDir && !input.is_list;
      staged.words.push_back(in_place ? target : (working_ / "in" / input.name / name).string());
    }
    return Done{};
  }

  // as: the reader lets only single inputs have it.
  Status place_at_top(const InputSpec& input, size_t first, StagedInput& staged) {
    SLUICE_ASSERT(input.files.size() == 1, input.files.size());
    const std::string& target = input_paths_[first];
    if (target.empty()) return no_copy(input, input.files.front());
    staged.words.push_back(working_ / input.placed_as);
    return make_link(target, working_ / input.placed_as);
  }

  static Error no_copy(const InputSpec& input, const InputFile& file) {
    return Error{"input '" + input.name + "': no copy of '" + file.file_name +
                 (file.item.empty() ? "" : "' of [" + file.item + "]") +
                 "' is on this node any more"};
  }

  Status link(const std::string& input, const std::string& name, const std::string& target) {
    const fs::path folder = working_ / "in" / input;
    const Status made = make_folder(folder);
    if (!made) return made;
    return make_link(target, folder / name);
  }

  Status write_path_list(const InputSpec& input, StagedInput& staged) {
    std::string lines;
    std::string items = items_header(input, "path");
    for (size_t i = 0; i < staged.words.size(); ++i) {
      lines += staged.words[i] + "\n";
      items += items_line(input, i, staged.words[i]);
    }
    return write_lists(input, ".list", lines, items, staged);
  }

  Status write_value_list(const InputSpec& input, StagedInput& staged) {
    std::string lines;
    std::string items = items_header(input, "value");
    for (size_t i = 0; i < input.files.size(); ++i) {
      const std::string json = value_to_json(input.files[i].value, input.value_type);
      lines += json + "\n";
      items += items_line(input, i, json);
    }
    return write_lists(input, ".jsonl", lines, items, staged);
  }

  // "grid TAB alpha TAB path", then a line for each item.
  static std::string items_header(const InputSpec& input, const char* last) {
    std::string line;
    for (const std::string& key : input.keys) line += key + "\t";
    return line + last + "\n";
  }

  static std::string items_line(const InputSpec& input, size_t index, const std::string& last) {
    std::string line;
    for (const std::string& value : item_values(input.files[index].item)) {
      line += one_line_name(value) + "\t";
    }
    return line + last + "\n";
  }

  // The values in "grid=64,alpha=0.1"; ',', '=', '%' within a value are %XX there.
  static std::vector<std::string> item_values(const std::string& item) {
    std::vector<std::string> values;
    for (size_t begin = 0; begin < item.size();) {
      const size_t end = std::min(item.find(',', begin), item.size());
      const size_t equals = std::min(item.find('=', begin), end - 1);
      values.push_back(percent_decoded(item.substr(equals + 1, end - equals - 1)));
      begin = end + 1;
    }
    return values;
  }

  // Into s/, which only those have that need it.
  Status write_own(const fs::path& file, std::string_view text) const {
    const Status made = make_folder(script_);
    if (!made) return made;
    return write_file(file, text);
  }

  Status write_lists(const InputSpec& input, const char* suffix, const std::string& lines,
                     const std::string& items, StagedInput& staged) {
    staged.text = script_ / (input.name + suffix);
    staged.items = script_ / (input.name + ".items");
    const Status written = write_own(staged.text, lines);
    if (!written) return written;
    return write_own(staged.items, items);
  }

  // A list is read as its list file, a value as a text file.
  Status redirect(StagedAttempt& staged) const {
    if (spec_.stdout_output != kNoIndex) {
      staged.stdout_path = staged.output_paths[spec_.stdout_output];
    }
    if (spec_.stdin_input == kNoIndex) return Done{};
    const InputSpec& input = spec_.inputs[spec_.stdin_input];
    const std::string& text = inputs_[spec_.stdin_input].text;
    if (input.kind != OutputKind::kValue || input.is_list) {
      staged.stdin_path = text;
      return Done{};
    }
    staged.stdin_path = script_ / (input.name + ".value");
    return write_own(staged.stdin_path, text + "\n");
  }

  Status write_scripts(StagedAttempt& staged) const {
    if (!spec_.setup.empty()) {
      staged.setup_state_path = script_ / "setup_state";
      Status written = write_own(staged.setup_state_path, "not done\n");
      if (written) written = write_own(script_ / "setup", spec_.setup);
      if (!written) return written;
    }
    if (!spec_.words.empty()) return Done{};
    staged.failed_line_path = script_ / "line";
    return write_own(script_ / "script", spec_.script);
  }

  static void add_shell(StagedAttempt& staged, const char* runner, const fs::path& script) {
    const bool usual = ::access("/bin/bash", X_OK) == 0;
    for (std::string word :
         {usual ? "/bin/bash" : "bash", "-euo", "pipefail", "-c", runner, script.c_str()}) {
      staged.argv.push_back(std::move(word));
    }
  }

  Status fill_words(StagedAttempt& staged) const {
    if (!spec_.setup.empty()) add_shell(staged, kSetupRunner, script_ / "setup");
    staged.setup_words = staged.argv.size();
    if (spec_.words.empty()) add_shell(staged, kScriptRunner, script_ / "script");
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
  Attempt& entry = attempts_[attempt];
  entry.on_disk = on_disk;
  const fs::path folder = attempt_folder(attempt, on_disk);
  Status made = entry.has_views ? Status(Done{}) : make_new_folder(folder);
  if (made) made = make_new_folder(folder / "w");
  if (!made) return made.error();
  const auto temporary = take_temporary();
  if (!temporary) return temporary.error();
  entry.temporary = *temporary;
  return Stager(spec, input_paths, folder, *temporary).stage();
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
