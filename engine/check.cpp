#include <iostream>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "engine/ahead.h"
#include "engine/cli.h"
#include "engine/plan.h"
#include "engine/preflight.h"
#include "engine/query.h"
#include "engine/topology.h"
#include "io/sources.h"
#include "io/spec.h"
#include "io/spec_describe.h"

namespace sluice::engine {

namespace {

constexpr int kFormat = 1;  // of the JSON

// Counts the files whose content was looked at.
class CountedSources final : public io::SourceIds {
 public:
  explicit CountedSources(io::SourceIds& sources) : sources_(sources) {}
  [[nodiscard]] Expected<scheduler::Hash128> content_id(
      const std::filesystem::path& path) override {
    auto id = sources_.content_id(path);
    if (id) read_.insert(path.string());
    return id;
  }
  [[nodiscard]] size_t count() const { return read_.size(); }

 private:
  io::SourceIds& sources_;
  std::set<std::string> read_;
};

Expected<ThisMachine> this_machine() {
  const auto node = read_node();
  if (!node) return node.error();
  ThisMachine machine = any_machine();
  machine.resources = {static_cast<int32_t>(node->cores.size()), node->memory_bytes};
  return machine;
}

nlohmann::ordered_json findings_json(const io::Diagnostics& diagnostics) {
  nlohmann::ordered_json findings = nlohmann::ordered_json::array();
  for (const io::Diagnostic& finding : diagnostics.sorted()) {
    const bool is_error = finding.level == io::Diagnostic::Level::kError;
    findings.push_back({{"file", diagnostics.file()},
                        {"line", finding.mark.line},
                        {"column", finding.mark.column},
                        {"severity", is_error ? "error" : "warning"},
                        {"message", finding.text},
                        {"hint", finding.hint}});
  }
  return findings;
}

void print_json(const io::Pipeline* pipeline, const io::Diagnostics& diagnostics, size_t sources) {
  nlohmann::ordered_json json;
  json["version"] = kFormat;
  json["file"] = diagnostics.file();
  json["ok"] = diagnostics.errors() == 0;
  json["errors"] = diagnostics.errors();
  if (pipeline != nullptr) {
    json["pipeline"] = pipeline->name;
    json["tasks"] = pipeline->graph.task_count();
    json["instances"] = pipeline->graph.instance_count();
  }
  json["sources"] = sources;
  json["findings"] = findings_json(diagnostics);
  std::cout << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
}

}  // namespace

int check_pipeline(const Options& options) {
  io::Diagnostics diagnostics;
  const RunDirectory directory = options.directory();
  io::FileSourceIds files(directory.sources_cache());
  CountedSources sources(files);
  const auto pipeline = io::read_pipeline(options.spec_options(), sources, diagnostics);
  if (pipeline) {
    const auto machine = this_machine();
    if (!machine) return complain(machine.error().message, kQueryEnvironment);
    preflight(*pipeline, directory, *machine, diagnostics);
  }
  if (options.json) {
    print_json(pipeline ? &*pipeline : nullptr, diagnostics, sources.count());
  } else {
    diagnostics.print(std::cerr);
  }
  if (diagnostics.errors() > 0) return kQueryUsage;
  if (!options.json) {
    std::cout << pipeline->name << ": " << io::count_text(*pipeline) << ", "
              << counted(sources.count(), "source file") << ", no mistakes found\n";
  }
  return kQueryDone;
}

}  // namespace sluice::engine
