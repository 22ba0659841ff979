#!/bin/bash
# All figures of whole runs, as a Markdown table for README.md, with the machine it is of:
#
#   tests/bench/all.sh [BUILD]      ROUNDS, TASKS, CHAIN, ...: as the scripts have them
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "${1:-$here/../../build/release}")
model=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
spawn() { "$build/tests/bench_spawn_loop" -j "$1" 1000 /bin/true | sed -nE 's/.* ([0-9.]+) tasks\/s.*/\1/p'; }
echo "Machine: $(nproc) cores of ${model:-unknown}, Linux $(uname -r), load $(cut -d' ' -f1 /proc/loadavg) before;" \
  "a bare spawn of /bin/true took $(awk "BEGIN {printf \"%.2f\", 1000 / $(spawn 1)}") ms, and" \
  "$(awk "BEGIN {printf \"%.2f\", 1000 / $(spawn "$(nproc)")}") ms each with $(nproc) in flight." \
  "$("$build/sluice" --version | head -n 1), $(date +%F), median of ${ROUNDS:-5} rounds."
echo
echo '| figure | median | min..max | target | reached |'
echo '| --- | --- | --- | --- | --- |'
for script in commands metg start cpu idle resume; do
  BENCH_MARKDOWN=1 "$here/$script.sh" "$build"
done
