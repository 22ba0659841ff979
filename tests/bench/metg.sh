#!/bin/bash
# METG(50 %): the smallest size of a task at which half of the slots' time is work (Slaughter et
# al., Task Bench, SC 2020, section 4), for commands that spin; beside a bare spawn loop of the same
# program.
#
#   tests/bench/metg.sh [BUILD]      ROUNDS=5 TASKS=400 WORK_S=4 SIZES_US='128000 32000 ... 250'; see bench.sh
#
# Sizes from 32 ms are halved down to 0.25 ms; before them 128 ms, which here is about as many bare
# spawns as 32 ms where the targets were set (58). Of each, as many tasks as fill the slots for WORK_S,
# but at most TASKS below 8 ms. Efficiency = work / (slots × span), where the span is from the
# begin of the first task to the end of the last, as they write it down themselves: start and end of
# the run are start.sh's. Between two sizes METG is interpolated in logarithms.
. "$(dirname "$0")/bench.sh"
tasks=${TASKS:-400} work_s=${WORK_S:-4}
read -ra sizes_us <<<"${SIZES_US:-128000 32000 16000 8000 4000 2000 1000 500 250}"

count_of() {
  local count=$((work_s * 1000000 * slots / $1))
  ((count <= tasks || $1 >= 8000)) || count=$tasks
  echo $((count < slots ? slots : count))
}
write_spec() { # FILE SIZE_US COUNT
  cat >"$1" <<YAML
sluice: 1
name: spin
tasks:
  spin:
    foreach: {n: {range: [0, $3]}}
    run: ["$spin", "$2", "$work/stamps"]
YAML
}
# efficiency SIZE_US COUNT COMMAND...
efficiency() {
  local size=$1 count=$2
  shift 2
  rm -f "$work/stamps"
  "$@" >"$work/out" 2>&1 || { tail -n 20 "$work/out" >&2 && exit 1; }
  awk -v us="$size" -v n="$count" -v slots="$slots" '
    NR == 1 {origin = $1}
    {a = $1 - origin; b = $2 - origin; if (NR == 1 || a < first) first = a; if (b > last) last = b}
    END {if (NR != n) {print NR " of " n " tasks ran" >"/dev/stderr"; exit 1}
         print us * 1e3 * n / slots / (last - first)}' "$work/stamps"
}
# metg SYSTEM: in ms, of the efficiencies of this round. Nothing if the largest tasks are not
# efficient enough; the smallest size, an upper bound, if that is.
metg() {
  local size
  for size in "${sizes_us[@]}"; do echo "$size ${now[$1.$size]}"; done | awk '
    $2 < 0.5 {if (NR > 1) print exp(log(s) + (e - 0.5) / (e - $2) * (log($1) - log(s))) / 1000; found = 1; exit}
    {s = $1; e = $2}
    END {if (!found) print s / 1000}'
}

declare -A now
for ((r = 1; r <= rounds; ++r)); do
  for size in "${sizes_us[@]}"; do
    count=$(count_of "$size")
    write_spec "$work/spin.yaml" "$size" "$count"
    now[bare.$size]=$(efficiency "$size" "$count" "$spawn_loop" -j "$slots" "$count" "$spin" "$size" "$work/stamps")
    now[one.$size]=$(efficiency "$size" "$count" alone "$work/spin.yaml")
    now[two.$size]=$(efficiency "$size" "$count" two "$work/spin.yaml")
    for system in bare one two; do sample "$system.$size" "${now[$system.$size]}"; done
  done
  b=$(metg bare)
  [[ -z $b ]] || sample bare "$b"
  for system in one two; do
    m=$(metg "$system")
    [[ -z $m ]] || sample "$system" "$m"
    [[ -z $m || -z $b ]] || sample "ratio.$system" "$(calc "$m / $b")"
    for size in "${sizes_us[@]:0:2}"; do
      sample "points.$system.$size" "$(calc "100 * (${now[bare.$size]} - ${now[$system.$size]})")"
    done
  done
  round_done "$r"
done

figure bare "METG(50 %) of the bare loop, $slots in flight: ms"
figure one "METG(50 %), one process: ms" '<= 0.7'
figure ratio.one "METG(50 %), one process: times the bare loop's" '<= 1.56'
figure two "METG(50 %), mpirun -n 2: ms" '<= 0.9'
figure ratio.two "METG(50 %), mpirun -n 2: times the bare loop's" '<= 2'
for size in "${sizes_us[@]:0:2}"; do
  text="tasks of $(calc "$size / 1000") ms"
  figure "points.one.$size" "$text, one process: points of efficiency below the bare loop" '<= 1'
  figure "points.two.$size" "$text, mpirun -n 2: points of efficiency below the bare loop" '<= 1'
done
for size in "${sizes_us[@]}"; do
  for system in bare one two; do
    figure "$system.$size" "efficiency at $(calc "$size / 1000") ms, $system"
  done
done
