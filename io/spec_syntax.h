// YAML's own syntax errors in words that lead somewhere: a tab in the indentation, an unquoted
// `${{`, a missing blank behind a colon come before what the YAML library says, and what it says is
// translated. Pure functions. Test: tests/io/spec_yaml_test.cpp, tests/io/spec_mistakes_test.cpp
#pragma once

#include <string>
#include <string_view>

#include "io/diagnostic.h"

namespace sluice::io {

// Reports the one error that ended the reading: `message` of the library at `mark` (line 0: no
// place).
void report_syntax(std::string_view source, Mark mark, const std::string& message,
                   Diagnostics& diagnostics);

}  // namespace sluice::io
