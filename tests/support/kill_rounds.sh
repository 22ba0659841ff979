# shellcheck shell=bash
# The kill loop, sourced by e2e/kill_rounds.sh (one host) and cluster/kill_rounds.sh (nodes) after
# check.sh: a pipeline, ways to hurt its run at seeded moments and at named points, and the oracle.
#
#   SLUICE_SEED=n         the first round's seed (default: from the clock); every round prints its own
#   SLUICE_KILL_ROUNDS=n  how many rounds
#
# A round starts the pipeline and hurts it. Either the run then ends with status 0 by itself: its
# second attempts must all be among what was lost (rerun_minimum.awk, until_lost=1). Or it ends
# otherwise, is not allowed to hang, and the same command finishes it and runs exactly the set that
# rerun_minimum.awk computes between the two. In both cases the results are those of the undisturbed
# run, and no process, store or shared memory stays.
#
# A case is a line of words. Even seeds take one from the list `blows`, odd ones from `points`:
#
#   kill ROLE RANK [ROLE RANK]   SIGKILL to the processes of that name and rank ("-": any)
#   stop ROLE RANK short|long    SIGSTOP, and SIGCONT before or after somebody minded
#   cut NODE short|long          the network cable out, and in before or after somebody minded
#   power NODE                   every process of the node dies, and nothing says goodbye
#   point NAME:MOST@RANK         SIGKILL at that fault point, at a hit from 1 to MOST (io/fault.h),
#                                or from LEAST where it says LEAST-MOST
#   hang NAME:MOST@RANK          the thread that comes there does not go on
#   kill ... at NAME[@RANK]      two deaths: the second one at that point of who cleans up
#
# W and V are two different workers, N a node that is not the first. A case may begin with `ends`:
# the run may end by this. Without it, it must go on (nodes: see may_end).
#
# The sourcing script says: `rounds`, `blows`, `points`, `failed_once` (cases), `workers`;
# `node_of_n` if there are nodes;
# start_run OUTPUT FAULT (puts the run into the background, its process in $run), own_processes,
# left_memory; after_blow, once the run has ended; may_end, which is true where MPI cannot promise
# that a run survives; mpirun_waits_for_the_dead, which is true if the run has ended but for that.

instances=27
first_seed=${SLUICE_SEED:-$((EPOCHSECONDS % 100000))}
lost_after=4 # the least that --lost-after takes
hang_after=90
pad_bytes=${pad_bytes:-0}

# ---------------------------------------------------------------- the pipeline

# Every attempt marks the ledger, then computes for a while: numbers that depend on all inputs.
write_pipeline() {
  cat >p.yaml <<YAML
sluice: 1
name: kill rounds
tasks:
  make:
    foreach: {k: [a, b], n: {range: [0, 4]}}
    sh: |
      echo "make[k=\$ITEM_k,n=\$ITEM_n]" >>$scratch/ledger
      echo "\$ITEM_k \$ITEM_n" | PAD=$pad_bytes $scratch/work >"\$OUT_part"
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
  # Lines of padding begin with #; of these only the ends and the lengths count.
  cat >work <<'WORK'
#!/usr/bin/awk -f
function add(text,    i) {
  for (i = 1; i <= length(text); ++i)
    s = (s * 31 + index(" 0123456789abcdefghijklmnopqrstuvwxyz", substr(text, i, 1))) % 65521
}
/^#/ {s = (s * 31 + length($0)) % 65521; add(substr($0, 1, 8) substr($0, length($0) - 7)); next}
{add($0)}
END {
  for (i = 0; i < 150000; ++i) s = (s * 31 + i) % 65521
  for (i = 0; i < 1000; ++i) print 10000 + (s = (s * 31 + i) % 65521)
  for (line = "#" s; length(line) < 1000; line = line s) continue
  for (i = 0; i < ENVIRON["PAD"]; i += length(line) + 7) print line (100000 + i)
}
WORK
  sed -i "1s|.*|#!$(command -v awk) -f|" work
  chmod +x work
}

write_graph() {
  local k n item
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
}

# ---------------------------------------------------------------- looking and waiting

mkfifo never
exec {never}<>never
pause() { read -r -t "$1" -u "$never" || true; }

# Not by kill -0: for that the shell must have reaped it, and under load bash 5.2 once stopped doing so.
running() {
  local stat=''
  read -r stat 2>/dev/null <"/proc/$run/stat"
  stat=${stat##*) }
  [[ -n $stat && $stat != [ZX]* ]]
}

# await SECONDS COMMAND...: until it succeeds, the run has ended, or the time is over.
await() {
  local end=$((SECONDS + $1))
  shift
  until "$@"; do
    running && ((SECONDS < end)) || return 1
    # The moment of a blow is to be anywhere; the rest must not take the time of the run.
    if [[ $1 == ledger_has ]]; then pause 0.005; else pause 0.03; fi
  done
}

# The run's processes of a role and rank ("-": any).
victim_pids() {
  local pid name
  for pid in $(own_processes); do
    read -r name 2>/dev/null <"/proc/$pid/comm" || continue
    [[ $name == "$1" ]] || continue
    if [[ $2 == - ]] || grep -qsz "^OMPI_COMM_WORLD_RANK=$2\$" "/proc/$pid/environ"; then echo "$pid"; fi
  done
}

ledger_lines=0
count_ledger() {
  local lines=()
  if [[ -e ledger ]]; then mapfile -t lines <ledger; fi
  ledger_lines=${#lines[@]}
}
ledger_has() { count_ledger && ((ledger_lines >= $1)); }
is_said() { [[ $(<first) =~ $1 ]]; }

# Rank 0 beats once a second: its own time, so to say.
beats() {
  local lease=''
  if [[ -e p.run/lease.json ]]; then lease=$(<p.run/lease.json); fi
  if [[ $lease =~ \"counter\":\ *([0-9]+) ]]; then echo "${BASH_REMATCH[1]}"; else echo 0; fi
}
has_beaten() { (($(beats) >= $1)); }
find_victim() { victim=$(victim_pids "$1" "$2" | head -n 1) && [[ -n $victim ]]; }
# find_victims ROLE RANK...: long before the blow, which is not to come late. A cable and a node are
# there from the beginning, but a run that is not yet is no run to be cut.
victims=()
find_victims() {
  local victim
  victims=()
  while (($# >= 2)) && [[ $1 != at ]]; do
    await 60 find_victim "$1" "$2" || return 1
    victims+=("$victim")
    shift 2
  done
}
worker_is_gone() { [[ -z $(victim_pids sluice-rank 1) ]]; }

# ---------------------------------------------------------------- blows

# The arguments are the case's words behind the first.
blow_kill() { kill -9 "${victims[@]}" 2>/dev/null; }

# Somebody minds a rank that says nothing; a launcher or a guard is missed by nobody.
blow_stop() {
  local role=$1 rank=$2 long=$3 now
  kill -STOP "${victims[0]}" 2>/dev/null || return 1
  now=$(beats)
  case $role$rank,$long in
    sluice-rank0,long) await 60 worker_is_gone ;;
    sluice-rank0,short) await 2 false ;;
    sluice-rank*,long) await 60 is_said "worker $rank .*is lost" ;;
    *,long) await 60 has_beaten $((now + lost_after + 2)) ;;
    *) await 10 has_beaten $((now + 1)) ;;
  esac
  if [[ $role$rank,$long == sluice-rank0,long ]]; then await 60 false; fi
  kill -CONT "${victims[0]}" 2>/dev/null
  return 0
}

blow_cut() {
  local now
  node_cut "$1"
  now=$(beats)
  if [[ $2 == long ]]; then
    await 60 is_said "is lost"
  else
    await 10 has_beaten $((now + 2))
  fi
  node_join "$1"
}

blow_power() { node_kill "$1"; }

# ---------------------------------------------------------------- the oracle

# wrong TEXT...: one line about what is not as it must be; a round passes when it wrote none.
wrong() { echo "$*" >>wrong.txt; }
no_own_processes() { [[ -z $(own_processes) ]]; }
no_left_memory() { [[ -z $(left_memory) ]]; }

no_process_stays() {
  local pid
  wait_until 15 no_own_processes && return
  wrong "after the $1: these processes stay: $(for pid in $(own_processes); do
    tr '\0' ' ' <"/proc/$pid/cmdline"
    echo "($pid $(cat "/proc/$pid/comm"));"
  done)"
  for pid in $(own_processes); do kill -9 "$pid" 2>/dev/null; done
}
no_memory_stays() {
  local left
  wait_until 15 no_left_memory && return
  left=$(left_memory) # other runs on this machine come and go: theirs may be new at each look
  if [[ -n $left ]]; then wrong "after the $1: these files stay: $left"; fi
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

is_done() { "${sluice:?}" status p.run --exit-code >/dev/null 2>&1; }

# await_end WHAT: its status in $status. A run that does not end is ended, and that is wrong.
await_end() {
  local pid pids signal
  status=0
  await "$hang_after" mpirun_waits_for_the_dead || true
  for signal in TERM KILL; do
    if running && mpirun_waits_for_the_dead; then
      for pid in $(victim_pids mpirun -); do kill -$signal "$pid"; done
      await 20 false || true
    fi
  done
  if running; then
    mapfile -t pids < <(own_processes)
    wrong "the $1 hangs: ${#pids[@]} processes"
    kill -9 "${pids[@]}" 2>/dev/null
  fi
  wait "$run" 2>/dev/null || status=$?
}

# After the end of a hurt run: the same command, and what it ran.
finish_run() {
  local again=0 run
  sort ledger 2>/dev/null >before
  rerun_minimum >expected
  rm -f ledger
  while ((again == 0)) || ! is_done; do
    if ((again == 0)) && is_done && ! $two_deaths; then break; fi
    if ((++again > 3)); then
      wrong "three more runs do not finish it"
      return
    fi
    start_run "again.$again" ''
    await_end "command number $((again + 1))"
    no_process_stays "command number $((again + 1))"
    no_memory_stays "command number $((again + 1))"
    if [[ $status != 0 ]]; then wrong "command number $((again + 1)) left with $status"; fi
  done
  sort ledger 2>/dev/null >found
  cmp -s expected found || wrong "the next command ran others ('>') than it had to ('<'):" \
    "$(diff expected found | grep '^[<>]' | tr '\n' ' ')"
}

# After a run that went on: who ran again, and might they?
judge_reruns() {
  local count instance losses
  rerun_minimum -v until_lost=1 >allowed
  losses=$(cat p.run/journal.*.jsonl | grep -c '"t":"worker".*"state":"lost"')
  sort ledger | uniq -c >counts
  (($(wc -l <counts) == instances)) || wrong "$(wc -l <counts) of $instances instances ran"
  while read -r count instance; do
    if ((count == 1)); then continue; fi
    grep -qxF "$instance" allowed && ((count <= 1 + losses)) && continue
    wrong "$instance started $count times; it was settled, or was needed once more at most"
  done <counts
}

# How many attempts more than instances there were.
more_attempts() { echo $((($(cat before ledger 2>/dev/null | wc -l)) - instances)); }

# ---------------------------------------------------------------- one round

strikes=0 ended=0

# choose_case SEED [CASE]: fills `words`, `what`, `at`, `fault`, `must_go_on`, `two_deaths`.
choose_case() {
  local worker other list least
  RANDOM=$1
  worker=${workers[RANDOM % ${#workers[@]}]}
  until other=${workers[RANDOM % ${#workers[@]}]} && ((other != worker)); do :; done
  if (($1 % 2)); then list=("${points[@]}"); else list=("${blows[@]}"); fi
  what=${2:-${list[$1 / 2 % ${#list[@]}]}}
  what=${what//W/$worker} what=${what//V/$other}
  if [[ $what == *N* && -v nodes_to_hurt ]]; then what=${what//N/${nodes_to_hurt[RANDOM % ${#nodes_to_hurt[@]}]}}; fi
  must_go_on=true two_deaths=false fault=''
  if [[ $what == "ends "* ]]; then must_go_on=false what=${what#ends }; fi
  read -ra words <<<"$what"
  if [[ $what == point* || $what == hang* ]]; then
    fault=${words[1]%%:*}
    if [[ $what == hang* ]]; then fault=hang=$fault; fi
    at=${words[1]#*:} && at=${at%@*} && least=1
    if [[ $at == *-* ]]; then least=${at%-*} at=${at#*-}; fi
    at=$((least + RANDOM % (at - least + 1)))
    if [[ $what == *@* ]]; then fault+=:$at@${what#*@}; else fault+=:$at; fi
  else
    at=$((RANDOM % (instances - 3)))
    if [[ $what == *" at "* ]]; then two_deaths=true fault=${what##* at }; fi
  fi
}

play_round() {
  local seed=$1 words what at fault must_go_on two_deaths run status left_with struck=no began=$SECONDS
  choose_case "$seed" "${2:-}"
  rm -rf p.run ledger before wrong.txt again.*
  start_run first "$fault"
  case ${words[0]} in
    point | hang) ;;
    cut | power) find_victims sluice-rank 0 ;;
    *) find_victims "${words[@]:1}" ;;
  esac
  # Before all have joined a death is the end of the run: they wait for each other in MPI_Init.
  if $must_go_on; then await 60 is_said ' workers, '; fi
  if [[ $what != point* && $what != hang* ]] && await 60 ledger_has "$at"; then
    "blow_${words[0]}" "${words[@]:1}" && struck=yes
  fi
  await_end "run"
  left_with=$status
  after_blow
  if [[ $status != 0 ]] || is_said 'is lost'; then struck=yes; fi
  no_process_stays "death"
  $two_deaths || no_memory_stays "death"
  if [[ $status == 0 ]] && is_done; then
    judge_reruns
    if $two_deaths; then finish_run; fi
  else
    ended=$((ended + 1))
    if $must_go_on && ! may_end; then wrong "the run left with $status"; fi
    finish_run
  fi
  diff -r reference p.run/results >differences 2>&1 ||
    wrong "the results differ: $(head -n 3 differences)"
  if [[ $struck == yes ]]; then strikes=$((strikes + 1)); else what+=" (never reached)"; fi
  check_equal "seed $seed: $what, $at: the first run left with $left_with, $(more_attempts) ran again, $((SECONDS - began)) s" \
    "$(cat wrong.txt 2>/dev/null)" "" && return
  tail -n 30 first again.* 2>/dev/null | sed 's/^/      | /'
  if [[ -n ${SLUICE_KEEP:-} ]]; then cp -r p.run ledger before first "$SLUICE_KEEP" 2>/dev/null; fi
}

# The reference, then all rounds.
play_rounds() {
  local run status case
  write_pipeline
  write_graph | sed 's/\t$//' >graph
  start_run first ''
  await_end "run"
  check_equal "undisturbed: the run succeeds" "$status" 0 || { cat first && exit 1; }
  check_equal "undisturbed: every instance ran once" "$(sort -u ledger | wc -l) $(wc -l <ledger)" "$instances $instances"
  check_equal "undisturbed: the oracle finds nothing to do" "$(rerun_minimum)" ""
  mv p.run/results reference
  # What once failed, always.
  if [[ -z ${SLUICE_SEED:-} ]]; then
    for case in "${failed_once[@]}"; do play_round "$first_seed" "$case"; done
    strikes=0 ended=0
  fi
  echo "seeds from $first_seed, $rounds rounds"
  for ((round = 0; round < rounds; ++round)); do
    play_round $((first_seed + round))
  done
  check "at least half of the rounds struck somebody" test $((2 * strikes)) -ge "$rounds"
  echo "$strikes of $rounds rounds struck, $ended runs ended by it, ${SECONDS} s"
}
