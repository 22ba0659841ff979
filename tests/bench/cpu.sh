#!/bin/bash
# CPU time of rank 0 per instance, by thread, under `mpirun -n 2`, where it has no worker:
#
#   tests/bench/cpu.sh [BUILD]      ROUNDS=5 TASKS=10000 REST_S=2; see bench.sh
#
# Before and after TASKS no-op commands a task waits, so that rank 0 is seen at rest at both ends.
# Counted is what its threads used between the two, nanoseconds from schedstat. What rank 0 used in
# REST_S of waiting behind the last no-op, times the wall time of the no-ops, is what its poll loop
# would have cost anyway; the figure without the loop is the rest. User and system time are in the
# proportion of the kernel's ticks. Where `perf` can count them, also user instructions of the same
# stretch; and, which no load disturbs, valgrind's count for one instance of the simulator bench: the
# difference of two sizes of it (1000 and 500, and their joins).
. "$(dirname "$0")/bench.sh"
tasks=${TASKS:-10000} rest_s=${REST_S:-2}
cat >"$work/cpu.yaml" <<YAML
sluice: 1
name: cpu
tasks:
  before:
    sh: |
$(held before)
  nothing:
    after: [before]
    foreach: {n: {range: [0, $tasks]}}
    run: /bin/true
  behind:
    after: [nothing]
    sh: |
$(held behind)
YAML

# One line per thread of process $1: name, ns on a core, ticks user, ticks system.
threads() {
  local task stat
  for task in /proc/"$1"/task/*; do
    stat=$(<"$task/stat")
    read -ra stat <<<"${stat##*) }"
    read -r ns _ <"$task/schedstat"
    echo "$(<"$task/comm") $ns ${stat[11]} ${stat[12]}"
  done
}
# used FROM TO NAME: microseconds of that thread ("" for all) between two files of `threads`.
used() {
  awk -v name="$3" '{sign = FILENAME == ARGV[1] ? -1 : 1; if (name == "" || $1 == name) ns += sign * $2}
    END {print ns / 1e3}' "$1" "$2"
}
share_of_user() {
  awk '{sign = FILENAME == ARGV[1] ? -1 : 1; user += sign * $3; all += sign * ($3 + $4)}
    END {print all ? 100 * user / all : 0}' "$1" "$2"
}

can_count() { perf stat -x, -e instructions:u -o "$work/perf" /bin/true 2>/dev/null && ! grep -q 'not ' "$work/perf"; }
simulated_instructions() {
  valgrind --tool=callgrind --callgrind-out-file=/dev/null "$build/tests/bench_simulator" simulator "$1" 2>&1 |
    sed -nE 's/.*Collected : ([0-9]+).*/\1/p'
}

counts=''
! can_count || counts=yes
for ((r = 1; r <= rounds; ++r)); do
  hold_again before behind
  in_background two "$work/cpu.yaml"
  until_there "$work/before"
  pid=$(rank_pid 0)
  threads "$pid" >"$work/a" && from=$EPOCHREALTIME
  perf_pid=''
  [[ -z $counts ]] || { perf stat -x, -e instructions:u -o "$work/perf" -p "$pid" & perf_pid=$!; }
  release before
  until_there "$work/behind"
  threads "$pid" >"$work/b" && to=$EPOCHREALTIME
  if [[ -n $perf_pid ]]; then
    kill -INT "$perf_pid" && { wait "$perf_pid" || true; }
    sample instructions "$(calc "$(grep -oE '^[0-9]+' "$work/perf" | head -n 1) / $tasks")"
  fi
  sleep 0.5
  threads "$pid" >"$work/c" && idle_from=$EPOCHREALTIME
  sleep "$rest_s"
  threads "$pid" >"$work/d" && idle_to=$EPOCHREALTIME
  release behind
  end_of_background
  idle=$(calc "$(used "$work/c" "$work/d" '') / ($idle_to - $idle_from)")
  all=$(used "$work/a" "$work/b" '')
  sample all "$(calc "$all / $tasks")"
  sample rest "$(calc "($all - $idle * ($to - $from)) / $tasks")"
  sample idle "$(calc "$idle / 1e4")"
  sample user "$(share_of_user "$work/a" "$work/b")"
  while read -r name; do
    sample "thread.$name" "$(calc "$(used "$work/a" "$work/b" "$name") / $tasks")"
  done < <(cut -d' ' -f1 "$work/b" | sort -u)
  sample spawn "$(calc "1e6 / $(bare 1 "$spawns" /bin/true)")"
  round_done "$r"
done

figure all "rank 0, mpirun -n 2: CPU us per no-op instance in all" '<= 40'
figure rest "the same without its poll loop" '<= 20'
for key in "${!bench_samples[@]}"; do
  [[ $key != thread.* ]] || figure "$key" "of it, thread ${key#thread.}"
done | sort
figure user "of it, % in user mode"
figure idle "rank 0 at rest behind it: % of a core"
figure spawn "a bare spawn of /bin/true: us"
if [[ -n $counts ]]; then
  figure instructions "rank 0, user instructions per no-op instance"
else
  note "rank 0, user instructions per no-op instance: perf cannot count them here"
fi
if [[ ${CALLGRIND:-yes} == yes ]] && type -P valgrind >/dev/null; then
  sample simulated "$(calc "($(simulated_instructions 1000) - $(simulated_instructions 500)) / 505")"
  figure simulated "instructions per simulated instance: core, agents, codec and the simulator"
else
  note "instructions per simulated instance: not counted (valgrind is not installed, or CALLGRIND=no)"
fi
