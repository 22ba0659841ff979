// What a Pipeline keeps to itself: templates, and what names mean in them. For io/spec_*.cpp,
// io/pipeline.cpp and io/render.cpp only. Immutable after reading; any thread may read. Test:
// tests/io/render_test.cpp
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "io/expression.h"
#include "io/pipeline.h"
#include "io/template.h"

namespace sluice::io {

struct Param {
  std::string name;
  Value value;  // a path is absolute here
  Value typed;  // as the user wrote it; this is what keys are made of
};

struct CommandTemplate {
  bool is_script = false;
  bool is_line = false;                 // the item itself is the command: io/command_list.h
  std::vector<Template> words;          // run:
  std::string script;                   // sh:
  std::vector<uint32_t> script_params;  // indexes of the params and keys that the script names
  std::vector<uint32_t> script_keys;
  std::vector<std::pair<std::string, Template>> environment;
};

// Finds items by their texts: a hash and an index for each, 24 bytes, however long the texts are.
class ItemIndex {
 public:
  ItemIndex() = default;
  explicit ItemIndex(const TaskText& task);
  [[nodiscard]] std::optional<uint32_t> find(const std::string& item) const;

 private:
  std::vector<std::pair<scheduler::Hash128, uint32_t>> sorted_;
};

// How an attempt is started, beside its command: the same for all items.
struct StartRules {
  uint32_t stdin_input = kNoIndex;
  uint32_t stdout_output = kNoIndex;
  std::string setup;
  bool in_pipeline_folder = false;
  std::vector<std::string> keep_environment;
  std::vector<std::string> placed_as;  // by input
};

// What of an input's HDF5 files is read.
struct InputView {
  H5View view;                    // without a shard
  uint32_t shard_key = kNoIndex;  // which foreach key says which shard
};

struct TaskTemplates {
  CommandTemplate command;
  StartRules start;
  std::vector<InputView> views;        // by input
  std::vector<Template> source_paths;  // by input; empty where a task makes it
  std::vector<uint32_t> group_order;   // by input: which of the instance's groups; not for sources
  ItemIndex item_index;
};

struct Pipeline::Hidden {
  std::vector<Param> params;
  std::vector<TaskTemplates> tasks;
  std::map<std::string, scheduler::TaskId> task_ids;
};

// What the names of an instance's expressions mean.
class Scope {
 public:
  // `as_typed`: paths as the user wrote them, for keys.
  Scope(const std::vector<Param>& params, const TaskText& task, uint32_t item,
        bool as_typed = false);
  void set_input(const std::string& name, Value value) { inputs_[name] = std::move(value); }
  [[nodiscard]] const Value* find(const Expression::Name& name) const;
  // Of a kValue or kRunTime part. The error's offset counts within the part's text.
  [[nodiscard]] std::variant<Value, ExpressionError> evaluate(const TemplatePart& part) const;

 private:
  const std::vector<Param>& params_;
  const TaskText& task_;
  bool as_typed_;
  std::vector<Value> items_;  // parallel to the task's keys
  std::map<std::string, Value> inputs_;
};

// "grid=64,alpha=0.1" of an item; ',', '=', '%' and control characters of values are encoded.
[[nodiscard]] std::string item_text(const TaskText& task, uint32_t item);
// What of an input's files this item reads.
[[nodiscard]] H5View view_of(const InputView& input, const TaskText& task, uint32_t item);
// Text with only [A-Za-z0-9._+-] and `more`; every other byte as %XX.
[[nodiscard]] std::string percent_encoded(std::string_view text, std::string_view more);
// "[64, 128]", for people.
[[nodiscard]] std::string list_text(const std::vector<std::string>& items);
// A source path of the spec: relative means the pipeline folder.
[[nodiscard]] std::filesystem::path in_folder(const std::filesystem::path& folder,
                                              const std::string& text);
// A program "bin/solver" is one of the pipeline folder.
[[nodiscard]] bool is_folder_program(std::string_view first_word);

}  // namespace sluice::io
