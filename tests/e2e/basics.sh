#!/bin/bash
# The first hour of a user without MPI: run, run again, change one thing, fail, look, stop, replay.
. "$(dirname "$0")/../support/check.sh"
cd "${scratch:?}" || exit
sluice=${sluice:?}

# Each attempt leaves a mark, so that re-runs can be counted from outside.
cat >p.yaml <<YAML
sluice: 1
name: basics
params:
  cases: {type: list, default: [1, 2, 3]}
tasks:
  make:
    foreach: {n: "\${{ params.cases }}"}
    sh: |
      echo "make \$ITEM_n" >>$scratch/ran
      echo "\$ITEM_n" >"\$OUT_part"
      echo "seen on stderr" >&2
    outputs: {part: {file: part.txt}}
  double:
    foreach: {n: "\${{ params.cases }}"}
    sh: |
      echo "double \$ITEM_n" >>$scratch/ran
      echo \$((2 * \$(cat "\$IN_part"))) >"\$OUT_twice"
    inputs: {part: make.part}
    outputs: {twice: {value: int}}
  total:
    sh: |
      echo "total" >>$scratch/ran
      awk '{s += \$1} END {print s}' "\$IN_all" >"\$OUT_sum"
    inputs: {all: double.twice}
    outputs: {sum: {file: sum.txt}, note: {value: string}}
YAML
sed -i '/awk/a\      echo "it worked" >"$OUT_note"' p.yaml
ran() { sort ran 2>/dev/null | tr '\n' ' '; rm -f ran; }

check "run: a small pipeline succeeds" "$sluice" run p.yaml || exit 1
check_equal "run: every instance ran once" "$(ran)" "double 1 double 2 double 3 make 1 make 2 make 3 total "
check_equal "run: the result has the right value" "$(cat p.run/results/total/sum.txt)" 12
check_equal "run: a value without consumer is a result too" "$(cat p.run/results/total/note)" "it worked"
check_equal "run: nothing but results is in results/" "$(cd p.run/results && find . -type f | sort | tr '\n' ' ')" \
  "./total/note ./total/sum.txt "

check "again: succeeds" "$sluice" run p.yaml
check_says "again: says that there is nothing to do" "nothing to do: all 7 instances are done"
check_equal "again: nothing ran" "$(ran)" ""

check "plan: one more case" "$sluice" plan p.yaml --set 'cases=[1, 2, 3, 4]'
check_says "plan: tells what will run and what is up to date" "make: 4 instances, 1 will run, 3 up to date"
check "why: a new instance has never finished" "$sluice" why p.yaml 'make[n=4]' --set 'cases=[1, 2, 3, 4]'
check_says "why: says so" "make\[n=4\]: will run: it has never finished"
check "one more case: succeeds" "$sluice" run p.yaml --set 'cases=[1, 2, 3, 4]'
check_equal "one more case: only what depends on it ran" "$(ran)" "double 4 make 4 total "
check_equal "one more case: the result is right" "$(cat p.run/results/total/sum.txt)" 20

sed -i 's/2 \* /3 * /' p.yaml
check "a changed command: why names it" \
  eval '"$sluice" why p.yaml "double[n=2]" --set "cases=[1, 2, 3, 4]" | grep -q "changed: its command"'
sed 's/{twice: {value: int}}/{twice: {value: int, keep: true}}/; s/part: {file: part.txt}/part: {file: part.txt, keep: true}/' p.yaml >kept.yaml
check "items: results of two tasks with items" "$sluice" run kept.yaml --set 'cases=[1, 2]'
check_equal "items: a table says which result is whose" "$(cat kept.run/results/make/items.tsv kept.run/results/double/items.tsv)" \
  $'n\tpart\n1\tn=1.part.txt\n2\tn=2.part.txt\nn\ttwice\n1\t3\n2\t6'
ran >/dev/null
check "a changed command: succeeds" "$sluice" run p.yaml --set 'cases=[1, 2, 3, 4]'
check_equal "a changed command: its inputs, gone from node memory, are made again, then what follows" \
  "$(ran)" "double 1 double 2 double 3 double 4 make 1 make 2 make 3 make 4 total "
check_equal "a changed command: the result is right" "$(cat p.run/results/total/sum.txt)" 30

check "a comment and other resources change nothing" \
  eval 'sed -i "s/^  total:/  total:   # the end\n    resources: {cpus: 1, memory: 1MiB}/" p.yaml
        "$sluice" run p.yaml --set "cases=[1, 2, 3, 4]"'
check_equal "a comment and other resources: nothing ran" "$(ran)" ""

check "logs: of one instance" "$sluice" logs p.run 'make[n=4]'
check_says "logs: show its stderr" "seen on stderr"
check_status "logs: an unknown task is a usage error" 2 "$sluice" logs p.run nothing

check "status: as text" "$sluice" status p.run
check_says "status: names counts" "all tasks: +9 instances: 9 done$"
check "status: as JSON only on stdout" eval '"$sluice" status p.run --json 2>/dev/null | grep -q "\"done\": 9"'
check_status "status: the run's exit code" 0 "$sluice" status p.run --exit-code

check "replay: the trace gives the run's digest" "$sluice" replay p.run
check_says "replay: says so" "the replay decided as the run did"

check_status "check: a mistake is exit 2" 2 eval 'sed "s/foreach/forech/" p.yaml >bad.yaml; "$sluice" check bad.yaml'
check_says "check: names place and remedy" "bad.yaml:7:5: error: .*forech"
check_status "run: a mistake starts nothing, exit 2" 2 "$sluice" run bad.yaml
check "run: a mistake makes no run directory" test ! -e bad.run
check_status "usage: an unknown option is exit 2" 2 "$sluice" run --nonsense p.yaml
check_status "usage: a missing pipeline is exit 2" 2 "$sluice" run nowhere.yaml

# -- stop in order, and continue ------------------------------------------------------------------
cat >slow.yaml <<YAML
sluice: 1
name: slow
tasks:
  first:
    sh: |
      echo first >>$scratch/ran
      echo 1 >"\$OUT_x"
    outputs: {x: {file: x}}
  second:
    sh: |
      until [[ -e $scratch/go ]]; do read -t 0.05 <> <(:) || true; done
      echo second >>$scratch/ran
      cp "\$IN_x" "\$OUT_y"
    inputs: {x: first.x}
    outputs: {y: {file: y}}
YAML
"$sluice" run slow.yaml 2>slow.err &
run=$!
wait_until 20 eval '"$sluice" status slow.run --json | grep -q "\"done\": 1"'
check_status "two runs in one directory: the second refuses at once" 3 timeout 10 "$sluice" run slow.yaml
check_says "two runs in one directory: it names the first" "process [0-9]+ on host"
check "status: running" eval '"$sluice" status slow.run | grep -q "state: *running"'
check_status "status: a running run has no exit code yet" 4 "$sluice" status slow.run --exit-code
check "stop: is asked for" "$sluice" stop slow.run
status=0
wait "$run" || status=$?
check_equal "stop: the run leaves with 4" "$status" 4
check_status "stop: status agrees" 4 "$sluice" status slow.run --exit-code
check_equal "stop: only the first task ran" "$(ran)" "first "
touch go
check "stop: the next run finishes" "$sluice" run slow.yaml
check_equal "stop: what was sealed was saved, so only the second task ran" "$(ran)" "second "
check_equal "stop: the result is right" "$(cat slow.run/results/second/y)" 1
check_equal "stop: no saved intermediate is left" "$(find slow.run/objects -type f)" ""

for signal in INT TERM USR1; do
  rm -rf slow.run go ran
  "$sluice" run slow.yaml 2>slow.err &
  run=$!
  wait_until 20 eval '"$sluice" status slow.run --json | grep -q "\"done\": 1"'
  kill -$signal "$run"
  status=0
  wait "$run" || status=$?
  check_equal "SIG$signal: stops in order, exit 4" "$status" 4
done
