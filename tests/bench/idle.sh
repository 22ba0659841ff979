#!/bin/bash
# What ranks cost while tasks wait, and how fast they answer then, under `mpirun -n 2`:
#
#   tests/bench/idle.sh [BUILD]      ROUNDS=5 LINKS=5 WAIT_MS=1500 IDLE_S=8; see bench.sh
#
# A chain of LINKS tasks, each of which waits WAIT_MS: all ranks have been idle for longer than a
# second when it ends, and two messages between them start the next one. The time from one task's
# end to the next one's first instruction has the start of a process in it; one process alone,
# where nothing is polled, does the same without messages: the difference is what polling costs.
# Then a task waits, and CPU time of the ranks is counted for IDLE_S.
. "$(dirname "$0")/bench.sh"
links=${LINKS:-5} wait_ms=${WAIT_MS:-1500} idle_s=${IDLE_S:-8}
{
  printf 'sluice: 1\nname: idle\ntasks:\n'
  for ((i = 0; i < links; ++i)); do
    printf '  t%d:\n    run: ["%s", "0", "%s", "%s"]\n' "$i" "$spin" "$work/stamps" "$wait_ms"
    ((i == 0)) || printf '    after: [t%d]\n' $((i - 1))
  done
  printf '  long:\n    after: [t%d]\n    sh: |\n%s\n' $((links - 1)) "$(held long)"
} >"$work/idle.yaml"
sed '/^  long:/,$d' "$work/idle.yaml" >"$work/chain.yaml"

on_core_ns() { cat /proc/"$1"/task/*/schedstat | awk '{ns += $1} END {print ns}'; }
# From a task's end to the next one's begin, in ms, the median of the chain.
gap() { sort -n "$work/stamps" | awk 'NR > 1 {printf "%.4f\n", ($1 - end) / 1e6} {end = $2}' | median; }

for ((r = 1; r <= rounds; ++r)); do
  rm -f "$work/stamps"
  seconds alone "$work/chain.yaml" >"$work/took"
  one=$(gap)
  rm -f "$work/stamps"
  hold_again long
  in_background two "$work/idle.yaml"
  until_there "$work/long"
  sleep "$(calc "$wait_ms / 1000")"
  pids=("$(rank_pid 0)" "$(rank_pid 1)")
  a=$EPOCHREALTIME before=("$(on_core_ns "${pids[0]}")" "$(on_core_ns "${pids[1]}")")
  sleep "$idle_s"
  b=$EPOCHREALTIME after=("$(on_core_ns "${pids[0]}")" "$(on_core_ns "${pids[1]}")")
  release long
  end_of_background
  for rank in 0 1; do
    sample "idle.$rank" "$(calc "100 * (${after[$rank]} - ${before[$rank]}) / 1e9 / ($b - $a)")"
  done
  two=$(gap)
  sample one "$one" && sample two "$two" && sample more "$(calc "$two - $one")"
  sample spawn "$(calc "1000 / $(bare 1 "$spawns" "$spin" 0)")"
  round_done "$r"
done

figure idle.0 "rank 0 while tasks wait: % of a core" '<= 1'
figure idle.1 "worker while its task waits: % of a core" '<= 1'
figure one "after a wait of $wait_ms ms, a task's end to the next one's begin, one process: ms"
figure two "the same under mpirun -n 2: ms"
figure more "of it, what two messages between idle ranks cost: ms" '<= 5'
figure spawn "a bare spawn of the task: ms"
