// What a worker needs to know to run one attempt, beside the core's decision: rendered by rank 0
// from the pipeline (io/pipeline.h), sent with StartAttempt, completed on the worker with paths
// that only it knows. Values. Encoded by io/wire.h. Test: tests/io/wire_test.cpp,
// tests/io/render_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "io/h5_view.h"
#include "scheduler/graph.h"
#include "scheduler/types.h"

namespace sluice::io {

// A piece of a word whose text is known (kText) or that names a path only the worker knows.
struct Piece {
  enum class Kind : uint8_t {
    kText,
    kInput,       // path of input `index`; of its list file when the input is a list
    kInputPaths,  // all paths of input `index`: stands alone in its word and becomes as many words
    kOutput,      // path at which output `index` must appear
  };
  Kind kind = Kind::kText;
  uint32_t index = 0;
  std::string text;  // kText
};
using Word = std::vector<Piece>;

enum class ValueType : uint8_t { kInt, kFloat, kBool, kString, kList };

struct InputFile {
  scheduler::ObjectId object;  // none: a source file of the pipeline folder, at `source_path`
  std::string source_path;     // absolute
  std::string file_name;       // name of the link in the attempt directory
  std::string item;            // "grid=64,alpha=0.1": which producer instance, "" without foreach
  std::string value;           // kValue: the text
};
constexpr size_t kInputWordsBytesMax = 100'000;  // of ${{ in.x.paths }}: what fits beside the rest
constexpr uint32_t kNoIndex = UINT32_MAX;        // of an input or output: none

struct InputSpec {
  std::string name;
  scheduler::OutputKind kind = scheduler::OutputKind::kFile;
  bool is_list = false;  // from the key sets alone: a gather, even of one
  ValueType value_type = ValueType::kString;
  std::vector<InputFile> files;   // exactly one unless it is a list, or gathered
  std::string placed_as;          // as: its name at the top of the attempt directory; "": in in/
  std::vector<std::string> keys;  // of a list: foreach keys of its items, in the item's order
  H5View view;  // not whole: the input is a file that is made of `files` for this attempt
};
struct AttemptOutput {
  std::string name;
  scheduler::OutputKind kind = scheduler::OutputKind::kFile;
  ValueType value_type = ValueType::kString;
  std::string file_name;  // declared name, at the top of the attempt directory
  scheduler::ObjectId object;
  bool result = false;
};

struct AttemptSpec {
  std::string label;        // "simulate[grid=64,alpha=0.1]"
  std::vector<Word> words;  // run: program and arguments; empty for sh:
  std::string script;       // sh: body, verbatim (run by bash -euo pipefail from a file)
  std::vector<std::pair<std::string, std::string>> environment;  // env:, PARAM_x, ITEM_x
  std::vector<InputSpec> inputs;
  std::vector<AttemptOutput> outputs;
  std::string pipeline_folder;
  int32_t cpus = 1;                           // for OMP_NUM_THREADS and kin
  uint32_t stdin_input = kNoIndex;            // what programs read as standard input
  uint32_t stdout_output = kNoIndex;          // what their standard output becomes
  std::string setup;                          // bash before the command; "": none
  bool in_pipeline_folder = false;            // programs start there, not in their own directory
  std::vector<std::string> keep_environment;  // launcher variables that they see: names, PREFIX*
};

}  // namespace sluice::io
