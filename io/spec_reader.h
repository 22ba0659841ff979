// How a spec is read, for io/spec*.cpp only: what is found so far, and the steps in their order.
// Each step reports everything it finds and goes on with what is sound. One thread. Test:
// tests/io/spec_test.cpp, tests/io/spec_mistakes_test.cpp
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/diagnostic.h"
#include "io/h5_view.h"
#include "io/pipeline.h"
#include "io/pipeline_hidden.h"
#include "io/sources.h"
#include "io/spec_yaml.h"
#include "scheduler/graph.h"

namespace sluice::io {

// How an input picks instances of its producer, beside the rule of equal keys.
struct JoinRule {
  struct Where {
    std::string key;
    std::string value;
    NodeIndex node = kNoNode;
  };
  bool all = false;               // `join: all`
  NodeIndex keys_node = kNoNode;  // `join: [keys]`, if there
  std::vector<std::string> keys;
  std::vector<Where> where;
  bool skip_missing = false;
};

struct SpecInput {
  std::string name;
  Mark mark;
  NodeIndex node = kNoNode;  // the scalar that names the source or the producer
  bool is_source = false;
  bool is_order = false;  // an entry of `after`: no name, no output
  Template path;          // a source's
  std::string placed_as;  // as:, "" without it
  NodeIndex as_node = kNoNode;
  std::string from_task;
  std::string from_output;
  JoinRule join;
  H5View view;  // without a shard
  std::string shard_key;
  NodeIndex view_node = kNoNode;  // the first key that asks for a view, if any
  bool resolved = false;          // producer and output below are known
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
  bool consumed = false;   // each instance's is read by some task
  std::vector<bool> read;  // by item, while some may be read by nobody
};

// The groups of one input, in flat arrays: the objects that a set of consumers sees through it, as
// item indexes. Group g is the ranges [begin[g], begin[g + 1]) of both.
struct JoinGroups {
  std::vector<uint32_t> producers;
  std::vector<uint32_t> producers_begin{0};
  std::vector<uint32_t> consumers;
  std::vector<uint32_t> consumers_begin{0};

  [[nodiscard]] size_t size() const { return producers_begin.size() - 1; }
  [[nodiscard]] std::span<const uint32_t> producers_of(size_t group) const {
    return std::span(producers).subspan(producers_begin[group],
                                        producers_begin[group + 1] - producers_begin[group]);
  }
  [[nodiscard]] std::span<const uint32_t> consumers_of(size_t group) const {
    return std::span(consumers).subspan(consumers_begin[group],
                                        consumers_begin[group + 1] - consumers_begin[group]);
  }
};

struct SpecTask {
  std::string name;
  Mark mark;
  NodeIndex node = kNoNode;
  TaskText text;  // keys and items from foreach; the rest when all is known
  std::map<std::string, uint32_t> shards;  // foreach keys that are {shards: N}
  bool items_known = true;
  std::vector<SpecInput> inputs;
  std::vector<SpecInput> after;
  std::vector<SpecOutput> outputs;
  std::vector<JoinGroups> groups;        // by input; empty for sources
  std::vector<JoinGroups> after_groups;  // by entry of `after`
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
  std::filesystem::path run_directory;   // patterns leave it out; may be empty
  std::vector<std::string> param_names;  // declared, also those whose value was refused
  std::vector<Param> params;
  std::vector<scheduler::Limit> limits;
  std::vector<SpecTask> tasks;
  std::map<std::string, size_t> task_index;
  // Items that were read from files, by key and text: `lines` and `glob` of two tasks see the same.
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> item_lists;
  std::vector<std::string> keep_environment;  // of all tasks
};

// A name at the top of an attempt's directory: no path, no control characters, not too long.
[[nodiscard]] bool is_plain_file_name(const std::string& text);
// Letters, digits and _, no digit first.
[[nodiscard]] bool is_variable_name(std::string_view text);

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
// "'text'", "a list", "a map" or "nothing": what was found.
[[nodiscard]] std::string shown(const YamlNode& node);
// An error at a scalar, with the template beside the value where they differ.
void report_value(SpecReading& reading, NodeIndex node, const std::string& text,
                  const std::string& hint);
[[nodiscard]] bool expect_map(SpecReading& reading, NodeIndex node, const std::string& what,
                              const std::string& example);
[[nodiscard]] bool check_name(SpecReading& reading, const YamlNode& node, const std::string& what);

// ---- items (io/spec_items.cpp) ----
// The values of an item in these columns as one text; no two lists of values give the same.
[[nodiscard]] std::string joined_values(const std::vector<std::string>& item,
                                        const std::vector<size_t>& columns);
// "[grid=64,alpha=0.1], [grid=64,alpha=0.2] and 5 more"
[[nodiscard]] std::string named_items(const SpecTask& task, const std::vector<uint32_t>& items);
// What to write instead of `text`, which is no value of this foreach key; "" if there is no item.
[[nodiscard]] std::string value_hint(const SpecTask& task, size_t column, const std::string& text);

// ---- steps, in this order ----
// Gives every task the keys of `defaults` that it lacks (io/spec_defaults.cpp).
void apply_defaults(YamlTree& tree, Diagnostics& diagnostics);
void read_params(SpecReading& reading, NodeIndex params,
                 const std::vector<std::pair<std::string, std::string>>& set, bool set_is_recorded);
void read_limits(SpecReading& reading, NodeIndex limits);
void read_foreach(SpecReading& reading, SpecTask& task, NodeIndex foreach);
void read_inputs(SpecReading& reading, SpecTask& task, NodeIndex inputs);
void read_after(SpecReading& reading, SpecTask& task, NodeIndex after);
void read_outputs(SpecReading& reading, SpecTask& task, NodeIndex outputs);
void read_attempt_rules(SpecReading& reading, SpecTask& task);  // resources, timeout, retry, ...
void read_retry(SpecReading& reading, SpecTask& task);          // called by read_attempt_rules
void resolve_after(SpecReading& reading);
void resolve_inputs(SpecReading& reading);                // names of producers; cycles
void read_command(SpecReading& reading, SpecTask& task);  // run or sh, env
[[nodiscard]] std::vector<std::string> read_keep_env(SpecReading& reading, NodeIndex keep_env,
                                                     const std::string& where);
void read_start_rules(SpecReading& reading, SpecTask& task);  // stdin, stdout, cwd, keep_env, as
void check_path_words(SpecReading& reading, const SpecTask& task);    // in.x.paths, likewise
void check_list_words(SpecReading& reading, const SpecTask& task);    // in.x of values, likewise
void check_placed_names(SpecReading& reading, const SpecTask& task);  // as, when joins are known
void check_output_names(SpecReading& reading, const SpecTask& task);
void join_inputs(SpecReading& reading);
void read_view(SpecReading& reading, const SpecTask& task, NodeIndex node, SpecInput& input);
[[nodiscard]] std::string view_text(
    const SpecInput& input);                             // "dataset /u, shard part", for people
void check_views(SpecReading& reading, SpecTask& task);  // when joins are known
void read_uses(SpecReading& reading, SpecTask& task);
// One static key per item; looks at every source file and every word that names a file. Of no use
// when there was an error before: then only the files matter.
[[nodiscard]] std::vector<scheduler::Hash128> static_keys(SpecReading& reading, SpecTask& task);
// Every name of the part has a value; one that has none was reported where it stands.
[[nodiscard]] bool has_values(const Scope& scope, const TemplatePart& part);

}  // namespace sluice::io
