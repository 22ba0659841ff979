#!/bin/bash
# The rules of the house that a text search can check: which way includes go, who may include
# foreign headers, how long files get, words that must not appear, and what lies where.
. "$(dirname "$0")/../support/check.sh"
cd "${repository:?}" || exit

# Tracked files where git is at hand (a release archive has none), and never what a build made.
list_files() {
  { git ls-files --cached --others --exclude-standard 2>/dev/null ||
    find . -path ./build -prune -o -type f -printf '%P\n'; } | while read -r file; do
    [[ -f $file ]] && echo "$file"
  done
}
mapfile -t files < <(list_files)
mapfile -t sources < <(printf '%s\n' "${files[@]}" | grep -E '\.(h|hpp|cpp)$')
mapfile -t own < <(printf '%s\n' "${sources[@]}" | grep -E '^(scheduler|io|engine)/')
mapfile -t headers < <(printf '%s\n' "${sources[@]}" | grep -E '\.(h|hpp)$')

# none COMMAND...: what the command finds is what is wrong.
none() {
  local found
  found=$("$@")
  [[ -z $found ]] || { echo "$found" && return 1; }
}

# ---------------------------------------------------------------- includes

# Every line `file:line:#include ...` of own code that goes against engine -> io -> scheduler.
includes_against_the_direction() {
  grep -nHE '^ *#include "(io|engine|tests)/' "${own[@]}" | grep -E '^scheduler/'
  grep -nHE '^ *#include "(engine|tests)/' "${own[@]}" | grep -E '^io/'
  grep -nHE '^ *#include "tests/' "${own[@]}" | grep -E '^engine/'
}
check "tidy: includes go engine, io, scheduler; nothing includes tests" \
  none includes_against_the_direction

io_beyond_the_vocabulary() {
  grep -nHE '#include "scheduler/(core|agent|policy|slots|ranking|estimate|explain|summary)' io/*
}
check "tidy: io sees only the vocabulary of scheduler" none io_beyond_the_vocabulary

# foreign HEADERS HOMES: includes of a foreign library outside its home files. Both are patterns.
foreign() {
  grep -nHE "^ *#include [<\"]($1)" "${own[@]}" | grep -vE "^($2):"
}
check "tidy: yaml-cpp is included by the spec's reader only" none foreign 'yaml-cpp' 'io/spec[a-z_]*\.cpp'
check "tidy: hdf5 is included by io/hdf5* only" none foreign 'hdf5|H5' 'io/hdf5[a-z_]*\.(h|cpp)'
check "tidy: mpi is included by the transport, main and the gang executor only" \
  none foreign 'mpi\.h|mpi/' 'io/(transport_mpi|mpi_session)\.cpp|engine/main\.cpp|engine/exec_mpi[a-z_]*\.cpp'
check "tidy: hwloc is included by engine/topology.cpp only" none foreign 'hwloc' 'engine/topology\.cpp'

impure() {
  grep -nHE '#include <(chrono|ctime|thread|mutex|filesystem|fstream|iostream|unordered_map|unordered_set|random|unistd.h|time.h|sys/)' scheduler/*
  grep -nHE '\b(throw|try|catch)\b *[({;]' scheduler/* | grep -vE ':[0-9]+: *//'
}
check "tidy: scheduler has no clock, file, thread, unordered container or exception" \
  none impure

# ---------------------------------------------------------------- text

longer_than() {
  local limit=$1
  shift
  awk -v limit="$limit" 'FNR == limit + 1 {print FILENAME ": more than " limit " lines"}' "$@"
}
long_files() {
  longer_than 800 "${own[@]}"
  mapfile -t tests < <(printf '%s\n' "${files[@]}" | grep -E '^(tests|configs|jobscripts)/.*\.(cpp|h|sh)$')
  longer_than 1200 "${tests[@]}"
}
check "tidy: no source has more than 800 lines, no test more than 1200" none long_files

# Written so that this file does not contain them.
banned='TO''DO|FIX''ME|X''XX|HA''CK'
check "tidy: nothing is left to be done in a comment" none grep -nHwE "$banned" "${files[@]}"
private='/work''/(main|shared|\.)|/tmp''/wt|/root''/'
check "tidy: no path of a private machine is named" none grep -nHE "$private" "${files[@]}"
check "tidy: no header opens a namespace for its readers" \
  none grep -nHE '^ *using namespace' "${headers[@]}"
check "tidy: every header is guarded by #pragma once" none grep -LE '^#pragma once' "${headers[@]}"

headers_without_head() { awk 'FNR == 1 && !/^\/\// {print FILENAME}' "${headers[@]}"; }
check "tidy: every header begins with a comment that says what it is for" none headers_without_head
check "tidy: no tab and no blank at the end of a line" \
  none grep -nHP '\t|[ \t]+$' "${sources[@]}"

broken_scripts() {
  local script
  for script in $(printf '%s\n' "${files[@]}" | grep -E '\.sh$|^\.ci/run$'); do
    bash -n "$script" 2>&1
  done
}
check "tidy: every script is correct bash" none broken_scripts

# ---------------------------------------------------------------- places

unknown_places() {
  printf '%s\n' "${files[@]}" | cut -d/ -f1 | sort -u |
    grep -vE '^(CMakeLists\.txt|CMakePresets\.json|LICENSE|README\.md|configs|engine|io|jobscripts|scheduler|tests|\..*)$'
}
check "tidy: the top level holds only what was promised" none unknown_places

folders_without_readme() {
  local folder
  for folder in scheduler io engine configs jobscripts tests tests/bench configs/*/; do
    [[ -d $folder && ! -f ${folder%/}/README.md ]] && echo "${folder%/}"
  done
}
check "tidy: each folder explains itself in a README" none folders_without_readme

# The head comment of a header names the tests of its unit: they must be there.
untested_units() {
  local header test named
  for header in scheduler/*.h io/*.h engine/*.h; do
    mapfile -t named < <(sed '/^#pragma once/q' "$header" | grep -oE 'tests/[a-z0-9_./]*[a-z0-9_/]')
    ((${#named[@]})) || echo "$header names no test"
    for test in "${named[@]}"; do
      [[ -e $test ]] || echo "$header: there is no $test"
    done
  done
}
check "tidy: every header names its test, and the test is there" none untested_units
