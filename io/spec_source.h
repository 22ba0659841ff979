// The bytes of a spec or of a list of commands, or the reason why there are none as a finding. One
// thread. Test: tests/io/spec_mistakes_test.cpp, tests/io/command_list_test.cpp
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "io/diagnostic.h"

namespace sluice::io {

// `what` is needed: "a spec file"; `hint`: what to do when it is not there.
[[nodiscard]] std::optional<std::string> read_spec_source(const std::filesystem::path& file,
                                                          const std::string& what,
                                                          const std::string& hint,
                                                          Diagnostics& diagnostics);

}  // namespace sluice::io
