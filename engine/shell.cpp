#include "engine/shell.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <utility>

#include "engine/cli.h"
#include "engine/descendants.h"
#include "engine/environment.h"
#include "engine/input_views.h"
#include "engine/query.h"
#include "engine/recorded_spec.h"
#include "io/run_ledger.h"
#include "io/store.h"

namespace sluice::engine {

namespace {

namespace fs = std::filesystem;
using io::JournalState;
using scheduler::InstanceId;
using scheduler::ObjectId;

constexpr const char* kShell = "/bin/bash";
constexpr int kCannotStart = 127;

const JournalState::InstanceFacts* facts_of(InstanceId instance, const io::Pipeline& pipeline,
                                            const JournalState& journal) {
  const auto& graph = pipeline.graph;
  const auto found =
      journal.instances.find({graph.task(graph.task_of(instance)).name, pipeline.item(instance)});
  return found == journal.instances.end() ? nullptr : &found->second;
}

// Where the object's file is: in the run directory, else where a failed attempt's copy of this
// input still leads.
std::string place_of(const io::InputSpec& input, const io::InputFile& file,
                     const io::Pipeline& pipeline, const JournalState& journal,
                     const RunDirectory& directory, const JournalState::InstanceFacts* self) {
  std::error_code ignored;
  const auto* facts = facts_of(pipeline.graph.producer(file.object), pipeline, journal);
  if (facts != nullptr) {
    const auto durable = facts->durable.find(pipeline.graph.output(file.object).name);
    if (durable != facts->durable.end()) {
      const fs::path path = directory.path / durable->second.path;
      if (fs::exists(path, ignored)) return path;
    }
  }
  if (self != nullptr && self->last_failure) {
    const fs::path kept =
        directory.failed(self->last_failure->attempt) / "in" / input.name / file.file_name;
    if (fs::exists(kept, ignored)) return fs::canonical(kept, ignored);
  }
  return "";
}

// Texts of the values that the journal holds.
class Values {
 public:
  Values(const io::Pipeline& pipeline, const JournalState& journal)
      : pipeline_(pipeline), journal_(journal) {}
  const std::string& operator()(ObjectId object) {
    const auto [entry, is_new] = texts_.try_emplace(object);
    const auto* facts =
        is_new ? facts_of(pipeline_.graph.producer(object), pipeline_, journal_) : nullptr;
    if (facts != nullptr && facts->done) {
      for (const io::record::Output& output : facts->done->outputs) {
        if (output.name == pipeline_.graph.output(object).name) entry->second = output.value;
      }
    }
    return entry->second;
  }

 private:
  const io::Pipeline& pipeline_;
  const JournalState& journal_;
  std::map<ObjectId, std::string> texts_;
};

[[noreturn]] void become_shell(const io::StagedAttempt& staged, const io::AttemptSpec& attempt,
                               const std::string& command) {
  Environment environment = Environment::cleaned();
  environment.take(Environment::removed(), attempt.keep_environment);
  environment.set("PWD", staged.working_directory);
  // If this process is killed, `clean` and the next run find the shell's by it.
  environment.set("SLUICE_ATTEMPT", own_mark() + ".0");
  for (const auto& [name, value] : thread_variables(attempt.cpus)) environment.set(name, value);
  for (const auto& [name, value] : staged.environment) environment.set(name, value);
  // After the task's setup, as its command would be.
  const auto setup_end = staged.argv.begin() + static_cast<std::ptrdiff_t>(staged.setup_words);
  std::vector<std::string> words(staged.argv.begin(), setup_end);
  words.emplace_back(kShell);
  if (!command.empty()) words.insert(words.end(), {"-c", command});
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  if (::chdir(staged.working_directory.c_str()) == 0) {
    ::execve(argv.front(), argv.data(), environment.pointers().data());
  }
  std::cerr << "sluice: error: cannot start " << words.front() << ": " << std::strerror(errno)
            << "\n";
  std::_Exit(kCannotStart);
}

volatile std::sig_atomic_t told_to_end = 0;

void note_end(int) { told_to_end = 1; }

// When the shell ends, what it started ends too, also what took itself out of its session.
int run_shell(const io::StagedAttempt& staged, const io::AttemptSpec& attempt,
              const std::string& command) {
  std::cout << std::flush;
  (void)::prctl(PR_SET_CHILD_SUBREAPER, 1);
  struct sigaction action {};
  action.sa_handler = note_end;
  for (const int signal : {SIGTERM, SIGHUP}) (void)::sigaction(signal, &action, nullptr);
  const pid_t child = ::fork();
  if (child == 0) become_shell(staged, attempt, command);
  if (child < 0)
    return complain(std::string("cannot fork: ") + std::strerror(errno), kQueryEnvironment);
  // Ctrl-C is the shell's.
  const auto before = std::signal(SIGINT, SIG_IGN);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    if (told_to_end != 0) (void)::kill(child, SIGHUP);  // an interactive bash ignores SIGTERM
  }
  std::signal(SIGINT, before);
  if (!kill_all_descendants(scheduler::seconds(10)))
    complain("processes that the shell started could not be ended", kQueryEnvironment);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int refuse_missing(const FoundInputs& inputs, const std::string& command) {
  std::string text = "inputs are not there any more: they were only in node memory:";
  for (const std::string& one : inputs.missing) text += "\n    " + one;
  return complain(text +
                      "\n  these would have to run again; 'keep: true' at an output keeps it "
                      "in the run directory; continue with: " +
                      command,
                  kQueryEnvironment);
}

// It says itself what went wrong.
Status run_view_maker(const std::string& program, const io::CheckRequest& view) {
  const std::string request = io::encode(view);
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl(program.c_str(), program.c_str(), "--view", request.c_str(), nullptr);
    std::_Exit(kCannotStart);
  }
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (child > 0 && status == 0) return Done{};
  return Error{"'" + program + "' did not make it"};
}

// Inputs that are made of HDF5 files, by the program that makes them for workers.
Status make_views(io::Store& store, scheduler::AttemptId id, io::AttemptSpec& attempt,
                  std::vector<std::string>& paths) {
  if (!has_views(attempt)) return Done{};
  const auto folder = store.make_view_folder(id, attempt, view_bytes_max(attempt, paths));
  if (!folder) return folder.error();
  const auto views = prepare_views(attempt, paths, *folder);
  if (!views) return views.error();
  std::error_code ignored;
  const fs::path self = fs::read_symlink("/proc/self/exe", ignored);
  for (const ViewRequest& view : *views) {
    const Status made = run_view_maker(self.parent_path() / "sluice-h5", view.request);
    if (!made) return Error{view_error(attempt, view, made.error().message)};
  }
  use_views(*views, attempt, paths);
  return Done{};
}

int shell_in(io::AttemptSpec attempt, FoundInputs inputs, const std::string& command) {
  const io::StorePlace place = io::store_place(::getpid(), io::process_start_time(::getpid()), 0);
  auto store = io::Store::create(place, io::node_memory_budget_bytes(place.memory));
  if (!store) return complain(store.error().message, kQueryEnvironment);
  int code = kQueryEnvironment;
  const auto id = scheduler::AttemptId::make(0, 1);
  const Status made = make_views(*store, id, attempt, inputs.paths);
  const auto staged =
      made ? store->stage(id, attempt, inputs.paths) : Expected<io::StagedAttempt>(made.error());
  if (staged) {
    std::cerr << "sluice: " << attempt.label << " in " << staged->working_directory
              << "; nothing is recorded, all of it goes when the shell ends; it would run:\n  "
              << shell_words(staged->argv) << "\n";
    code = run_shell(*staged, attempt, command);
    if (const std::string& state = staged->setup_state_path; !state.empty()) {
      std::error_code ignored;
      if (fs::file_size(state, ignored) > 0) complain("setup failed: there was no shell", code);
    }
  } else {
    complain(staged.error().message, code);
  }
  for (const std::string& left : io::remove_store(place)) {
    std::cerr << "sluice: warn: " << left << "; 'sluice clean' removes it\n";
  }
  return code;
}

InstanceId find_target(const io::Pipeline& pipeline, const std::string& target) {
  const size_t bracket = target.find('[');
  if (bracket == std::string::npos || target.back() != ']') return pipeline.find(target, "");
  const std::string task = target.substr(0, bracket);
  const InstanceId exact =
      pipeline.find(task, target.substr(bracket + 1, target.size() - bracket - 2));
  for (size_t i = 0; !exact.valid() && i < pipeline.graph.instance_count(); ++i) {
    const InstanceId instance(i);
    const auto& name = pipeline.graph.task(pipeline.graph.task_of(instance)).name;
    if (name == task && matches_target(target, name, pipeline.item(instance))) return instance;
  }
  return exact;
}

}  // namespace

FoundInputs find_inputs(const io::AttemptSpec& attempt, const io::Pipeline& pipeline,
                        const JournalState& journal, const RunDirectory& directory) {
  FoundInputs found;
  const InstanceId self_id = find_target(pipeline, attempt.label);
  const auto* self = self_id.valid() ? facts_of(self_id, pipeline, journal) : nullptr;
  for (const io::InputSpec& input : attempt.inputs) {
    for (const io::InputFile& file : input.files) {
      if (!file.object.valid()) {
        found.paths.push_back(file.source_path);
        continue;
      }
      const InstanceId producer = pipeline.graph.producer(file.object);
      const bool is_value = input.kind == scheduler::OutputKind::kValue;
      const auto* facts = facts_of(producer, pipeline, journal);
      std::string path;
      if (!is_value) path = place_of(input, file, pipeline, journal, directory, self);
      const bool there = is_value ? facts != nullptr && facts->done : !path.empty();
      if (!there) {
        found.missing.push_back("input '" + input.name + "': output '" +
                                pipeline.graph.output(file.object).name + "' of " +
                                pipeline.label(producer));
      }
      found.paths.push_back(std::move(path));
    }
  }
  return found;
}

int open_shell(const Options& options) {
  const RunDirectory directory = options.directory();
  const auto journal = io::read_journal(directory.path);
  if (!journal) return complain(journal.error().message, kQueryEnvironment);
  if (journal->epoch == 0) return complain_no_run(directory);
  const auto pipeline = read_recorded_spec(directory, journal->last_run);
  if (!pipeline) return complain(pipeline.error().message, kQueryEnvironment);
  const InstanceId instance = find_target(*pipeline, options.target);
  if (!instance.valid()) {
    return complain("'" + options.target + "' is no instance of '" + pipeline->name +
                        "': write TASK, or 'TASK[key=value,…]' for a task with foreach, as "
                        "'sluice status' and 'sluice logs' do",
                    kQueryUsage);
  }
  Values values(*pipeline, *journal);
  const auto attempt = pipeline->render(
      instance, [&](ObjectId object) -> const std::string& { return values(object); });
  if (!attempt) return complain(attempt.error().message, kQueryEnvironment);
  const FoundInputs inputs = find_inputs(*attempt, *pipeline, *journal, directory);
  if (!inputs.missing.empty()) return refuse_missing(inputs, journal->last_run.command);
  return shell_in(*attempt, inputs, options.shell_command);
}

}  // namespace sluice::engine
