// The spec's JSON schema (draft 2020-12) for editors: `sluice schema`. Made from the key table of
// io/spec_schema.h, so it knows the same keys; those that are not supported yet are absent. It
// refuses nothing that the reader accepts, for a YAML reader that keeps scalars as typed as well as
// for one that guesses types (YAML 1.2 core: `4` a number, `true` a boolean; a plain `null` or
// nothing is no text). Names that must exist, items that must join and the like only the reader
// sees. Values; any thread. Test: tests/io/spec_json_schema_test.cpp, tests/e2e/schema.sh
#pragma once

#include <string>

namespace sluice::io {

// One JSON document, indented by two blanks, with a newline at its end.
[[nodiscard]] std::string spec_json_schema();

}  // namespace sluice::io
