#!/bin/bash
# Builds Sluice and runs its tests:
#
#   tests/run.sh [--only PATTERN] [--long] [--preset NAME] [--unit] [--werror] [--build]
#                [--ahead PRESETS]
#
#   --only PATTERN  suites whose name contains PATTERN (scheduler, io, e2e/quickstart, ...); when
#                   none does, the doctest cases whose name contains it
#   --long          also the slow scripts, and longer rounds: SLUICE_LONG=1 for every test
#   --preset NAME   a preset of CMakePresets.json instead of `release`; `tsan` only with --unit
#   --unit          only the doctest binaries: no script, and nothing is built that only scripts need
#   --werror        warnings are errors, in this build folder from now on
#   --build         only builds
#   --ahead 'A B'   builds the doctest binaries of these presets, too, with what the scripts leave of the
#                   processors: they mostly wait. With --long: 'asan tsan', for e2e/sanitizers
#
# A suite is a doctest binary (tests/<folder> is test_<folder>), or a script in tests/tidy, tests/mpi,
# tests/e2e or tests/cluster that sources tests/support/check.sh. A script with a line `# slow: why` runs only with --long, with
# CI=true, or when --only names it. Logs: build/<preset>/test-logs. Missing packages are installed
# where that is possible, see jobscripts/prepare.sh. The last line is `N passed, N failed,
# N skipped`, in doctest cases and script checks. Exit status: 0, or 1 when anything failed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
. jobscripts/prepare.sh

only='' preset=release unit=false build_only=false ahead='' werror=()
while (($#)); do
  case $1 in
    --only) only=${2:?'--only needs a pattern'} && shift ;;
    --preset) preset=${2:?'--preset needs a name'} && shift ;;
    --long) export SLUICE_LONG=1 && ahead='asan tsan' ;;
    --unit) unit=true ;;
    --werror) werror=(-DSLUICE_WERROR=ON) ;;
    --build) build_only=true ;;
    --ahead) ahead=${2:?'--ahead needs names of presets'} && shift ;;
    *) echo "error: '$1' is no option of tests/run.sh: see the head of that file" >&2 && exit 2 ;;
  esac
  shift
done

build=$PWD/build/$preset
logs=$build/test-logs
export SLUICE_BUILD=$build
passed=0 failed=0 skipped=0
seconds_max=$([[ ${SLUICE_LONG:-} == 1 ]] && echo 3600 || echo 1800)  # of a script; half of it for a binary

finish() {
  wait
  echo "$passed passed, $failed failed, $skipped skipped"
  ((failed == 0)) && exit 0
  exit 1
}

# report SUITE PASSED FAILED SKIPPED SECONDS LOG: one line, and the log's end after a failure.
report() {
  passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
  printf '%-28s %4d passed %3d failed %3d skipped %6.1f s\n' "$1" "$2" "$3" "$4" "$5"
  if (($3 > 0)); then
    tail -n 60 "$6" | sed 's/^/    /'
    echo "    (all of it: $6)"
  fi
}

seconds_since() { awk -v from="$1" -v to="$EPOCHREALTIME" 'BEGIN {print to - from}'; }

# ---------------------------------------------------------------- build

unit_targets() {
  ninja -C "$build" -t targets all | sed -n 's/^\(test_[a-z0-9_]*\): phony$/\1/p' |
    grep -v '^test_main$'
}

# One at a time builds in a folder: see --ahead and e2e/fuzz.
build_everything() {
  local targets=() lock
  mkdir -p "$build" && exec {lock}>"$build/lock" && flock "$lock" || return 1
  cmake --preset "$preset" -DSLUICE_TESTS=ON "${werror[@]}" || return 1
  if $unit; then mapfile -t targets < <(unit_targets); fi
  # The others have one thread, or MPI, whose own threads would fill the report.
  if [[ $preset == tsan ]]; then targets=(test_io test_engine); fi
  ninja -C "$build" "${targets[@]}" {lock}>&- || return 1
  exec {lock}>&-
}

prepare build tests || { failed=1 && finish; }
mkdir -p "$logs"
started=$EPOCHREALTIME
if ! build_everything >"$logs/build.log" 2>&1; then
  report build 0 1 0 "$(seconds_since "$started")" "$logs/build.log"
  finish
fi
printf 'built preset %s in %.0f s\n' "$preset" "$(seconds_since "$started")"
if $build_only; then finish; fi

build_ahead() {
  local other option=()
  if ((${#werror[@]})); then option=(--werror); fi
  renice -n 19 "$BASHPID"
  for other in $ahead; do tests/run.sh --preset "$other" --unit --build "${option[@]}"; done
}
if [[ -n $ahead && -z $only ]]; then build_ahead >"$logs/ahead.log" 2>&1 </dev/null & fi

# ---------------------------------------------------------------- suites

# doctest_counts LOG: passed failed skipped. No summary at all is a crash.
doctest_counts() {
  sed -nE 's/.*test cases: *[0-9]+ \| *([0-9]+) passed \| *([0-9]+) failed \| *([0-9]+) skipped.*/\1 \2 \3/p' "$1" |
    awk '{counts = $0} END {print NR ? counts : "0 1 0"}'
}

if [[ $preset == asan ]]; then
  export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1}
  export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
fi
# Where the kernel spreads addresses widely, ThreadSanitizer finds its own place taken.
in_place=()
if [[ $preset == tsan ]] && setarch -R true 2>/dev/null; then in_place=(setarch -R); fi
# It makes a fork of every vfork: what the child says before exec does not reach the parent, which
# does not wait for the exec either. What tests just that is left out, and counted as skipped.
vfork_cases='launcher: what cannot start*,launcher: attempts of every kind leave*'

# run_doctest SUITE BINARY: the suite's cases, or those that --only names.
run_doctest() {
  local suite=$1 log=$logs/$1.log filter=() status=0 started=$EPOCHREALTIME p f s
  if [[ -n $only && $cases_by_name == true ]]; then filter=(--test-case="*$only*"); fi
  if [[ $preset == tsan ]]; then filter+=(--test-case-exclude="$vfork_cases"); fi
  timeout -k 10 $((seconds_max / 2)) "${in_place[@]}" "$2" --no-colors=true "${filter[@]}" >"$log" 2>&1 </dev/null || status=$?
  read -r p f s < <(doctest_counts "$log")
  if ((status != 0 && f == 0)); then
    f=1
    echo "the binary left with status $status$([[ $status == 124 ]] && echo ' (time limit)')" >>"$log"
  fi
  if [[ -n $only && $cases_by_name == true ]]; then s=0; fi
  report "$suite" "$p" "$f" "$s" "$(seconds_since "$started")" "$log"
}

run_script() {
  local script=$1 suite=${1#tests/} status=0 started=$EPOCHREALTIME log p f s
  suite=${suite%.sh}
  log=$logs/${suite//\//-}.log
  export CHECK_RESULTS=$log.results
  : >"$CHECK_RESULTS"
  timeout -k 10 "$seconds_max" bash "$script" >"$log" 2>&1 </dev/null || status=$?
  read -r p f s < <(awk '{n[$1]++} END {print n["pass"] + 0, n["fail"] + 0, n["skip"] + 0}' "$CHECK_RESULTS")
  if ((status != 0 && f == 0)); then
    f=1
    echo "the script left with status $status$([[ $status == 124 ]] && echo ' (time limit)')" >>"$log"
  fi
  report "$suite" "$p" "$f" "$s" "$(seconds_since "$started")" "$log"
  sed -n 's/^skip  /    skipped: /p' "$log"
}

# Helpers lie beside the suites: a suite is a script that counts checks.
script_is_suite() { grep -qE '^\. .*support/check\.sh' "$1"; }
script_is_slow() { grep -q '^# slow: ' "$1" && [[ ${SLUICE_LONG:-} != 1 && ${CI:-} != true ]]; }

# The suites of this build, as `name TAB path`.
list_suites() {
  local path name
  for path in "$build"/tests/test_*; do
    name=${path##*/test_}
    [[ -f $path && -x $path ]] || continue
    printf '%s\t%s\n' "$name" "$path"
  done
  if $unit || [[ ! -x $build/sluice ]]; then return; fi
  for path in tests/{tidy,mpi,e2e,cluster}/*.sh; do
    script_is_suite "$path" || continue
    name=${path#tests/}
    printf '%s\t%s\n' "${name%.sh}" "$path"
  done
}

mapfile -t suites < <(list_suites)
cases_by_name=false
if [[ -n $only ]] && ! printf '%s\n' "${suites[@]%%$'\t'*}" | grep -qF -- "$only"; then
  cases_by_name=true
fi

for suite in "${suites[@]}"; do
  name=${suite%%$'\t'*} path=${suite#*$'\t'}
  if [[ -n $only && $cases_by_name == false && $name != *"$only"* ]]; then continue; fi
  case $name,$path in
    *.sh)
      if $cases_by_name || { [[ -z $only ]] && script_is_slow "$path"; }; then continue; fi
      run_script "$path"
      ;;
    *) run_doctest "$name" "$path" ;;
  esac
done

if ((passed + failed + skipped == 0)); then
  echo "error: no test of preset '$preset' matches '$only'" >&2
  failed=1
fi
finish
