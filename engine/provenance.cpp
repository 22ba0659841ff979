#include "engine/provenance.h"

#include <algorithm>
#include <iostream>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/cli.h"
#include "engine/query.h"
#include "engine/report.h"
#include "io/journal.h"
#include "io/sources.h"

namespace sluice::engine {

namespace {

using io::JournalState;
using io::RunLedger;
using nlohmann::ordered_json;
using scheduler::InstanceId;
using Name = std::pair<std::string, std::string>;  // task, item

constexpr size_t kInputsShown = 10;

std::optional<Name> maker_of(const std::string& path, const JournalState& journal,
                             const io::Pipeline* pipeline) {
  for (const auto& [name, facts] : journal.instances) {
    for (const auto& [output, durable] : facts.durable) {
      if (durable.path == path) return name;
    }
  }
  if (pipeline == nullptr) return {};
  // A value has no durable record: its file is written from the done record.
  const auto& graph = pipeline->graph;
  for (size_t o = 0; o < graph.object_count(); ++o) {
    const scheduler::ObjectId object(o);
    if (!graph.output(object).result || pipeline->result_path(object) != path) continue;
    const InstanceId instance = graph.producer(object);
    return Name{graph.task(graph.task_of(instance)).name, pipeline->item(instance)};
  }
  return {};
}

class Provenance {
 public:
  Provenance(const RunDirectory& directory, const JournalState& journal, const RunLedger& ledger,
             const io::Pipeline* pipeline)
      : journal_(journal),
        ledger_(ledger),
        pipeline_(pipeline),
        sources_(directory.sources_cache()) {
    for (uint32_t i = 0; i < ledger.instances.size(); ++i) {
      const RunLedger::Instance& instance = ledger.instances[i];
      by_name_[{ledger.tasks[instance.task], std::string(instance.item)}] = i;
    }
  }

  // The maker, then its producers, each once.
  ordered_json trace(const Name& maker) {
    std::vector<Name> open{maker};
    std::set<Name> seen{maker};
    ordered_json instances = ordered_json::array();
    while (!open.empty()) {
      const Name name = open.back();
      open.pop_back();
      ordered_json one = describe(name);
      for (const Name& producer : producers_) {
        if (seen.insert(producer).second) open.push_back(producer);
      }
      instances.push_back(std::move(one));
    }
    return instances;
  }

 private:
  ordered_json describe(const Name& name) {
    producers_.clear();
    ordered_json json = {{"task", name.first}, {"item", name.second}};
    const auto facts = journal_.instances.find(name);
    if (facts == journal_.instances.end() || !facts->second.done) {
      json["state"] = "not recorded as done";
      return json;
    }
    const io::record::DoneRecord& done = *facts->second.done;
    const auto& worker_of = ledger_.host_of(done.attempt, done.worker);
    json["attempt"] = attempt_text(done.attempt);
    json["host"] = worker_of;
    json["begin_ms"] = done.unix_time_ms - done.usage.wall.ns / 1'000'000;
    json["end_ms"] = done.unix_time_ms;
    json["wall_ns"] = done.usage.wall.ns;
    json["cpu_ns"] = done.usage.cpu.ns;
    json["memory_peak_bytes"] = done.usage.memory_peak_bytes;
    json["key"] = io::to_hex(done.key);
    add_submission(done.attempt.epoch(), json);
    add_spec(name, done, json);
    json["outputs"] = ordered_json::array();
    for (const io::record::Output& output : done.outputs) {
      json["outputs"].push_back(output_json(output, facts->second));
    }
    json["failed_attempts"] = failures_of(name);
    return json;
  }

  void add_submission(uint32_t epoch, ordered_json& json) const {
    for (const RunLedger::Submission& one : ledger_.submissions) {
      if (one.run.epoch != epoch) continue;
      json["submission"] = epoch;
      json["spec"] = one.run.spec;
      json["spec_hash"] = one.run.spec_hash;
      json["params"] = ordered_json::object();
      for (const auto& [name, value] : one.run.params) json["params"][name] = value;
      json["versions"] = ordered_json::object();
      for (const auto& [name, version] : one.run.versions) json["versions"][name] = version;
      for (const io::record::RunTask& task : one.run.tasks) {
        if (task.name == json["task"]) {
          json["asked"] = {{"cpus", task.cpus},
                           {"memory_bytes", task.memory_bytes},
                           {"timeout_ms", task.timeout_ms}};
        }
      }
    }
  }

  // Command and inputs, if the spec at hand is the one that it was made by.
  void add_spec(const Name& name, const io::record::DoneRecord& done, ordered_json& json) {
    json["command"] = nullptr;
    json["inputs"] = ordered_json::array();
    const InstanceId id =
        pipeline_ == nullptr ? InstanceId() : pipeline_->find(name.first, name.second);
    if (!id.valid() || pipeline_->graph.static_key(id) != done.static_key) {
      json["note"] = "its command has changed since: the spec that made it is not kept";
      return;
    }
    json["command"] = pipeline_->command_text(id);
    const io::TaskText& text = pipeline_->tasks[pipeline_->graph.task_of(id).index()];
    for (const io::TaskInput& input : text.inputs) {
      if (input.join == io::JoinKind::kSource) add_sources(id, input, json["inputs"]);
    }
    for (const auto group : pipeline_->graph.inputs(id)) {
      for (const auto object : pipeline_->graph.group_objects(group)) {
        json["inputs"].push_back(input_json(object));
      }
    }
  }

  void add_sources(InstanceId id, const io::TaskInput& input, ordered_json& inputs) {
    static const std::string kNone;
    const auto attempt =
        pipeline_->render(id, [](scheduler::ObjectId) -> const std::string& { return kNone; });
    if (!attempt) return;
    for (const io::InputSpec& one : attempt->inputs) {
      if (one.name != input.name) continue;
      for (const io::InputFile& file : one.files) {
        std::error_code ignored;
        const auto content = sources_.content_id(file.source_path);
        ordered_json json = {{"input", input.name}, {"file", file.source_path}};
        json["content_now"] = content ? ordered_json(io::to_hex(*content)) : ordered_json(nullptr);
        json["bytes_now"] =
            content ? ordered_json(std::filesystem::file_size(file.source_path, ignored))
                    : ordered_json(nullptr);
        inputs.push_back(std::move(json));
      }
    }
  }

  ordered_json input_json(scheduler::ObjectId object) {
    const InstanceId producer = pipeline_->graph.producer(object);
    Name name{pipeline_->graph.task(pipeline_->graph.task_of(producer)).name,
              pipeline_->item(producer)};
    const std::string& output = pipeline_->graph.output(object).name;
    ordered_json json = {{"task", name.first}, {"item", name.second}, {"output", output}};
    const auto facts = journal_.instances.find(name);
    if (facts != journal_.instances.end() && facts->second.done) {
      for (const io::record::Output& made : facts->second.done->outputs) {
        if (made.name != output) continue;
        json["content"] = io::to_hex(made.content);
        json["bytes"] = made.bytes;
      }
    }
    producers_.push_back(std::move(name));
    return json;
  }

  static ordered_json output_json(const io::record::Output& output,
                                  const JournalState::InstanceFacts& facts) {
    ordered_json json = {
        {"output", output.name}, {"content", io::to_hex(output.content)}, {"bytes", output.bytes}};
    if (output.is_value) json["value"] = output.value;
    const auto durable = facts.durable.find(output.name);
    if (durable != facts.durable.end()) json["path"] = durable->second.path;
    return json;
  }

  [[nodiscard]] ordered_json failures_of(const Name& name) const {
    ordered_json json = ordered_json::array();
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return json;
    uint32_t at = ledger_.instances[found->second].last_failure;
    for (; at != RunLedger::kNone; at = ledger_.failures[at].previous) {
      const RunLedger::Failure& failure = ledger_.failures[at];
      const ordered_json one = {{"attempt", attempt_text(failure.attempt)},
                                {"cause", failure.cause},
                                {"exit_code", failure.exit_code},
                                {"signal", failure.signal},
                                {"detail", failure.detail},
                                {"host", ledger_.host_of(failure.attempt, failure.worker)},
                                {"end_ms", failure.unix_time_ms},
                                {"wall_ns", failure.usage.wall.ns}};
      json.insert(json.begin(), one);
    }
    return json;
  }

  const JournalState& journal_;
  const RunLedger& ledger_;
  const io::Pipeline* pipeline_;
  io::FileSourceIds sources_;
  std::map<Name, uint32_t> by_name_;
  std::vector<Name> producers_;  // of the instance described last
};

void print_inputs(const ordered_json& inputs, std::ostream& out) {
  size_t shown = 0;
  for (const ordered_json& input : inputs) {
    if (++shown > kInputsShown) break;
    if (input.contains("file")) {
      const ordered_json& id = input["content_now"];
      out << "  source:   " << input["file"].get<std::string>() << ", content now "
          << (id.is_null() ? "unknown (it cannot be read)" : id.get<std::string>()) << "\n";
    } else {
      out << "  input:    "
          << label_text(input["task"].get<std::string>(), input["item"].get<std::string>()) << "."
          << input["output"].get<std::string>() << ", content " << input.value("content", "unknown")
          << "\n";
    }
  }
  if (inputs.size() > kInputsShown) {
    out << "  input:    … and " << inputs.size() - kInputsShown << " more (--json has all)\n";
  }
}

void print_instance(const ordered_json& one, std::ostream& out) {
  out << label_text(one["task"].get<std::string>(), one["item"].get<std::string>()) << "\n";
  if (!one.contains("attempt")) {
    out << "  " << one["state"].get<std::string>() << "\n";
    return;
  }
  if (one["command"].is_null()) {
    out << "  note:     " << one["note"].get<std::string>() << "\n";
  } else {
    out << "  command:\n" << quoted_lines(one["command"].get<std::string>(), "    ");
  }
  out << "  attempt:  " << one["attempt"].get<std::string>() << " on "
      << one["host"].get<std::string>() << ", " << time_text(one["begin_ms"].get<int64_t>())
      << ", took " << duration_text({one["wall_ns"].get<int64_t>()}) << ", processor time "
      << duration_text({one["cpu_ns"].get<int64_t>()}) << ", memory peak "
      << (one["memory_peak_bytes"].get<int64_t>() >> 20U) << " MiB\n";
  for (const ordered_json& failure : one["failed_attempts"]) {
    out << "  before:   attempt " << failure["attempt"].get<std::string>()
        << " failed: " << failure["cause"].get<std::string>() << "\n";
  }
  print_inputs(one["inputs"], out);
  for (const ordered_json& output : one["outputs"]) {
    out << "  output:   " << output["output"].get<std::string>() << ", content "
        << output["content"].get<std::string>() << ", " << output["bytes"].get<int64_t>()
        << " bytes" << (output.contains("path") ? ", " + output["path"].get<std::string>() : "")
        << "\n";
  }
  out << "  spec:     " << one.value("spec", "") << ", hash " << one.value("spec_hash", "")
      << ", submission " << one.value("submission", 0) << "\n";
  std::string versions;
  for (const auto& [name, version] : one["versions"].items()) {
    versions += (versions.empty() ? "" : ", ") + name + " " + version.get<std::string>();
  }
  if (!versions.empty()) out << "  versions: " << versions << "\n";
}

}  // namespace

std::string path_in_run(const RunDirectory& directory, const std::filesystem::path& file) {
  const auto inside = [&](const std::filesystem::path& path) {
    const std::string relative = path.lexically_relative(directory.path).string();
    return relative.starts_with("..") ? std::string() : relative;
  };
  const std::string from_here = inside(std::filesystem::absolute(file).lexically_normal());
  if (!from_here.empty()) return from_here;
  return file.is_absolute() ? file.string() : file.lexically_normal().string();
}

int show_provenance(const Options& options, const RunDirectory& directory, const RunLedger& ledger,
                    const io::Pipeline* pipeline) {
  const auto journal = io::read_journal(directory.path);
  if (!journal) return complain(journal.error().message, kQueryEnvironment);
  std::string path = path_in_run(directory, options.provenance);
  std::optional<Name> maker = maker_of(path, *journal, pipeline);
  // What lies in a directory was made with it.
  for (std::filesystem::path above = std::filesystem::path(path).parent_path();
       !maker && !above.empty() && above != above.root_path(); above = above.parent_path()) {
    maker = maker_of(above, *journal, pipeline);
    if (maker) path = above;
  }
  if (!maker) {
    return complain("'" + path + "' is no result or saved object of the run in " +
                        directory.path.string() +
                        ": give a path as it is there, such as results/TASK/FILE",
                    kQueryUsage);
  }
  Provenance provenance(directory, *journal, ledger, pipeline);
  const ordered_json instances = provenance.trace(*maker);
  if (options.json) {
    const ordered_json json = {{"version", 1},
                               {"run_directory", directory.path.string()},
                               {"run_uuid", ledger.newest().run.run_uuid},
                               {"file", path},
                               {"instances", instances}};
    std::cout << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    return kQueryDone;
  }
  std::cout << path << " was made by\n";
  for (const ordered_json& one : instances) print_instance(one, std::cout);
  return kQueryDone;
}

}  // namespace sluice::engine
