// Texts with `${{ expression }}` in them, and how `run:` becomes words. The only interpolation
// there is: no shell looks at a `run:` text, so what only a shell understands is an error that says
// so.
//
// run: splits at blanks and newlines. Quotes, single or double, only group: no escapes, no
// expansion. `${{ }}` is replaced everywhere, also within quotes, and is never split. Values; any
// thread. Test: tests/io/template_test.cpp
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/expression.h"

namespace sluice::io {

struct TemplatePart {
  // What stands here. kValue until the reader has looked at the expression's names.
  enum class Use : uint8_t {
    kText,
    kValue,       // params and items only: known when the spec is read
    kRunTime,     // also values of inputs: known when the producers are done
    kFolder,      // dir
    kInput,       // in.x of a file
    kInputPaths,  // in.x.paths
    kOutput,      // out.x
  };
  Use use = Use::kText;
  std::string text;                    // kText: as it is; else the expression as written
  size_t offset = 0;                   // of `text` in the whole
  std::vector<Expression> expression;  // one, unless kText
  uint32_t index = 0;                  // kInput, kInputPaths, kOutput: which one
};
using Template = std::vector<TemplatePart>;

struct ParsedTemplate {
  Template parts;
  std::vector<ExpressionError> errors;  // with offsets in the whole text
};
[[nodiscard]] ParsedTemplate parse_template(std::string_view text);

struct ParsedCommand {
  std::vector<Template> words;
  std::vector<ExpressionError> errors;
};
[[nodiscard]] ParsedCommand split_command(std::string_view text);

}  // namespace sluice::io
