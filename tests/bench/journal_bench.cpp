// Writes the run directory of a run with N done instances, for the time that queries take:
//
//   bench_journal FOLDER N      then: time sluice status FOLDER
//   bench_journal FOLDER SPEC   then: time sluice run SPEC --run-dir FOLDER
//
// The records are those that a run writes: a done record for each instance, a durable one for every
// tenth, a sync after each thousand. Of a SPEC they are what its own run would have recorded, with
// its keys and without durable ones, so that a run finds that there is nothing to do. Its tasks
// have neither outputs nor inputs from each other.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "io/diagnostic.h"
#include "io/journal.h"
#include "io/sources.h"
#include "io/spec.h"

namespace {

using namespace sluice;  // NOLINT(google-build-using-namespace): a program's main file

constexpr int64_t kStartedMs = 1'790'000'000'000;

// The journal of a run directory that is being written.
class Journal {
 public:
  explicit Journal(const std::filesystem::path& folder) {
    std::filesystem::create_directories(folder);
    out_ = std::fopen((folder / "journal.1.jsonl").c_str(), "wb");
  }
  ~Journal() {
    if (out_ != nullptr) std::fclose(out_);
  }
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  [[nodiscard]] bool is_open() const { return out_ != nullptr; }
  void write(const io::Record& record) {
    const std::string line = io::encode_record(record);
    bytes_ += std::fwrite(line.data(), 1, line.size(), out_);
  }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  std::FILE* out_ = nullptr;
  uint64_t bytes_ = 0;
};

io::record::Run run_record(size_t instances) {
  io::record::Run run;
  run.run_uuid = "6f1f8a34-7d1f-4f0e-9f39-0a3b6f0f1c11";
  run.unix_time_ms = kStartedMs;
  run.instances = instances;
  return run;
}

// What rank 0 writes beside it, as of `running` records ago.
void write_status(const std::filesystem::path& folder, const std::string& task, size_t count,
                  size_t running, uint64_t journal_bytes) {
  std::ofstream(folder / "status.json")
      << R"({"version": 1, "run_uuid": ")" << run_record(count).run_uuid
      << R"(", "epoch": 1, "journal_bytes": )" << journal_bytes << R"(, "tasks": [{"task": ")"
      << task << R"(", "instances": )" << count << R"(, "running": )" << running << R"(, "done": )"
      << count - running << R"(, "failed": 0, "skipped": 0}], "running": []})";
}

int write_made_up(const std::filesystem::path& folder, uint32_t count) {
  Journal journal(folder);
  if (!journal.is_open()) return 1;
  uint64_t bytes_then = 0;
  io::record::Run run = run_record(count);
  run.tasks = {{"simulate", count, 1, 1LL << 30U, 60'000}};
  journal.write(run);
  for (uint32_t worker = 0; worker < 100; ++worker) {
    journal.write(
        io::record::Worker{worker, "joined", "node" + std::to_string(worker), {64, 1LL << 38U}});
  }
  for (uint32_t i = 0; i < count; ++i) {
    const std::string item = "grid=" + std::to_string(i % 1000) + ",seed=" + std::to_string(i);
    io::record::DoneRecord done;
    if (i + 10 == count) bytes_then = journal.bytes();
    done.task = "simulate";
    done.item = item;
    done.attempt = scheduler::AttemptId::make(1, i + 1);
    done.key = {i * 0x9E3779B97F4A7C15ULL, i};
    done.static_key = {i, i * 0x9E3779B97F4A7C15ULL};
    done.outputs = {{"field", {i, ~uint64_t{i}}, 4096, false, ""}};
    done.usage = {scheduler::milliseconds(1000 + i % 700), scheduler::milliseconds(900), 1 << 26};
    done.worker = i % 100;
    done.unix_time_ms = run.unix_time_ms + i;
    journal.write(done);
    if (i % 10 == 0) {
      journal.write(io::record::Durable{"simulate",
                                        item,
                                        "field",
                                        "results/simulate/" + item + ".field.h5",
                                        "results/.tmp/" + std::to_string(i),
                                        {i, ~uint64_t{i}},
                                        4096});
    }
    if (i % 1000 == 999) journal.write(io::record::Sync{});
  }
  write_status(folder, "simulate", count, 10, bytes_then);
  std::printf("%u instances, %.1f MiB\n", count, static_cast<double>(journal.bytes()) / (1 << 20));
  return 0;
}

// What an instance of a task without inputs and outputs recorded.
io::record::DoneRecord done_record(const io::Pipeline& pipeline, scheduler::InstanceId instance) {
  const auto index = static_cast<uint32_t>(instance.index());
  io::record::DoneRecord done;
  done.task = pipeline.graph.task(pipeline.graph.task_of(instance)).name;
  done.item = pipeline.item(instance);
  done.attempt = scheduler::AttemptId::make(1, index + 1);
  done.key = done.static_key = pipeline.graph.static_key(instance);
  done.usage = {scheduler::milliseconds(1000 + index % 700), scheduler::milliseconds(900), 1 << 26};
  done.unix_time_ms = kStartedMs + index;
  return done;
}

int write_of_spec(const std::filesystem::path& folder, const char* file) {
  io::FileSourceIds sources;
  io::Diagnostics diagnostics;
  io::SpecOptions options;
  options.file = std::filesystem::absolute(file);
  options.run_directory = std::filesystem::absolute(folder);
  const auto pipeline = io::read_pipeline(options, sources, diagnostics);
  diagnostics.print(std::cerr);
  if (!pipeline) return 2;
  const scheduler::Graph& graph = pipeline->graph;
  const bool is_plain =
      graph.group_count() == 0 &&
      std::all_of(graph.tasks().begin(), graph.tasks().end(),
                  [](const scheduler::TaskSpec& task) { return task.outputs.empty(); });
  if (!is_plain) {
    std::fprintf(stderr, "'%s' has tasks with outputs or inputs, expected none\n", file);
    return 2;
  }
  Journal journal(folder);
  if (!journal.is_open()) return 1;
  io::record::Run run = run_record(graph.instance_count());
  run.spec = pipeline->file;
  for (const scheduler::TaskSpec& task : graph.tasks())
    run.tasks.push_back({task.name, task.instance_count, 1, 0, 0});
  journal.write(run);
  journal.write(io::record::Worker{0, "joined", "node0", {64, 1LL << 38U}});
  for (size_t i = 0; i < graph.instance_count(); ++i) {
    journal.write(done_record(*pipeline, scheduler::InstanceId(i)));
    if (i % 1000 == 999) journal.write(io::record::Sync{});
  }
  io::record::End end;
  end.outcome = "done";
  journal.write(end);
  write_status(folder, graph.tasks().front().name, graph.instance_count(), 0, journal.bytes());
  std::printf("%zu instances, %.1f MiB\n", graph.instance_count(),
              static_cast<double>(journal.bytes()) / (1 << 20));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: bench_journal FOLDER N|SPEC\n");
    return 2;
  }
  const std::string what = argv[2];
  const bool is_count =
      std::all_of(what.begin(), what.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  if (!is_count) return write_of_spec(argv[1], argv[2]);
  return write_made_up(argv[1], static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10)));
}
