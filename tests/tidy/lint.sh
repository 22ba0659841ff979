#!/bin/bash
# slow: clang-tidy takes some seconds per source
# clang-tidy with the short list of .clang-tidy finds nothing. A source that passed is not looked at
# again until it, a header it includes or the list changes: the digest of its preprocessed text is
# remembered in ~/.cache/sluice/lint.
. "$(dirname "$0")/../support/check.sh"
cd "${repository:?}" || exit

if ! command -v clang-tidy-14 >/dev/null; then
  skip "lint: clang-tidy finds nothing in scheduler, io and engine" "clang-tidy-14 is not installed"
  exit 0
fi
export memory=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/sluice/lint build
mkdir -p "$memory"
list=$(sha256sum <.clang-tidy)
export list

# The command that CMake wrote for this source, less compiling: only preprocessing.
preprocess() {
  local command
  command=$(grep -F "\"command\":" "$build/compile_commands.json" | grep -F -- " -c $PWD/$1\"" |
    sed -e 's/^ *"command": "//' -e 's/",\{0,1\}$//' -e 's/\\"/"/g' -e 's/ -o [^ ]* -c / -E -P /')
  [[ -n $command ]] || return 1
  (cd "$build" && eval "${command/#*ccache /}")
}
lint_one() {
  local digest output
  digest=$({ echo "$list" && preprocess "$1"; } 2>/dev/null | sha256sum | cut -d' ' -f1)
  [[ -f $memory/$digest ]] && return 0
  if output=$(clang-tidy-14 --quiet -p "$build" "$1" 2>/dev/null); then
    : >"$memory/$digest"
  else
    echo "$output"
  fi
}
export -f preprocess lint_one

lint_all() {
  local output
  output=$(printf '%s\n' scheduler/*.cpp io/*.cpp engine/*.cpp | xargs -P "$(nproc)" -I{} bash -c 'lint_one {}')
  [[ -z $output ]] || { echo "$output" && return 1; }
}
check "lint: clang-tidy finds nothing in scheduler, io and engine" lint_all
