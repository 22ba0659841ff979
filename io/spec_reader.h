// How a spec is read, for io/spec*.cpp only: what is found so far, and the steps in their order.
// Each step reports everything it finds and goes on with what is sound. One thread. Test:
// tests/io/spec_test.cpp, tests/io/spec_mistakes_test.cpp
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/diagnostic.h"
#include "io/pipeline.h"
#include "io/pipeline_hidden.h"
#include "io/sources.h"
#include "io/spec_yaml.h"
#include "scheduler/graph.h"

namespace sluice::io {

struct SpecInput {
  std::string name;
  Mark mark;
  NodeIndex node = kNoNode;  // the scalar that names the source or the producer
  bool is_source = false;
  Template path;  // a source's
  std::string from_task;
  std::string from_output;
  bool resolved = false;  // producer and output below are known
  size_t producer = 0;
  size_t output = 0;
};

struct SpecOutput {
  std::string name;
  Mark mark;
  scheduler::OutputKind kind = scheduler::OutputKind::kFile;
  ValueType value_type = ValueType::kString;
  std::string file_name;
  bool keep = false;
  bool consumed = false;
};

// The objects that a set of consumers sees through one input, as item indexes.
struct JoinGroup {
  std::vector<uint32_t> producers;
  std::vector<uint32_t> consumers;
};

struct SpecTask {
  std::string name;
  Mark mark;
  NodeIndex node = kNoNode;
  TaskText text;  // keys and items from foreach; the rest when all is known
  bool items_known = true;
  std::vector<SpecInput> inputs;
  std::vector<SpecOutput> outputs;
  std::vector<std::vector<JoinGroup>> groups;  // by input; empty for sources
  TaskTemplates templates;
  std::vector<NodeIndex> word_nodes;  // parallel to templates.command.words
  std::vector<NodeIndex> environment_nodes;
  NodeIndex command_node = kNoNode;
  std::vector<std::pair<std::string, scheduler::Hash128>> uses;
  scheduler::Request request;
  scheduler::TaskSpec spec;  // timeout, retry, priority, ...
};

struct SpecReading {
  const YamlTree& tree;
  Diagnostics& diagnostics;
  SourceIds& sources;
  std::filesystem::path folder;
  std::vector<std::string> param_names;  // declared, also those whose value was refused
  std::vector<Param> params;
  std::vector<scheduler::Limit> limits;
  std::vector<SpecTask> tasks;
  std::map<std::string, size_t> task_index;
};

template <class T>
[[nodiscard]] std::vector<std::string> names_of(const std::vector<T>& all) {
  std::vector<std::string> names;
  names.reserve(all.size());
  for (const T& one : all) {
    names.push_back(one.name);
  }
  return names;
}

// What a text may name.
struct AllowedNames {
  bool items = false;
  bool folder = false;
  bool paths = false;     // in.x of files, out.x
  bool run_time = false;  // in.x of values
};

// ---- texts (io/spec_text.cpp) ----
// Decides what each part of a template is; reports names that are unknown or not allowed here.
// `task` may be null: params only.
void classify(SpecReading& reading, const SpecTask* task, NodeIndex node, Template& parts,
              AllowedNames allowed);
// Reports the errors of a template with their places in `node`.
void report(SpecReading& reading, NodeIndex node, const std::vector<ExpressionError>& errors);
// A scalar after substitution of params. None: reported. `what`: "'cpus' of task 'mesh'".
[[nodiscard]] std::optional<Value> read_value(SpecReading& reading, NodeIndex node,
                                              const std::string& what);
[[nodiscard]] std::optional<std::string> read_text(SpecReading& reading, NodeIndex node,
                                                   const std::string& what);
[[nodiscard]] std::optional<int64_t> read_int(SpecReading& reading, NodeIndex node,
                                              const std::string& what, int64_t least, int64_t most);
// An error at a scalar, with the template beside the value where they differ.
void report_value(SpecReading& reading, NodeIndex node, const std::string& text,
                  const std::string& hint);
[[nodiscard]] bool expect_map(SpecReading& reading, NodeIndex node, const std::string& what,
                              const std::string& example);
[[nodiscard]] bool check_name(SpecReading& reading, const YamlNode& node, const std::string& what);

// ---- steps, in this order ----
void read_params(SpecReading& reading, NodeIndex params,
                 const std::vector<std::pair<std::string, std::string>>& set);
void read_limits(SpecReading& reading, NodeIndex limits);
void read_foreach(SpecReading& reading, SpecTask& task, NodeIndex foreach);
void read_inputs(SpecReading& reading, SpecTask& task, NodeIndex inputs);
void read_outputs(SpecReading& reading, SpecTask& task, NodeIndex outputs);
void read_attempt_rules(SpecReading& reading, SpecTask& task);  // resources, timeout, retry, ...
void resolve_inputs(SpecReading& reading);                      // names of producers; cycles
void read_command(SpecReading& reading, SpecTask& task);        // run or sh, env
void check_output_names(SpecReading& reading, const SpecTask& task);
void join_inputs(SpecReading& reading);
void read_uses(SpecReading& reading, SpecTask& task);
// One static key per item; looks at every source file and every word that names a file. Of no use
// when there was an error before: then only the files matter.
[[nodiscard]] std::vector<scheduler::Hash128> static_keys(SpecReading& reading, SpecTask& task);
// Every name of the part has a value; one that has none was reported where it stands.
[[nodiscard]] bool has_values(const Scope& scope, const TemplatePart& part);

}  // namespace sluice::io
