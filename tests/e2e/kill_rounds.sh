#!/bin/bash
# kill -9 at seeded moments and at named points: nothing is lost, nothing stays, nothing runs twice
# without need.
#
#   SLUICE_SEED=n         the first round's seed (default: from the clock); every round prints its own
#   SLUICE_KILL_ROUNDS=n  how many rounds (default 20, with SLUICE_LONG=1 100)
#
# A round runs the pipeline with three ranks and kills. The dead may be a worker's processes: then
# that run exits 0 by itself. Otherwise it is killed whole, and the same command finishes it and runs
# exactly what tests/support/rerun_minimum.awk says, computed between the two from the journal.
. "$(dirname "$0")/../support/check.sh"
cd "${scratch:?}" || exit
sluice=${sluice:?}
rounds=${SLUICE_KILL_ROUNDS:-$([[ ${SLUICE_LONG:-} == 1 ]] && echo 100 || echo 20)}
first_seed=${SLUICE_SEED:-$((EPOCHSECONDS % 100000))}

if (($(nproc) < 2)); then
  skip "kill rounds" "two workers need two cores"
  exit 0
fi

# ---------------------------------------------------------------- the pipeline

# Every attempt marks the ledger, then computes for a while: numbers that depend on all inputs.
cat >p.yaml <<YAML
sluice: 1
name: kill rounds
tasks:
  make:
    foreach: {k: [a, b], n: {range: [0, 4]}}
    sh: |
      echo "make[k=\$ITEM_k,n=\$ITEM_n]" >>$scratch/ledger
      echo "\$ITEM_k \$ITEM_n" | $scratch/work >"\$OUT_part"
    outputs: {part: {file: part}}
  mid:
    foreach: {k: [a, b], n: {range: [0, 4]}}
    sh: |
      echo "mid[k=\$ITEM_k,n=\$ITEM_n]" >>$scratch/ledger
      $scratch/work <"\$IN_part" >"\$OUT_half"
      head -c 5 "\$OUT_half" >"\$OUT_score"
    inputs: {part: make.part}
    outputs: {half: {file: half}, score: {value: string}}
  mark:
    foreach: {k: [a, b], n: {range: [0, 4]}}
    sh: |
      echo "mark[k=\$ITEM_k,n=\$ITEM_n]" >>$scratch/ledger
      cat "\$IN_part" <(echo "\$IN_score") | $scratch/work >"\$OUT_seen"
    inputs: {part: make.part, score: mid.score}
    outputs: {seen: {file: seen}}
  gather:
    foreach: {k: [a, b]}
    sh: |
      echo "gather[k=\$ITEM_k]" >>$scratch/ledger
      xargs cat <"\$IN_halves" | $scratch/work >"\$OUT_sum"
    inputs: {halves: mid.half}
    outputs: {sum: {file: sum, keep: true}}
  last:
    sh: |
      echo "last" >>$scratch/ledger
      xargs cat <"\$IN_sums" | $scratch/work >"\$OUT_all"
      wc -c <"\$OUT_all" >"\$OUT_size"
    inputs: {sums: gather.sum}
    outputs: {all: {file: all}, size: {value: int}}
YAML
cat >work <<'WORK'
#!/usr/bin/awk -f
{for (i = 1; i <= length($0); ++i) s = (s * 31 + index(" 0123456789abcdefghijklmnopqrstuvwxyz", substr($0, i, 1))) % 65521}
END {
  for (i = 0; i < 200000; ++i) s = (s * 31 + i) % 65521
  for (i = 0; i < 2000; ++i) print 10000 + (s = (s * 31 + i) % 65521)
}
WORK
sed -i "1s|.*|#!$(command -v awk) -f|" work
chmod +x work

{
  for k in a b; do
    for n in 0 1 2 3; do
      item="[k=$k,n=$n]"
      printf '%s\t' makes "make$item" part file && echo
      printf '%s\t' makes "mid$item" half file && echo
      printf '%s\t' makes "mid$item" score value && echo
      printf '%s\t' makes "mark$item" seen result && echo
      printf '%s\t' reads "mid$item" "make$item" part && echo
      printf '%s\t' reads "mark$item" "make$item" part && echo
      printf '%s\t' reads "mark$item" "mid$item" score && echo
      printf '%s\t' reads "gather[k=$k]" "mid$item" half && echo
    done
    printf '%s\t' makes "gather[k=$k]" sum result && echo
    printf '%s\t' reads last "gather[k=$k]" sum && echo
  done
  printf '%s\t' makes last all result && echo
  printf '%s\t' makes last size value && echo
} | sed 's/\t$//' >graph
instances=27

# ---------------------------------------------------------------- killing

# The victims: ROLE RANK, or POINT@RANK, or several. Workers are the ranks above 0.
cases=(
  "sluice-rank 0" "sluice-rank W" "sluice-launch 0" "sluice-launch W" "sluice-guard 0"
  "sluice-guard W" "mpirun -" "sluice-h5 -" "sluice-rank W;sluice-rank V" "sluice-rank 0;sluice-launch W"
  "journal.done.appended@0" "journal.durable.appended@0" "journal.sync.before@0"
  "journal.sync.after@0" "publish.journalled@0" "publish.renamed@0" "lease.claimed@0"
  "store.sealed@W" "publish.saved@W" "store.saved@W"
)

mkfifo never
exec {never}<>never
pause() { read -r -t 0.004 -u "$never" || true; }

# The processes of a role and rank ("-": any), of this script only.
victim_pids() {
  local pid
  for pid in $(check_own_processes); do
    [[ $(cat "/proc/$pid/comm" 2>/dev/null) == "$1" ]] || continue
    if [[ $2 == - ]] || grep -qsz "^OMPI_COMM_WORLD_RANK=$2\$" "/proc/$pid/environ"; then echo "$pid"; fi
  done
}

ledger_lines=0
count_ledger() {
  local lines=()
  if [[ -e ledger ]]; then mapfile -t lines <ledger; fi
  ledger_lines=${#lines[@]}
}

# kill_at LINES RUN VICTIMS: when so many attempts have started; fails if RUN ended before.
kill_at() {
  local victim pid pids=() role rank
  IFS=';' read -ra victims <<<"$3"
  until count_ledger && ((ledger_lines >= $1)); do
    kill -0 "$2" 2>/dev/null || return 1
    pause
  done
  for victim in "${victims[@]}"; do
    read -r role rank <<<"$victim"
    until pid=$(victim_pids "$role" "$rank" | head -n 1) && [[ -n $pid ]]; do
      kill -0 "$2" 2>/dev/null || return 1
    done
    pids+=("$pid")
  done
  kill -9 "${pids[@]}" 2>/dev/null
}

# ---------------------------------------------------------------- one round

run_pipeline() { timeout -k 5 120 mpirun -n 3 --bind-to none "$sluice" run p.yaml; }

# wrong TEXT...: one line about what is not as it must be; a round passes when it wrote none.
wrong() { echo "$*" >>wrong.txt; }

nothing_stays() {
  local pid
  if ! wait_until 15 check_no_own_processes; then
    wrong "after the $1: these processes stay: $(for pid in $(check_own_processes); do
      tr '\0' ' ' <"/proc/$pid/cmdline"
      echo "($pid $(cat "/proc/$pid/comm"));"
    done)"
    for pid in $(check_own_processes); do kill -9 "$pid" 2>/dev/null; done
  fi
  wait_until 5 check_no_left_memory || wrong "after the $1: these files stay: $(check_left_memory)"
}

# What must run again now, see there. A run that was killed early may have made no directory.
rerun_minimum() {
  local journals=()
  : >files
  if [[ -d p.run ]]; then
    find p.run -type f -printf '%P\n' >files
    mapfile -t journals < <(find p.run -name 'journal.*.jsonl' | sort -t. -k3n)
  fi
  awk "$@" -f "${repository:?}/tests/support/rerun_minimum.awk" graph files "${journals[@]}"
}

# After the death of the whole run: the same command, and what it ran.
finish_run() {
  local again=0 status
  sort ledger 2>/dev/null >before
  rerun_minimum >expected
  rm -f ledger
  until "$sluice" status p.run --exit-code >/dev/null 2>&1; do
    if ((++again > 3)); then
      wrong "three more runs do not finish it"
      return
    fi
    status=0
    run_pipeline >"again.$again" 2>&1 || status=$?
    nothing_stays "command number $((again + 1))"
    if [[ $status != 0 ]]; then wrong "command number $((again + 1)) left with $status"; fi
  done
  sort ledger 2>/dev/null >found
  cmp -s expected found || wrong "the next command ran others ('>') than it had to ('<'):" \
    "$(diff expected found | grep '^[<>]' | tr '\n' ' ')"
}

# After the death of one worker: who ran again, and might they?
judge_reruns() {
  local count instance
  rerun_minimum -v until_lost=1 >allowed
  sort ledger | uniq -c >counts
  (($(wc -l <counts) == instances)) || wrong "$(wc -l <counts) of $instances instances ran"
  while read -r count instance; do
    if ((count == 1)); then continue; fi
    grep -qxF "$instance" allowed && ((count == 2)) && continue
    wrong "$instance started $count times; it was settled, or was needed once more at most"
  done <counts
}

# How many attempts more than instances there were.
again() { echo $((($(cat before ledger 2>/dev/null | wc -l)) - instances)); }

strikes=0
play_round() {
  local seed=$1 what=${cases[$1 % ${#cases[@]}]} at run status=0 worker other fault='' survives=false struck
  RANDOM=$seed
  worker=$((1 + RANDOM % 2)) other=$((3 - worker))
  what=${what//W/$worker} what=${what//V/$other}
  rm -rf p.run ledger before wrong.txt again.*
  case $what in
    *\;*) ;;
    *@*) if [[ $what != *@0 ]]; then survives=true; fi ;;
    "sluice-rank 0" | "sluice-launch 0" | sluice-guard* | mpirun*) ;;
    *) survives=true ;;
  esac
  if [[ $what == *@* ]]; then
    at=$((1 + RANDOM % 6))
    if [[ $what == lease* ]]; then at=1; fi
    fault=${what%@*}:$at@${what#*@}
  else
    at=$((RANDOM % (instances + 1)))
  fi
  SLUICE_FAULT=$fault run_pipeline >first 2>&1 &
  run=$!
  struck=no
  if [[ -z $fault ]]; then kill_at "$at" "$run" "$what" && struck=yes; fi
  wait "$run" || status=$?
  if [[ $status != 0 ]] || grep -q 'is lost' first; then struck=yes; fi
  nothing_stays "death"
  if $survives; then
    [[ $status == 0 ]] || wrong "the run left with $status"
    "$sluice" status p.run --exit-code >/dev/null 2>&1 || wrong "its status is $?, not 0"
    judge_reruns
  else
    finish_run
  fi
  diff -r reference p.run/results >differences 2>&1 ||
    wrong "the results differ: $(head -n 3 differences)"
  if [[ $struck == yes ]]; then strikes=$((strikes + 1)); else what+=" (never reached)"; fi
  check_equal "seed $seed: $what at $at: the first run left with $status, $(again) ran again" \
    "$(cat wrong.txt 2>/dev/null)" "" && return
  tail -n 30 first again.* 2>/dev/null | sed 's/^/      | /'
}

check "undisturbed: the run succeeds" run_pipeline || exit 1
check_equal "undisturbed: every instance ran once" "$(sort -u ledger | wc -l) $(wc -l <ledger)" "$instances $instances"
check_equal "undisturbed: the oracle finds nothing to do" "$(rerun_minimum)" ""
mv p.run/results reference
echo "seeds from $first_seed, $rounds rounds"
for ((round = 0; round < rounds; ++round)); do
  play_round $((first_seed + round))
done
check "at least half of the rounds killed somebody" test $((2 * strikes)) -ge "$rounds"
