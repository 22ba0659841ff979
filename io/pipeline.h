// A read and checked pipeline: the scheduler's graph, and beside it, in parallel arrays by the same
// ids, what only io and engine need: commands, file names, texts. Made by io/spec.h, rendered
// attempt by attempt. Immutable after reading; any thread may read. Test: tests/io/spec_test.cpp,
// tests/io/render_test.cpp
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/attempt_spec.h"
#include "io/diagnostic.h"
#include "scheduler/expected.h"
#include "scheduler/graph.h"

namespace sluice::io {

enum class JoinKind : uint8_t { kOneToOne, kBroadcast, kGather, kSource };

// One input of a task.
struct TaskInput {
  std::string name;
  JoinKind join = JoinKind::kSource;
  std::string source_path;        // kSource: absolute path
  scheduler::TaskId producer;     // else
  uint32_t output = 0;            // index into the producer's outputs
  std::vector<std::string> over;  // kGather: keys that are gathered over
  std::string where;              // "seed=0": only these of the producer's items; "" for all
  std::string view;               // "dataset /u, rows 0 to 100": what of the files; "" for all
  bool is_list = false;
};
struct TaskOutput {
  std::string file_name;
  ValueType value_type = ValueType::kString;
};

struct TaskText {
  std::vector<std::string> keys;  // foreach keys, in declared order
  std::vector<std::vector<std::string>>
      items;  // per item: the values, parallel to keys; one empty item without foreach
  std::vector<std::string> item_sources;  // patterns and files that the items came from
  std::vector<TaskInput> inputs;
  std::vector<TaskOutput> outputs;
  std::string run_text;  // the command as written, for people
  Mark mark;             // of the task's name in the spec
  // What the static key is made of, for `why`: names such as "command", "environment", "outputs",
  // "uses model.py", "input obs"; and of each item a short hash of each, 0 where an item has no
  // such part. Flat: item × parts.
  std::vector<std::string> key_parts;
  std::vector<uint32_t> key_part_hashes;
};
// How much of a hash is kept of a part: enough to tell which one differs.
constexpr uint32_t kKeyPartMask = 0xFFFFFF;

// "a%2Cb" as "a,b".
[[nodiscard]] std::string percent_decoded(std::string_view text);

class Pipeline {
 public:
  Pipeline();
  ~Pipeline();
  Pipeline(Pipeline&&) noexcept;
  Pipeline& operator=(Pipeline&&) noexcept;

  std::string name;
  std::filesystem::path file;    // absolute path of the spec
  std::filesystem::path folder;  // absolute
  std::string source;            // the spec's bytes, for the run directory's copy
  bool is_command_list = false;  // `file` is no spec but a list of commands
  std::vector<std::pair<std::string, std::string>> params;  // as used, in declared order
  scheduler::Graph graph;
  std::vector<TaskText> tasks;  // by TaskId

  // "simulate[grid=64,alpha=0.1]", or "mesh" without foreach.
  [[nodiscard]] std::string label(scheduler::InstanceId instance) const;
  // "grid=64,alpha=0.1", "" without foreach: stable identity of an instance across submissions.
  [[nodiscard]] std::string item(scheduler::InstanceId instance) const;
  // The instance with that task name and item text, or none.
  [[nodiscard]] scheduler::InstanceId find(const std::string& task, const std::string& item) const;
  // Where output `object` goes below the run directory: results/<task>/<item>.<file>, or
  // objects/<task>/<item>.<file>. Items are percent-encoded; names over 200 bytes are cut and
  // hashed; buckets of 1000 above 1000 items.
  [[nodiscard]] std::string result_path(scheduler::ObjectId object) const;
  [[nodiscard]] std::string saved_path(scheduler::ObjectId object) const;

  // Text of a value object that is done (for $IN_x and expressions).
  using ValueText = std::function<const std::string&(scheduler::ObjectId)>;
  // The full attempt, all producers being done. An expression that fails at run time (overflow, a
  // value of the wrong type) is the task's error, cause `setup`.
  [[nodiscard]] Expected<AttemptSpec> render(scheduler::InstanceId instance,
                                             const ValueText& values) const;
  // The command as a person would read it (`plan -v`, `why`): paths as ${in.x}, ${out.x}.
  [[nodiscard]] std::string command_text(scheduler::InstanceId instance) const;

  struct Hidden;  // templates; io/spec*.cpp only
  std::unique_ptr<Hidden> hidden;
};

}  // namespace sluice::io
