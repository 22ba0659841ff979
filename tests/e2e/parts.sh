#!/bin/bash
# Running a part, forcing, starting over, stopping after enough failures; order without data and
# retries that change the next attempt.
. "$(dirname "$0")/../support/check.sh"
cd "${scratch:?}" || exit
sluice=${sluice:?}

cat >p.yaml <<YAML
sluice: 1
tasks:
  prepare: {sh: "echo prepare >>$scratch/ran"}
  make:
    foreach: {n: [1, 2, 3]}
    after: [prepare]
    sh: |
      echo "make \$ITEM_n" >>$scratch/ran
      echo "\$ITEM_n" >"\$OUT_part"
    outputs: {part: {file: part.txt}}
  total:
    sh: |
      echo "total" >>$scratch/ran
      cat \$(cat "\$IN_all") >"\$OUT_sum"
    inputs: {all: make.part}
    outputs: {sum: {file: sum.txt}}
YAML
ran() { sort ran 2>/dev/null | tr '\n' ' '; rm -f ran; }

check "plan: of a part" "$sluice" plan p.yaml --only 'make[n=2]'
check_says "plan: tells what is left out" "make: 3 instances, 1 will run, 2 left out"
check "only: one item and what it comes after" "$sluice" run p.yaml --only 'make[n=2]'
check_equal "only: nothing else ran" "$(ran)" "make 2 prepare "
check "until: a task and what it needs" "$sluice" run p.yaml --until make
check_equal "until: ran what was missing" "$(ran)" "make 1 make 3 "
check "until: status" "$sluice" status p.run
check_says "until: what was left out does not wait" "total +1 instance: 0 done, 1 left out"
check "all: the rest" "$sluice" run p.yaml
check_equal "all: ran the rest, from saved files" "$(ran)" "total "
check_equal "all: the result is right" "$(tr '\n' ' ' <p.run/results/total/sum.txt)" "1 2 3 "
check "replay: a run of a part gives the same decisions" "$sluice" replay p.run

check "force: one instance again" "$sluice" run p.yaml --force 'make[n=3]'
check_equal "force: its consumer does not run, the bytes are equal" "$(ran)" "make 3 "
check "dry run: ends well" "$sluice" run p.yaml -n --force total
check_says "dry run: shows the plan" "total: 1 instance, 1 will run"
check_equal "dry run: runs nothing" "$(ran)" ""

# An input that the task before made is no reason to run again, order is not data.
sed -i 's/echo prepare/echo  prepare/' p.yaml
check "after: what came before has changed" "$sluice" run p.yaml
check_equal "after: only that runs" "$(ran)" "prepare "

check "fresh: everything again" "$sluice" run p.yaml --fresh
check_equal "fresh: ran all" "$(ran)" "make 1 make 2 make 3 prepare total "
check "fresh: is done then" "$sluice" run p.yaml
check_equal "fresh: nothing more" "$(ran)" ""

check_status "only: a task that is not there" 2 "$sluice" run p.yaml --only mak
check_says "only: says what was meant" "did you mean 'make'?"
check_status "only: an item that is not there" 2 "$sluice" run p.yaml --only 'make[n=9]'
check_says "only: says what there is" "no instance of 'make' has n=9; there are make.n=1."
check_status "max-failures: nonsense" 2 "$sluice" run p.yaml --max-failures lots
check_says "max-failures: says what is expected" "such as 5%"

# UC-081: by default the others go on; --max-failures stops early.
cat >f.yaml <<YAML
sluice: 1
tasks:
  bad:
    foreach: {n: {range: [0, 60]}}
    sh: echo "\$ITEM_n" >>$scratch/ran; sleep 0.05; exit 3
YAML
check_status "max-failures: ends with 1" 1 "$sluice" run f.yaml --max-failures 2
check_says "max-failures: says why" "nothing new starts"
check "max-failures: most was not started" test "$(wc -l <ran)" -lt 30
rm -f ran

# The first two attempts end with 75; the third is in time. UC-072, UC-073
cat >r.yaml <<YAML
sluice: 1
tasks:
  busy:
    sh: |
      echo x >>$scratch/tries
      [ "\$(wc -l <$scratch/tries)" -ge 3 ] || exit 75
    retry: {exit: {max: 5, codes: [75], delay: 100ms}}
  slow:
    sh: |
      echo x >>$scratch/slow
      [ "\$(wc -l <$scratch/slow)" -ge 2 ] || sleep 60
    timeout: 1s
    retry: {timeout: {max: 1, timeout: x60}}
YAML
check "retry: with a delay and with more time" "$sluice" run r.yaml
check_equal "retry: three attempts" "$(wc -l <tries)" 3
check "retry: the journal tells what came next" grep -q "tried again in 100ms" r.run/journal.1.jsonl
check "retry: and that there was more time" grep -q "the next attempt may take 1m" r.run/journal.1.jsonl
