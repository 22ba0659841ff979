#!/bin/bash
# The benchmark programs of tests/bench run, with numbers too small to mean anything, so that they
# do not rot; what they print is looked at, not the figures.
. "$(dirname "$0")/../support/check.sh"
bench=${repository:?}/tests/bench
export ROUNDS=1 SPAWNS=10 TASKS=20 CHAIN=3 WORK_S=1 SIZES_US=4000 LINKS=2 WAIT_MS=50 IDLE_S=0.2 REST_S=0.2 CALLGRIND=no

# has_figure REGEX: the last output has a figure with that text and a positive number.
has_figure() { check_says "bench: a figure says '$1'" "$1[^|]* +[0-9.e+-]+  \([0-9.e+-]+\.\.[0-9.e+-]+\)"; }

check "bench: a spin task burns the time that was asked for" "$build/tests/bench_spin" 20000 "$scratch/stamps"
check "bench: a task notes when it began and ended, at least its work apart" \
  awk 'END {exit !(NR == 1 && $2 - $1 >= 20e6)}' "$scratch/stamps"
check "bench: no-op commands and chains are compared with the bare loop" "$bench/commands.sh" "$build"
has_figure 'no-op commands, one process'
has_figure 'the same by xargs'
has_figure 'with files, mpirun -n 2: bare spawns of cp a hop'
has_figure 'the same by make: bare spawns a hop'
check "bench: the efficiency of small tasks is measured" "$bench/metg.sh" "$build"
has_figure 'efficiency at 4 ms, two'
check "bench: the start of a run is measured" "$bench/start.sh" "$build"
has_figure 'start to first attempt, one process: ms'
has_figure 'start to first attempt, mpirun -n 2: ms'
check "bench: CPU time of rank 0 is measured" "$bench/cpu.sh" "$build"
has_figure 'CPU us per no-op instance in all'
check "bench: idle ranks are measured" "$bench/idle.sh" "$build"
has_figure 'rank 0 while tasks wait'
check "bench: resume is measured" "$bench/resume.sh" "$build"
has_figure 'run again of 20 done instances'
