#include "engine/run_start.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#include "engine/clock.h"
#include "engine/item_lists.h"
#include "engine/key_parts.h"
#include "engine/resume.h"
#include "io/manifest.h"
#include "io/sources.h"
#include "io/tier.h"

namespace sluice::engine {

namespace {

constexpr uint64_t kTraceBytesMax = 256ULL << 20U;
constexpr scheduler::Duration kLeaseStale = scheduler::seconds(120);

Expected<std::string> new_uuid() {
  std::ifstream in("/proc/sys/kernel/random/uuid");
  std::string uuid;
  if (!(in >> uuid))
    return Error{"/proc/sys/kernel/random/uuid cannot be read: is /proc mounted?", 0};
  return uuid;
}

Status make_folders(const RunDirectory& directory) {
  std::error_code error;
  std::filesystem::remove_all(directory.lost(), error);
  std::filesystem::remove(directory.stop_request(), error);
  for (const auto& folder : {directory.results_temporary(), directory.objects() / ".tmp",
                             directory.items(), directory.logs(), directory.lost()}) {
    // A record that survives a crash names files in them.
    const Status made = io::make_durable_folders(folder);
    if (!made) {
      return Error{"the run directory " + directory.path.string() + " cannot be used: " +
                       made.error().message + "; make room or choose another with --run-dir",
                   made.error().code};
    }
  }
  return Done{};
}

std::vector<io::record::RunTask> asked_for(const scheduler::Graph& graph) {
  std::vector<io::record::RunTask> tasks;
  for (const scheduler::TaskSpec& task : graph.tasks()) {
    const scheduler::Resources& resources = graph.requests()[task.request].resources;
    tasks.push_back({task.name, task.instance_count, resources.cpus, resources.memory_bytes,
                     task.timeout.ns / 1'000'000});
  }
  return tasks;
}

// The run record says that nothing of before counts: once it is on the disk, saved intermediates
// are of no use to anyone.
Status forget_objects(const RunDirectory& directory, io::JournalWriter& writer) {
  if (Status synced = writer.sync(); !synced) return synced;
  std::error_code error;
  std::filesystem::remove_all(directory.objects(), error);
  if (error) {
    return Error{"the run directory " + directory.path.string() +
                     " cannot be used: " + directory.objects().string() + ": " + error.message(),
                 error.value()};
  }
  return io::make_durable_folders(directory.objects() / ".tmp");
}

}  // namespace

Expected<RunStart> start_run(const io::Pipeline& pipeline, const RunDirectory& directory,
                             const std::string& host, RecordKeeper::Callbacks callbacks,
                             const RunOrigin& origin, const RunRules& rules) {
  RunStart start;
  start.directory = directory;
  if (const Status made = io::make_durable_folders(directory.path); !made) {
    return Error{"the run directory " + directory.path.string() +
                     " cannot be made: " + made.error().message + "; choose another with --run-dir",
                 made.error().code};
  }
  auto lease = io::Lease::take(directory.path, kLeaseStale);
  if (!lease && (lease.error().code == EACCES || lease.error().code == EROFS)) {
    return Error{"the run directory " + directory.path.string() +
                     " cannot be written: " + std::strerror(lease.error().code) +
                     "; choose another with --run-dir, or run as its owner",
                 lease.error().code};
  }
  if (!lease) return lease.error();
  if (Status made = make_folders(directory); !made) return made.error();
  if (!lease->takeover_note().empty()) start.messages.push_back(lease->takeover_note());

  auto journal = io::read_journal(directory.path);
  if (!journal) return journal.error();
  for (const std::string& text : journal->messages) start.messages.push_back(text);
  if (const std::string& spec = journal->last_run.spec; !spec.empty() && spec != pipeline.file) {
    start.messages.push_back("this run directory was that of '" + spec +
                             "' before; what both have under the same name is taken over");
  }
  Resume known;
  if (!rules.fresh) {
    known = resume(*journal, pipeline, directory.path, io::real_files(), io::hash_object);
  }
  for (const std::string& text : known.messages) start.messages.push_back(text);
  for (std::string& text : keep_item_lists(pipeline, directory, io::real_files()))
    start.messages.push_back(std::move(text));
  start.restored = std::move(known.restored);
  start.durable_paths = std::move(known.durable_paths);
  start.overtaken = std::move(known.overtaken);
  for (const std::string& path : known.orphans)
    (void)io::real_files().remove(directory.path / path);
  remove_temporaries(directory);

  start.run_uuid = journal->run_uuid;
  if (start.run_uuid.empty()) {
    auto uuid = new_uuid();
    if (!uuid) return uuid.error();
    start.run_uuid = *uuid;
  }
  start.core.epoch = lease->epoch();
  start.core.lost_after = rules.lost_after;
  start.core.failures_max = rules.failures_max;
  auto writer = io::JournalWriter::create(io::real_files(), directory.journal(lease->epoch()));
  if (!writer) return writer.error();
  io::record::Run run;
  run.run_uuid = start.run_uuid;
  run.epoch = lease->epoch();
  run.spec_hash = io::to_hex(io::hash_text(pipeline.source));
  run.host = host;
  run.unix_time_ms = Clock::unix_time_ms();
  io::continue_from(*journal, run);
  run.instances = pipeline.graph.instance_count();
  run.params = pipeline.params;
  run.spec = pipeline.file;
  run.command = origin.command;
  run.versions = origin.versions;
  run.tasks = asked_for(pipeline.graph);
  run.fresh = rules.fresh;
  if (Status written = writer->append(run); !written) return written.error();
  if (rules.fresh) {
    if (Status cleared = forget_objects(directory, *writer); !cleared) return cleared.error();
  }
  for (const io::record::Gone& gone : known.gone) {
    if (Status written = writer->append(gone); !written) return written.error();
  }
  for (size_t t = 0; t < pipeline.graph.task_count(); ++t) {
    const scheduler::TaskId task(t);
    Status written = writer->append(
        io::record::KeyParts{pipeline.graph.task(task).name, key_part_names(pipeline, task)});
    if (!written) return written.error();
  }
  for (const io::record::Durable& moved : known.moved) {
    if (Status written = writer->append(moved); !written) return written.error();
  }
  (void)io::real_files().replace(
      pipeline.is_command_list ? directory.commands_copy() : directory.spec_copy(),
      pipeline.source);  // for people

  std::unique_ptr<io::TraceWriter> trace;
  auto traced = io::TraceWriter::create(io::real_files(), directory.trace(), pipeline.graph,
                                        start.core, kTraceBytesMax);
  if (traced) {
    trace = std::make_unique<io::TraceWriter>(std::move(*traced));
  } else {
    start.messages.push_back("this run cannot be replayed: " + traced.error().message);
  }
  start.keeper =
      std::make_unique<RecordKeeper>(io::real_files(), directory, std::move(*writer),
                                     std::move(trace), std::move(*lease), std::move(callbacks));
  return start;
}

}  // namespace sluice::engine
