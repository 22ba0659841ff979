// Writes the run directory of a run with N done instances, for the time that queries take:
//
//   bench_journal FOLDER N      then: time sluice status FOLDER
//
// The records are those that a run writes: a done record for each instance, a durable one for every
// tenth, a sync after each thousand.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "io/journal.h"

using namespace sluice;  // NOLINT(google-build-using-namespace): a program's main file

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: bench_journal FOLDER N\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  const auto count = static_cast<uint32_t>(std::strtoul(argv[2], nullptr, 10));
  std::filesystem::create_directories(folder);
  std::FILE* out = std::fopen((folder / "journal.1.jsonl").c_str(), "wb");
  if (out == nullptr) return 1;
  uint64_t bytes = 0;
  uint64_t bytes_then = 0;
  const auto write = [&](const io::Record& record) {
    const std::string line = io::encode_record(record);
    bytes += std::fwrite(line.data(), 1, line.size(), out);
  };
  io::record::Run run;
  run.run_uuid = "6f1f8a34-7d1f-4f0e-9f39-0a3b6f0f1c11";
  run.unix_time_ms = 1'790'000'000'000;
  run.instances = count;
  run.tasks = {{"simulate", count, 1, 1LL << 30U, 60'000}};
  write(run);
  for (uint32_t worker = 0; worker < 100; ++worker) {
    write(io::record::Worker{worker, "joined", "node" + std::to_string(worker), {64, 1LL << 38U}});
  }
  for (uint32_t i = 0; i < count; ++i) {
    const std::string item = "grid=" + std::to_string(i % 1000) + ",seed=" + std::to_string(i);
    io::record::DoneRecord done;
    if (i + 10 == count) bytes_then = bytes;
    done.task = "simulate";
    done.item = item;
    done.attempt = scheduler::AttemptId::make(1, i + 1);
    done.key = {i * 0x9E3779B97F4A7C15ULL, i};
    done.static_key = {i, i * 0x9E3779B97F4A7C15ULL};
    done.outputs = {{"field", {i, ~uint64_t{i}}, 4096, false, ""}};
    done.usage = {scheduler::milliseconds(1000 + i % 700), scheduler::milliseconds(900), 1 << 26};
    done.worker = i % 100;
    done.unix_time_ms = run.unix_time_ms + i;
    write(done);
    if (i % 10 == 0) {
      write(io::record::Durable{"simulate",
                                item,
                                "field",
                                "results/simulate/" + item + ".field.h5",
                                "results/.tmp/" + std::to_string(i),
                                {i, ~uint64_t{i}},
                                4096});
    }
    if (i % 1000 == 999) write(io::record::Sync{});
  }
  std::fclose(out);
  // What rank 0 writes beside it, as of ten records ago.
  std::ofstream(folder / "status.json")
      << R"({"version": 1, "run_uuid": ")" << run.run_uuid << R"(", "epoch": 1, "journal_bytes": )"
      << bytes_then << R"(, "tasks": [{"task": "simulate", "instances": )" << count
      << R"(, "running": 10, "done": )" << count - 10
      << R"(, "failed": 0, "skipped": 0}], "running": []})";
  std::printf("%u instances, %.1f MiB\n", count, static_cast<double>(bytes) / (1 << 20));
  return 0;
}
