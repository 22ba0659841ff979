#!/bin/bash
# From the start of the command to the first task's first instruction, and the whole of a run with
# one task:
#
#   tests/bench/start.sh [BUILD]      ROUNDS=5; see bench.sh
#
# Under mpirun it is compared with the whole of a bare `mpirun -n 2 /bin/true`, and, stricter, with
# the time that a bare mpirun takes to its first program's first instruction.
. "$(dirname "$0")/bench.sh"
cat >"$work/start.yaml" <<YAML
sluice: 1
name: start
tasks:
  first:
    run: ["$spin", "0", "$work/stamps"]
YAML

# to_first COMMAND...: sets $first and $whole, both in ms.
to_first() {
  rm -f "$work/stamps"
  local from=$EPOCHREALTIME to
  "$@" >"$work/out" 2>&1 || { tail -n 20 "$work/out" >&2 && exit 1; }
  to=$EPOCHREALTIME
  first=$(awk -v a="$from" 'NR == 1 || $1 < s {s = $1} END {printf "%.4f", 1e3 * (s / 1e9 - a)}' "$work/stamps")
  whole=$(calc "1000 * ($to - $from)")
}

for ((r = 1; r <= rounds; ++r)); do
  to_first "$spin" 0 "$work/stamps"
  sample spawn "$first"
  to_first alone "$work/start.yaml"
  sample one "$first" && sample whole.one "$whole" && sample times.one "$(calc "$first / ${spawn:=$(median_of spawn)}")"
  to_first mpirun -n 2 --bind-to none "$spin" 0 "$work/stamps"
  bare_first=$first bare_whole=$whole
  sample bare "$bare_first" && sample bare.true "$(calc "1000 * $(seconds mpirun -n 2 --bind-to none /bin/true)")"
  to_first two "$work/start.yaml"
  sample two "$first" && sample whole.two "$whole"
  sample over.first "$(calc "$first - $bare_first")" && sample over.true "$(calc "$first - $(printf %s "${bench_samples[bare.true]}" | tail -n 1)")"
  sample over.whole "$(calc "$whole - $bare_whole")"
  round_done "$r"
done

figure spawn "bare fork and exec of a program, to its first instruction: ms"
figure one "start to first attempt, one process: ms" '<= 50'
figure times.one "start to first attempt, one process: bare spawns"
figure whole.one "whole run of one task, one process: ms"
figure bare.true "bare mpirun -n 2 /bin/true: ms"
figure bare "bare mpirun -n 2 to its first instruction: ms"
figure two "start to first attempt, mpirun -n 2: ms"
figure over.true "start to first attempt, above the whole of bare mpirun: ms" '<= 300'
figure over.first "start to first attempt, above bare mpirun's first instruction: ms"
figure whole.two "whole run of one task, mpirun -n 2: ms"
figure over.whole "whole run of one task, above the whole of bare mpirun: ms"
