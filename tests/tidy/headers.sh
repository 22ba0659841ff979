#!/bin/bash
# slow: one compiler call per header
# Every header compiles alone, first and twice in a file, without a warning. Foreign headers are
# found by the flags that CMake found for the sources.
. "$(dirname "$0")/../support/check.sh"
cd "${repository:?}" || exit

mapfile -t headers < <(find scheduler io engine tests/support -name '*.h' -o -name '*.hpp' | sort)
flags=$(grep -ohE -- '(-isystem |-I)[^ "]+' "${build:?}/compile_commands.json" | sort -u | tr '\n' ' ')

compile_alone() {
  # shellcheck disable=SC2086
  printf '#include "%s"\n#include "%s"\n' "$1" "$1" |
    ${CXX:-g++} -std=c++20 -fsyntax-only -Wall -Wextra -Wshadow -Wconversion -Werror -I. $2 -x c++ - 2>&1 ||
    echo "$1 does not compile alone"
}
export -f compile_alone
compile_all() {
  local output
  output=$(printf '%s\n' "${headers[@]}" | xargs -P "$(nproc)" -I{} bash -c 'compile_alone {} "$0"' "$flags")
  [[ -z $output ]] || { echo "$output" && return 1; }
}
check "headers: each of ${#headers[@]} headers compiles alone" compile_all
