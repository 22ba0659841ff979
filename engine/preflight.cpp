#include "engine/preflight.h"

#include <unistd.h>

#include <filesystem>
#include <limits>
#include <string>
#include <system_error>

#include "engine/ahead.h"
#include "io/command_size.h"
#include "io/spec_describe.h"

namespace sluice::engine {

using scheduler::InstanceId;
using scheduler::TaskId;

namespace {

class Preflight {
 public:
  Preflight(const io::Pipeline& pipeline, const RunDirectory& directory, const ThisMachine& machine,
            io::Diagnostics& diagnostics)
      : pipeline_(pipeline),
        run_directory_(canonical(directory.path) + "/"),
        machine_(machine),
        diagnostics_(diagnostics) {}

  void run() {
    for (size_t t = 0; t < pipeline_.graph.task_count(); ++t) {
      const TaskId task(t);
      check_fit(task);
      check_sources(task);
      check_sizes(task);
    }
  }

 private:
  // Links followed as far as the path is there.
  [[nodiscard]] static std::string canonical(const std::filesystem::path& path) {
    std::error_code error;
    const std::filesystem::path found = std::filesystem::weakly_canonical(path, error);
    return error ? path.string() : found.string();
  }
  [[nodiscard]] const std::string& name(TaskId task) const {
    return pipeline_.graph.task(task).name;
  }
  [[nodiscard]] io::Mark mark(TaskId task) const { return pipeline_.tasks[task.index()].mark; }

  // A warning only: the run may be on another machine than this check.
  void check_fit(TaskId task) {
    const scheduler::Resources& asked =
        pipeline_.graph.requests()[pipeline_.graph.task(task).request].resources;
    const scheduler::Resources& here = machine_.resources;
    const std::string who = "task '" + name(task) + "' asks for ";
    if (asked.cpus > here.cpus) {
      diagnostics_.warning(mark(task),
                           who + counted(static_cast<size_t>(asked.cpus), "cpu") +
                               "; this machine has " + std::to_string(here.cpus),
                           "it can run only where one node has as many");
    }
    if (asked.memory_bytes > here.memory_bytes) {
      diagnostics_.warning(mark(task),
                           who + io::memory_text(asked.memory_bytes) +
                               " of memory; this machine has " + io::memory_text(here.memory_bytes),
                           "it can run only where one node has as much");
    }
  }

  // What a run publishes is not there before it, and is replaced by it.
  void check_sources(TaskId task) {
    for (const io::TaskInput& input : pipeline_.tasks[task.index()].inputs) {
      if (input.join != io::JoinKind::kSource ||
          !canonical(input.source_path).starts_with(run_directory_))
        continue;
      diagnostics_.error(mark(task),
                         "task '" + name(task) + "', input '" + input.name + "' reads '" +
                             input.source_path + "' of the run directory, which the run writes",
                         "name the output: write " + input.name + ": task.output");
    }
  }

  // The first instance that is too long speaks for its task.
  void check_sizes(TaskId task) {
    const scheduler::TaskSpec& spec = pipeline_.graph.task(task);
    for (uint32_t item = 0; item < spec.instance_count; ++item) {
      const InstanceId instance = pipeline_.graph.instance(task, item);
      if (is_too_long(task, instance, io::command_size(pipeline_, instance))) return;
    }
  }

  bool is_too_long(TaskId task, InstanceId instance, const io::CommandSize& size) {
    const std::string who = "'" + pipeline_.label(instance) + "': ";
    for (const io::CommandSize::Paths& paths : size.paths) {
      if (paths.bytes <= io::kInputWordsBytesMax) continue;
      diagnostics_.warning(
          mark(task),
          who + "the " + std::to_string(paths.count) + " paths of input '" + paths.input +
              "' are about " + io::memory_text(static_cast<int64_t>(paths.bytes)) +
              " as words; at most " + io::memory_text(io::kInputWordsBytesMax) +
              " are put on a command line",
          "use ${{ in." + paths.input + " }}, a file with one path per line, instead of ${{ in." +
              paths.input + ".paths }}");
      return true;
    }
    if (size.largest_bytes >= io::kWordBytesMax) {
      diagnostics_.error(mark(task),
                         who + size.largest + " has " + std::to_string(size.largest_bytes) +
                             " bytes; the system passes at most " +
                             std::to_string(io::kWordBytesMax - 1),
                         "hand over long texts as a file");
      return true;
    }
    if (size.total_bytes < machine_.argument_bytes_max) return false;
    diagnostics_.error(mark(task),
                       who + "the command and its variables have " +
                           io::memory_text(static_cast<int64_t>(size.total_bytes)) +
                           "; the system passes at most " +
                           io::memory_text(static_cast<int64_t>(machine_.argument_bytes_max)),
                       "hand over long lists as a file");
    return true;
  }

  const io::Pipeline& pipeline_;
  std::string run_directory_;  // with a slash behind it
  const ThisMachine& machine_;
  io::Diagnostics& diagnostics_;
};

}  // namespace

ThisMachine any_machine() {
  ThisMachine machine;
  machine.resources = {std::numeric_limits<int32_t>::max(), std::numeric_limits<int64_t>::max()};
  if (const int64_t bytes = ::sysconf(_SC_ARG_MAX); bytes > 0)
    machine.argument_bytes_max = static_cast<size_t>(bytes);
  return machine;
}

void preflight(const io::Pipeline& pipeline, const RunDirectory& directory,
               const ThisMachine& machine, io::Diagnostics& diagnostics) {
  Preflight(pipeline, directory, machine, diagnostics).run();
}

}  // namespace sluice::engine
