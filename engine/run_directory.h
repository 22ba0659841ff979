// Names in a run directory, in one place. Pure. Test: tests/engine/run_directory_test.cpp
#pragma once

#include <filesystem>
#include <string>

#include "scheduler/types.h"

namespace sluice::engine {

struct RunDirectory {
  std::filesystem::path path;  // absolute: <spec stem>.run beside the spec, or --run-dir

  [[nodiscard]] static RunDirectory for_spec(const std::filesystem::path& spec,
                                             const std::string& run_dir_option);
  [[nodiscard]] std::filesystem::path results() const { return path / "results"; }
  [[nodiscard]] std::filesystem::path results_temporary() const {
    return path / "results" / ".tmp";
  }
  [[nodiscard]] std::filesystem::path objects() const { return path / "objects"; }
  [[nodiscard]] std::filesystem::path items() const { return path / "items"; }
  [[nodiscard]] std::filesystem::path logs() const { return path / "logs"; }
  [[nodiscard]] std::filesystem::path failed() const { return path / "failed"; }
  // The copy of a failed attempt's directory: failed/<submission>.<attempt>.
  [[nodiscard]] std::filesystem::path failed(scheduler::AttemptId attempt) const {
    return failed() / (std::to_string(attempt.epoch()) + "." + std::to_string(attempt.number()));
  }
  [[nodiscard]] std::filesystem::path lost() const { return path / "lost"; }
  [[nodiscard]] std::filesystem::path spec_copy() const { return path / "spec.yaml"; }
  // The same, of a run of a list of commands.
  [[nodiscard]] std::filesystem::path commands_copy() const { return path / "commands.txt"; }
  [[nodiscard]] std::filesystem::path status() const { return path / "status.json"; }
  [[nodiscard]] std::filesystem::path trace() const { return path / "trace.bin"; }
  [[nodiscard]] std::filesystem::path stop_request() const { return path / "stop"; }
  [[nodiscard]] std::filesystem::path sources_cache() const { return path / "sources.json"; }
  [[nodiscard]] std::filesystem::path journal(uint32_t epoch) const {
    return path / ("journal." + std::to_string(epoch) + ".jsonl");
  }
};

}  // namespace sluice::engine
