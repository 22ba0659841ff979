#!/bin/bash
# Programs that fight: fork bombs, processes that hop from one id to the next, that leave their
# group and session, close what they were given, ignore every signal, write without end. They end
# with their attempt, the run says of each what happened, and their neighbours' results are right.
. "$(dirname "$0")/../support/check.sh"
cd "${scratch:?}" || exit
sluice=${sluice:?}

# The neighbours of every hostile task here: sums that this script knows, too.
neighbours='
  good:
    foreach: {n: {range: [0, 12]}}
    sh: seq "$ITEM_n" 1000 | cksum >"$OUT_sum"
    outputs: {sum: {file: sum}}
  all:
    sh: cat $(cat "$IN_sums") >"$OUT_all"
    inputs: {sums: good.sum}
    outputs: {all: {file: all}}'
for ((n = 0; n < 12; n++)); do seq "$n" 1000 | cksum; done >expected

# hop.sh COUNTER: starts itself again and ends, some thousand times: there is always one process,
# never for long. bomb.sh DEPTH COUNTER: twice itself, in sessions of their own.
cat >hop.sh <<'SH'
#!/bin/bash
trap '' TERM HUP INT
printf x >>"$1"
(($(stat -c %s "$1") < 20000)) || exit 0
setsid "$0" "$1" </dev/null >/dev/null 2>&1 &
SH
cat >bomb.sh <<'SH'
#!/bin/bash
trap '' TERM HUP INT QUIT USR1 USR2
printf x >>"$2"
if (($1 > 0)); then
  setsid "$0" $(($1 - 1)) "$2" &
  "$0" $(($1 - 1)) "$2" &
fi
while :; do wait; read -t 1 <> <(:) || true; done
SH
chmod +x hop.sh bomb.sh
cat >processes.yaml <<YAML
sluice: 1
name: hostile processes
tasks:
  hop:
    sh: |
      setsid "\$PIPELINE_DIR/hop.sh" $scratch/hops </dev/null >/dev/null 2>&1 &
      until [[ -s $scratch/hops ]] && ((\$(stat -c %s $scratch/hops) > 20)); do :; done
      exit 5
  hop_on:
    run: bash -c 'setsid ./hop.sh $scratch/hops_on; while :; do wait; read -t 1 <> <(:) || true; done'
    cwd: pipeline
    timeout: 2s
    grace: 200ms
  bomb:
    sh: |
      "\$PIPELINE_DIR/bomb.sh" 6 $scratch/bombs &
      until [[ -s $scratch/bombs ]] && ((\$(stat -c %s $scratch/bombs) >= 127)); do read -t 0.1 <> <(:) || true; done
      exit 6
  closes:
    sh: |
      echo fine >"\$OUT_x"
      for fd in {0..255}; do eval "exec \$fd>&-"; done 2>/dev/null
    outputs: {x: {file: x}}
  closes_and_stays:
    sh: |
      for fd in {0..255}; do eval "exec \$fd>&-"; done 2>/dev/null
      while :; do :; done
    timeout: 1s
    grace: 200ms
  own_group:
    sh: |
      set -m
      bash -c 'trap "" TERM HUP; while :; do read -t 1 <> <(:) || true; done' </dev/null &
      echo "\$!" >"\$OUT_pid"
    outputs: {pid: {file: pid}}
  own_session:
    sh: |
      (setsid bash -c 'trap "" TERM HUP; echo \$\$ >pid; while :; do read -t 1 <> <(:) || true; done' &) </dev/null
      until [[ -s pid ]]; do :; done
    outputs: {pid: {file: pid}}
  ignores:
    run: bash -c 'trap "" TERM HUP INT QUIT USR1 USR2 PIPE; while :; do read -t 1 <> <(:) || true; done'
    timeout: 1s
    grace: 300ms
  kills_its_group:
    sh: kill -KILL 0$neighbours
YAML
check_status "hostile processes: the run ends with 1" 1 timeout 120 "$sluice" run processes.yaml
cp output processes.txt
says() { grep -qE -- "$1" processes.txt; }
check "neighbours: their results are right" cmp expected processes.run/results/all/all
check "a chain of processes: the task's own end is what is told" says 'hop: .*exit 5'
check "a chain of processes: one that goes on meets the timeout" says 'hop_on: .*timeout'
check_equal "a fork bomb: it had its 127 processes" "$(stat -c %s bombs)" 127
check "a fork bomb: the task's own end is what is told" says 'bomb: .*exit 6'
check "all descriptors closed: what was written counts" grep -q fine processes.run/results/closes/x
check "all descriptors closed: the timeout finds it" says 'closes_and_stays: .*timeout'
check "a group of its own: it is gone" eval '! kill -0 "$(cat processes.run/results/own_group/pid)"'
check "a session of its own: it is gone" eval '! kill -0 "$(cat processes.run/results/own_session/pid)"'
check "every signal ignored: it meets the timeout" says 'ignores: .*timeout'
check "a task that kills its group kills itself only" says 'kills_its_group: .*signal 9'
check "the run: what failed is counted, and nothing else did" \
  eval '"$sluice" status processes.run | grep -q "6 failed"'
hops=$(stat -c %s hops hops_on)
check "the chains stopped where they were" \
  eval '[[ $(stat -c %s hops hops_on) == "$hops" ]] && (($(stat -c %s hops_on) < 20000))'

# -- who starts us ignores or blocks what we wait for ---------------------------------------------
cat >inherited.yaml <<YAML
sluice: 1
name: inherited
tasks: {all: {sh: echo fine >"\$OUT_x", outputs: {x: {file: x}}}}
YAML
for signals in --ignore-signal=CHLD --block-signal=CHLD --ignore-signal --block-signal; do
  rm -rf inherited.run
  check_status "inherited signals: a run under env $signals succeeds" 0 \
    timeout -k 1 60 env "$signals" "$sluice" run inherited.yaml
done

# -- a fork bomb against the limit of its user ----------------------------------------------------
# The limit counts what the user has anywhere, so this is a user that nobody else is.
if [[ $(id -u) == 0 ]] && command -v setpriv >/dev/null; then
  user=$((50000 + $$ % 10000))
  mkdir theirs
  cp "$sluice" "$build/sluice-h5" hop.sh theirs
  cat >theirs/limit.yaml <<YAML
sluice: 1
name: limit
tasks:
  bomb:
    sh: |
      # A shell that may not fork tries again and again: each of these does, for ever.
      set +e
      for ((i = 0; i < 1000; i++)); do
        bash -c 'trap "" TERM; while :; do (:) & done' </dev/null >/dev/null 2>&1 &
        [[ -e full ]] && break
        ( : ) || { touch full; break; }
      done
      while :; do wait; done
    timeout: 6s
    grace: 200ms
  good:
    foreach: {n: {range: [0, 12]}}
    sh: seq "\$ITEM_n" 1000 | cksum >"\$OUT_sum"
    outputs: {sum: {file: sum}}
    retry: {exit: {max: 5}, signal: {max: 5}, setup: {max: 5}}
YAML
  chown -R "$user" theirs
  chmod 755 "$scratch"
  as_user() {
    setpriv --reuid="$user" --regid="$user" --clear-groups env -C theirs TMPDIR="$scratch/theirs" \
      HOME="$scratch/theirs" "$@"
  }
  # So many beside its own: the launcher, the rank and the neighbours must live with what is left.
  as_user bash -c 'ulimit -u 60; exec timeout 120 ./sluice run limit.yaml' >limit.txt 2>&1
  status=$?
  check_equal "a fork bomb at the limit: the run ends, with 1" "$status" 1 || cat limit.txt
  check "a fork bomb at the limit: it is named" grep -qE 'bomb: .*(timeout|exit|signal)' limit.txt
  for ((n = 0; n < 12; n++)); do cat "theirs/limit.run/results/good/n=$n.sum"; done >found
  check "a fork bomb at the limit: the neighbours' results are right" cmp expected found
  check "a fork bomb at the limit: nothing of that user stays" \
    wait_until 10 eval '[[ -z $(ps -o pid= -u "$user") ]]'
else
  skip "a fork bomb at the limit of its user" "needs root and setpriv"
fi

# -- descriptors ----------------------------------------------------------------------------------
# Guard, launcher and rank hold as many after 200 attempts of every kind as after 20. Who counts has
# the whole node, so nothing else runs then.
work='
    retry: {exit: {max: 1}, signal: {max: 1}, output: {max: 1}}
    sh: |
      tried=$PIPELINE_DIR/tried.$ITEM_n
      case $((ITEM_n % 5)) in
        0) [[ -e $tried ]] || { touch "$tried"; exit 3; } ;;
        1) head -c 100000 /dev/zero; head -c 100000 /dev/zero >&2 ;;
        2) sleep 600 & ;;
        3) [[ -e $tried ]] || { touch "$tried"; kill -KILL $$; } ;;
        4) [[ -e $tried ]] || { touch "$tried"; exit 0; } ;;
      esac
      echo "$ITEM_n" >"$OUT_x"
      mkdir "$OUT_d"
      echo 1 >"$OUT_v"
    outputs: {x: {file: x}, d: {dir: d}, v: {value: int}}'
count='
    resources: {cpus: '$(nproc)'}
    sh: |
      launcher=$PPID
      guard=$(ps -o ppid= -p "$launcher")
      rank=$(pgrep -P "$launcher" -x sluice-rank)
      for pid in $guard $launcher $rank; do ls "/proc/$pid/fd" | wc -l; done
    stdout: count
    outputs: {count: {file: count}}'
{
  printf 'sluice: 1\nname: descriptors\ntasks:\n'
  printf '  early:\n    foreach: {n: {range: [0, 20]}}%s\n' "$work"
  printf '  before:\n    after: [early]%s\n' "$count"
  printf '  late:\n    foreach: {n: {range: [20, 200]}}\n    after: [before]%s\n' "$work"
  printf '  behind:\n    after: [late]%s\n' "$count"
} >fds.yaml
check "descriptors: the run succeeds" timeout 200 "$sluice" run fds.yaml
check_equal "descriptors: three processes are counted" "$(wc -l <fds.run/results/before/count)" 3
check_equal "descriptors: guard, launcher and rank hold no more after 180 attempts more" \
  "$(tr '\n' ' ' <fds.run/results/behind/count)" "$(tr '\n' ' ' <fds.run/results/before/count)"

# -- an endless stderr ----------------------------------------------------------------------------
# 22 GB on stderr filled a disk elsewhere (UC-045): 300 MB here, 2 GB in the long runs.
bytes=300000000
[[ ${SLUICE_LONG:-} != 1 ]] || bytes=2000000000
cat >loud.yaml <<YAML
sluice: 1
name: loud
tasks:
  loud:
    sh: |
      echo "the first words" >&2
      yes "warning: step did not converge, going on with the last value" | head -c $bytes >&2 || true
      echo "the last words" >&2
      exit 9$neighbours
YAML
check_status "an endless stderr: the run ends with 1" 1 timeout 300 "$sluice" run loud.yaml
cp output loud.txt
check "an endless stderr: the end of it is shown, once" \
  test "$(grep -c 'the last words' loud.txt)" = 1 -a "$(wc -c <loud.txt)" -lt 10000
check "an endless stderr: its neighbours' results are right" cmp expected loud.run/results/all/all
check "an endless stderr: at most 11 MB are kept of it" test "$(du -sb loud.run | cut -f 1)" -lt 11000000
check "an endless stderr: its log begins and ends as it did, and says what is missing" eval \
  '"$sluice" logs loud.run loud >log.txt && grep -q "the first words" log.txt &&
   grep -q "the last words" log.txt &&
   grep -q "$((bytes + 31 - 10485760)) bytes are not kept" log.txt'
