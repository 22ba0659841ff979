# shellcheck shell=bash disable=SC2034
# Sourced first by every script here that measures whole runs:
#
#   tests/bench/X.sh [BUILD]           build folder, default build/release
#   ROUNDS=5 tests/bench/X.sh          a figure is the median of so many rounds
#   taskset -c 0,1 tests/bench/X.sh    on a larger machine: all parts see the same two cores
#
# In a round each part of a ratio is measured once, one after the other, so that a slow minute of
# the machine meets all of them. A script collects values with `sample KEY VALUE` and prints each
# figure once with `figure`: median, smallest and largest, target, and whether it is reached; as
# rows of a Markdown table with BENCH_MARKDOWN=1.
#
# Gives: $build $sluice $spawn_loop $spin, $rounds, $spawns, $slots (cores that may be used), $work (a
# scratch folder that is removed at the end), and the functions below.
set -euo pipefail
bench_repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
build=$(realpath "${1:-$bench_repository/build/release}")
sluice=$build/sluice spawn_loop=$build/tests/bench_spawn_loop spin=$build/tests/bench_spin
rounds=${ROUNDS:-5} spawns=${SPAWNS:-500} # bare processes where they are a yardstick beside
slots=$(nproc)
work=$(mktemp -d "${TMPDIR:-/tmp}/sluice-bench.XXXXXX")
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
# Other runs may go on here: ours are known by it.
export SLUICE_BENCH_ID=$$.${work##*.}
declare -A bench_samples=()
bench_child=''

bench_end() {
  if [[ -n $bench_child ]]; then
    kill "$bench_child" 2>/dev/null || true
    wait "$bench_child" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap bench_end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# ---------------------------------------------------------------- numbers

# calc EXPRESSION: as awk computes it. NaN where something is divided by 0.
calc() { awk "BEGIN {printf \"%.9g\", $1}" 2>/dev/null || echo nan; }
median() { sort -g | awk '{v[NR] = $1} END {print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }

sample() { bench_samples[$1]+="$2"$'\n'; }
last() { printf %s "${bench_samples[$1]}" | tail -n 1; }
median_of() { printf %s "${bench_samples[$1]}" | median; }

# figure KEY TEXT [TARGET]: TARGET is '<= NUMBER' or '>= NUMBER'.
figure() {
  local value range target=${3:-} reached=''
  [[ -n ${bench_samples[$1]:-} ]] || { note "$2: out of the measured range" && return; }
  value=$(median_of "$1")
  range=$(printf %s "${bench_samples[$1]}" | sort -g | awk 'NR == 1 {a = $1} {b = $1} END {printf "%.3g..%.3g", a, b}')
  [[ -z $target ]] || reached=$(awk "BEGIN {print ($value $target) ? \"yes\" : \"no\"}")
  if [[ -n ${BENCH_MARKDOWN:-} ]]; then
    printf '| %s | %.3g | %s | %s | %s |\n' "$2" "$value" "$range" "$target" "$reached"
  else
    printf '%-70s %8.3g  (%s)%s\n' "$2" "$value" "$range" "${target:+  target $target: $reached}"
  fi
}
# note TEXT: a line that is no figure, such as what was left out and why.
note() { if [[ -n ${BENCH_MARKDOWN:-} ]]; then echo "| $1 | | | | |"; else echo "$1"; fi; }
round_done() { echo "${0##*/}: round $1 of $rounds done" >&2; }

# ---------------------------------------------------------------- runs

# seconds COMMAND...: how long it took. If it fails, that is shown and the script ends, from within
# whatever $(...) this is called.
seconds() {
  local from=$EPOCHREALTIME
  "$@" >"$work/out" 2>&1 || { tail -n 20 "$work/out" >&2 && kill -TERM $$ && exit 1; }
  calc "$EPOCHREALTIME - $from"
}
alone() { rm -rf "$work/run" && "$sluice" run "$1" --run-dir "$work/run"; }
# Rank 0 has no worker then: it shares its node with rank 1.
two() { rm -rf "$work/run" && mpirun -n 2 --bind-to none "$sluice" run "$1" --run-dir "$work/run"; }
# bare IN_FLIGHT N PROGRAM...: tasks a second of the bare loop.
bare() { "$spawn_loop" -j "$@" | sed -nE 's/.* ([0-9.]+) tasks\/s.*/\1/p'; }
in_background() {
  "$@" >"$work/out" 2>&1 &
  bench_child=$!
}
end_of_background() {
  wait "$bench_child" || { tail -n 20 "$work/out" >&2 && exit 1; }
  bench_child=''
}
# until_there FILE: while the run in the background goes on.
until_there() {
  until [[ -e $1 ]]; do
    kill -0 "$bench_child" 2>/dev/null || { tail -n 20 "$work/out" >&2 && exit 1; }
    sleep 0.05
  done
}
# held NAME: the script of a task that says that it has begun and waits until `release NAME`.
held() { printf '      touch "%s"\n      read -r _ <"%s"\n' "$work/$1" "$work/$1.go"; }
release() { echo >"$work/$1.go"; }
hold_again() {
  local name
  for name in "$@"; do rm -f "$work/$name" "$work/$name.go" && mkfifo "$work/$name.go"; done
}
# Process of our rank with that number.
rank_pid() {
  local pid
  for pid in $(pgrep -x sluice-rank); do
    tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null >"$work/environ" || continue
    grep -qx "SLUICE_BENCH_ID=$SLUICE_BENCH_ID" "$work/environ" || continue
    if grep -qx "OMPI_COMM_WORLD_RANK=$1" "$work/environ" || ! grep -q '^OMPI_COMM_WORLD_RANK=' "$work/environ"; then
      echo "$pid" && return
    fi
  done
  echo "no rank $1 of ours is there" >&2 && return 1
}
