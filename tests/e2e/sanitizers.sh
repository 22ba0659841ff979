#!/bin/bash
# The unit suites under the sanitizers: addresses, undefined behaviour and leaks in all, data races
# in those of what has threads.
# slow: builds twice more, with sanitizers
. "$(dirname "$0")/../support/check.sh"

# CI has them as a part of its own.
if [[ ${CI:-} == true && ${SLUICE_LONG:-} != 1 ]]; then exit; fi
if ! command -v clang++-14 >/dev/null; then
  skip "the unit suites under sanitizers" "clang++-14 is missing"
  exit
fi

# The tests of a test ask for what is theirs: not for our processes.
suites() { env -u CHECK_RESULTS -u SLUICE_LONG "$repository/tests/run.sh" --preset "$1" --unit >"$scratch/$1" 2>&1; }
for preset in asan tsan; do
  suites "$preset"
  check_equal "$preset: the suites pass" $? 0 || tail -n 60 "$scratch/$preset"
  tail -n 1 "$scratch/$preset"
done
