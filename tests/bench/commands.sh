#!/bin/bash
# Figures of whole runs, each beside its yardstick in the same round, medians of ROUNDS rounds:
#
#   tests/bench/commands.sh [BUILD]      build folder, default build/release; ROUNDS=5 TASKS=10000 CHAIN=1000
#
# no-op: TASKS commands /bin/true on two slots, as a share of a bare posix_spawn loop with two in flight
# chain: a hop of CHAIN dependent commands           cpu: of rank 0's process, per instance of the no-op run
# idle:  share of a core that a rank takes while its tasks wait, over 10 s
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(realpath "${1:-build/release}")
rounds=${ROUNDS:-5} tasks=${TASKS:-10000} chain=${CHAIN:-1000}
work=$(mktemp -d "${TMPDIR:-/tmp}/sluice-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
ticks=$(getconf CLK_TCK)

cat >"$work/noop.yaml" <<YAML
sluice: 1
name: noop
tasks:
  nothing:
    foreach: {n: {range: [0, $tasks]}}
    run: /bin/true
YAML
{
  printf 'sluice: 1\nname: chain\ntasks:\n'
  printf '  t0:\n    sh: echo 0 >"$OUT_x"\n    outputs: {x: {value: int}}\n'
  for ((i = 1; i < chain; ++i)); do
    printf '  t%d:\n    run: /bin/cp ${{ in.x }} ${{ out.x }}\n    inputs: {x: t%d.x}\n    outputs: {x: {file: x}}\n' "$i" $((i - 1))
  done
} | sed '0,/value: int/s//file: x/' >"$work/chain.yaml"
cat >"$work/idle.yaml" <<YAML
sluice: 1
name: idle
tasks:
  wait:
    run: /bin/sleep 13
YAML

median() { sort -g | awk '{v[NR] = $1} END {print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }
seconds() {
  local from=$EPOCHREALTIME
  "$@" >"$work/out" 2>&1 || { cat "$work/out" >&2 && exit 1; }
  awk -v a="$from" -v b="$EPOCHREALTIME" 'BEGIN {print b - a}'
}
cpu_ticks() { awk '{sub(/.*\) /, ""); print $12 + $13}' "/proc/$1/stat" 2>/dev/null; }
rank_pids() { pgrep -x sluice-rank || true; }
alone() { rm -rf "$work/run" && "$build/sluice" run "$1" --run-dir "$work/run"; }
two() { rm -rf "$work/run" && mpirun -n 2 --bind-to none "$build/sluice" run "$1" --run-dir "$work/run"; }

# Seconds of CPU that rank 0's process had used when it was last seen, while COMMAND runs.
rank0_cpu() {
  local pid='' last=0 now
  "$@" >"$work/out" 2>&1 &
  local run=$!
  while kill -0 "$run" 2>/dev/null; do
    [[ -n $pid ]] || pid=$(rank_pids | head -n 1)
    now=$(cpu_ticks "${pid:-none}") && [[ -n $now ]] && last=$now
    read -rt 0.02 <> <(:) || true
  done
  wait "$run"
  awk -v t="$last" -v hz="$ticks" 'BEGIN {print t / hz}'
}

bare='' one='' mpi='' hop1='' hop2='' cpu=''
for ((r = 0; r < rounds; ++r)); do
  b=$("$build/tests/bench_spawn_loop" "$tasks" | sed -nE 's/.* ([0-9]+) tasks\/s.*/\1/p')
  bare+="$b"$'\n'
  s=$(seconds alone "$work/noop.yaml")
  one+="$(awk -v s="$s" -v n="$tasks" -v b="$b" 'BEGIN {print n / s / b}')"$'\n'
  s=$(seconds two "$work/noop.yaml")
  mpi+="$(awk -v s="$s" -v n="$tasks" -v b="$b" 'BEGIN {print n / s / b}')"$'\n'
  hop1+="$(awk -v s="$(seconds alone "$work/chain.yaml")" -v n="$chain" 'BEGIN {print 1000 * s / n}')"$'\n'
  hop2+="$(awk -v s="$(seconds two "$work/chain.yaml")" -v n="$chain" 'BEGIN {print 1000 * s / n}')"$'\n'
  cpu+="$(awk -v s="$(rank0_cpu alone "$work/noop.yaml")" -v n="$tasks" 'BEGIN {print 1e6 * s / n}')"$'\n'
  echo "round $((r + 1)) of $rounds done" >&2
done
show() { printf '%-58s %8.3g\n' "$1" "$(printf %s "$2" | median)"; }
show "bare posix_spawn loop, tasks/s" "$bare"
show "no-op, one process: share of the bare loop" "$one"
show "no-op, mpirun -n 2: share of the bare loop" "$mpi"
show "chain, one process: ms a hop (start of the run included)" "$hop1"
show "chain, mpirun -n 2: ms a hop (start of the run included)" "$hop2"
show "rank 0 with its worker, one process: CPU us per instance" "$cpu"

two "$work/idle.yaml" >"$work/out" 2>&1 &
until [[ $(rank_pids | wc -l) == 2 && $(pgrep -xc sleep) -ge 1 ]]; do read -rt 0.1 <> <(:) || true; done
read -rt 1.5 <> <(:) || true
declare -A before
for pid in $(rank_pids); do before[$pid]=$(cpu_ticks "$pid"); done
read -rt 10 <> <(:) || true
for pid in "${!before[@]}"; do
  printf '%-58s %8.3g\n' "idle rank (pid $pid): % of a core" \
    "$(awk -v a="${before[$pid]}" -v b="$(cpu_ticks "$pid")" -v hz="$ticks" 'BEGIN {print 100 * (b - a) / hz / 10}')"
done
wait
