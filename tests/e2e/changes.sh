#!/bin/bash
# What the verbs say and what a run does agree, whatever was changed in between: items that come and
# go, results that move, parameters that are set and set back, runs from scratch.
. "$(dirname "$0")/../support/check.sh"
cd "${scratch:?}" || exit
sluice=${sluice:?}
json() { python3 -c "import json,sys; d=json.load(sys.stdin); print($1)"; }
counts() { "$sluice" plan "$@" --json | json 'd["will_run"], d["may_run"], d["up_to_date"]'; }

# ---------------------------------------------------------------- which items a list is made of

cat >items.yaml <<'YAML'
sluice: 1
params: {grids: {type: list, default: [64, 128]}}
tasks:
  gen:
    foreach: {grid: "${{ params.grids }}"}
    sh: echo true >"$OUT_ok"; echo same >"$OUT_part"
    outputs: {ok: {value: bool}, part: {file: part}}
  table:
    sh: cut -f 1 "$IN_ok_ITEMS" >"$OUT_t"; cut -f 1 "$IN_part_ITEMS" >>"$OUT_t"
    inputs: {ok: gen.ok, part: gen.part}
    outputs: {t: {file: t}}
YAML
check "items: runs" "$sluice" run items.yaml
check_equal "items: a list names its items" "$(xargs <items.run/results/table/t)" "grid 64 128 grid 64 128"
check "items: another item of the same content" "$sluice" run items.yaml --set 'grids=[64, 256]'
check_equal "items: shows in what is made of the list" "$(xargs <items.run/results/table/t)" "grid 64 256 grid 64 256"
check_equal "items: nothing is to do then" "$(counts items.yaml --set 'grids=[64, 256]')" "0 0 3"
check "items: why in another order" "$sluice" why items.yaml table --set 'grids=[256, 64]'
check_says "items: the order of a list counts" "changed: what input 'ok' is made of"
check "items: another order" "$sluice" run items.yaml --set 'grids=[256, 64]'
check_equal "items: the list is in that order" "$(xargs <items.run/results/table/t)" "grid 256 64 grid 256 64"

# ---------------------------------------------------------------- set and set back

cat >back.yaml <<'YAML'
sluice: 1
params: {x: {type: int, default: 1}}
tasks:
  t:
    sh: '[[ $PARAM_x == 1 ]] && echo "$PARAM_x" >"$OUT_o"'
    outputs: {o: {file: o}}
  after_t:
    sh: cp "$IN_o" "$OUT_p"
    inputs: {o: t.o}
    outputs: {p: {file: p}}
YAML
check "back: runs" "$sluice" run back.yaml
check_status "back: fails with another value" 1 "$sluice" run back.yaml --set x=2
check_equal "back: the failure is known" "$("$sluice" status back.run --json | json 'len(d["failures"]), d["counts"]["failed"]')" "1 1"
check "back: why, by the run directory, asks with that value" "$sluice" why back.run t
check_says "back: with the value of that run" "changed: param 'x'"
check_says "back: how it ended" "attempt 2\.1 ended by exit 1"
check "back: the first value again" "$sluice" run back.yaml
check_says "back: nothing was to do" "nothing to do"
check_equal "back: the failure is history" \
  "$("$sluice" status back.run --json | json 'len(d["failures"]), d["counts"]["failed"], d["counts"]["done"]')" "0 0 2"
check_equal "back: in the table too" "$("$sluice" status back.run --tsv | cut -f 1,3 | xargs)" "task state t done after_t done"
check "back: why" "$sluice" why back.run after_t
check_says "back: nothing is said of a skip" "^after_t: up to date"
check_equal "back: nothing is said of a skip at all" "$(grep -c skipped output)" 0
sed -i '/^params/d; s/\[\[ .* \]\] && echo "$PARAM_x"/echo 1/' back.yaml
check "back: a param that is gone does not stand in the way of why" "$sluice" why back.run t

cat >gone.yaml <<'YAML'
sluice: 1
params: {k: {type: list, default: [a, bad]}}
tasks:
  t:
    foreach: {k: "${{ params.k }}"}
    sh: '[[ $ITEM_k != bad ]] && echo 1 >"$OUT_o"'
    outputs: {o: {file: o}}
YAML
check_status "gone: one fails" 1 "$sluice" run gone.yaml
check "gone: without it all is done" "$sluice" run gone.yaml --set 'k=[a]'
check_equal "gone: its failure is not of this pipeline any more" \
  "$("$sluice" status gone.run --json | json 'len(d["failures"]), d["counts"]["failed"]')" "0 0"
check "gone: report" "$sluice" report gone.run
check_equal "gone: nothing is failed now" "$(grep -c 'failed by it now' output)" 0

# ---------------------------------------------------------------- from scratch

check_equal "fresh: without it one would run" "$(counts back.yaml)" "1 1 0"
"$sluice" run back.yaml >/dev/null 2>&1
check_equal "fresh: the plan of a fresh run has all of it" \
  "$("$sluice" run back.yaml -n --fresh --json | json 'd["will_run"], d["up_to_date"]')" "2 0"
check_status "fresh: run -n looks at --max-failures as run does" 2 "$sluice" run back.yaml -n --max-failures lots

# ---------------------------------------------------------------- results that move

cat >move.yaml <<'YAML'
sluice: 1
params: {count: {type: int, default: 3}}
tasks:
  part:
    foreach: {n: {range: [0, "${{ params.count }}"]}}
    sh: echo "$ITEM_n" >"$OUT_o"
    outputs: {o: {file: o, keep: true}}
  sum:
    sh: xargs cat <"$IN_all" | wc -l >"$OUT_s"
    inputs: {all: part.o}
    outputs: {s: {file: s}}
YAML
check "move: three items" "$sluice" run move.yaml
mkdir -p move.run/results/part/00000 && mv move.run/results/part/n=*.o move.run/results/part/00000
check "move: files that lie where a bucket would put them" "$sluice" run move.yaml
check_equal "move: as planned" "$(counts move.yaml)" "0 0 4"
if [[ ${SLUICE_LONG:-} == 1 ]]; then
  check "move: 1000 items" "$sluice" run move.yaml --set count=1000
  check_equal "move: with one more the results go into buckets, and one runs" \
    "$(counts move.yaml --set count=1001)" "2 0 1000"
  check "move: and so it is" "$sluice" run move.yaml --set count=1001
  check_says "move: two ran" "\(2 ran now\)"
fi

# ---------------------------------------------------------------- nothing at all

: >empty.txt
cat >empty.yaml <<'YAML'
sluice: 1
tasks:
  first: {sh: echo 1}
  none:
    foreach: {p: {lines: empty.txt}, allow_empty: true}
    sh: echo "$ITEM_p"
YAML
check "empty: a plan with commands of a task without instances" "$sluice" plan empty.yaml -v
check_equal "empty: shows none of its commands" "$(grep -c 'ITEM_p' output)" 0
check_status "empty: why such a task" 2 "$sluice" why empty.yaml none
check_says "empty: it has no instances" "task 'none' has no instances"

# ---------------------------------------------------------------- lists of commands

printf 'echo one\nfalse two\n' >list.txt
check_status "list: one fails" 1 "$sluice" run --commands list.txt
check "list: why, by the run directory" "$sluice" why list.run 'command[line=false two]'
check_says "list: how it ended" "ended by exit 1"
check_equal "list: the table has the commands" "$("$sluice" status list.run --tsv | tail -n +2 | cut -f 10 | sort | xargs -d '\n')" "echo one false two"
printf 'echo three\n' >list.txt
check "list: a shell in a line of the run that was, after the list has changed" "$sluice" shell list.run 'command[line=echo one]' -c true
printf 'sluice: 1\ntasks: {a: {run: echo spec}}\n' >flow.txt
check "list: a pipeline is one whatever its name ends with" "$sluice" run flow.txt
check "list: a shell there" "$sluice" shell flow.run a -c true

printf './run.sh --alpha=0.1 --grid 1,2\n' >opts.txt
printf '#!/bin/sh\necho "$@"\n' >run.sh && chmod +x run.sh
check "list: words with = and ," "$sluice" run --commands opts.txt
check_equal "list: a line is named as it was typed, or as it is shown" \
  "$("$sluice" logs opts.run 'command[line=./run.sh --alpha=0.1 --grid 1,2]')$("$sluice" logs opts.run 'command[line=./run.sh --alpha%3D0.1 --grid 1%2C2]')" \
  "--alpha=0.1 --grid 1,2--alpha=0.1 --grid 1,2"
check "list: why, as it was typed" "$sluice" why opts.run 'command[line=./run.sh --alpha=0.1 --grid 1,2]'
check "list: a shell, as it was typed" "$sluice" shell opts.run 'command[line=./run.sh --alpha=0.1 --grid 1,2]' -c true
check "list: force, as it was typed" "$sluice" run --commands opts.txt --force 'command[line=./run.sh --alpha=0.1 --grid 1,2]'
check_says "list: it ran again" "\(1 ran now\)"

# ---------------------------------------------------------------- files that look like the recorded ones

# A file of the same size that is older than the run: a backup, say.
cat >old.yaml <<'YAML'
sluice: 1
params: {p: {type: string, default: P}}
tasks:
  a: {sh: 'echo "$PARAM_p" >"$OUT_o"', outputs: {o: {file: o, keep: true}}}
  b: {sh: 'cat "$IN_o" >"$OUT_q"', inputs: {o: a.o}, outputs: {q: {file: q}}}
YAML
check "old: runs" "$sluice" run old.yaml
echo X >other && touch -d 2020-01-01 other && mv -f other old.run/results/a/o
check "old: another file of the same size, older than the run" "$sluice" run old.yaml
check_says "old: is seen" "a/o' has other bytes than recorded \(it is not the file that was recorded\)"
check_equal "old: is made again" "$(cat old.run/results/a/o)" P
cp -r old.run copy.run && cp old.yaml copy.yaml
check "old: a copy of the whole directory" "$sluice" run copy.yaml
check_says "old: has nothing to do" "nothing to do"
check "old: other results after it" "$sluice" run old.yaml --set p=Q
check "old: and a third submission" "$sluice" run old.yaml --set p=Q
truncate -s 300 old.run/journal.3.jsonl
check "old: a record that is lost in the middle" "$sluice" run old.yaml
check_equal "old: does not make a later result that of the first command" "$(cat old.run/results/a/o old.run/results/b/q | xargs)" "P P"

mkdir theirs && echo mine >theirs/spec.yaml
check_status "theirs: a folder with other things in it is no run directory" 2 "$sluice" run old.yaml --run-dir theirs
check_says "theirs: says what it found" "holds 'spec.yaml' but no run"
mkdir -p early/lost && echo killed >early/lost/0
check "theirs: a run that was killed before it began left one of ours" "$sluice" run old.yaml --run-dir early
check_equal "theirs: and left it alone" "$(cat theirs/*)" mine

# A source that changes while it is read.
echo one >source
cat >source.yaml <<YAML
sluice: 1
tasks:
  a: {sh: 'echo >$scratch/reads; until [[ -e $scratch/changed ]]; do sleep 0.02; done; cat "\$IN_s" >"\$OUT_o"', inputs: {s: {file: source}}, outputs: {o: {file: o}}}
YAML
"$sluice" run source.yaml >output 2>&1 &
run=$!
wait_until 60 test -e reads
echo two >source
touch changed
wait "$run"
check_says "source: a change while the run goes is told" "/source' changed while the run went"
echo one >source
check "source: as it was before" "$sluice" run source.yaml
check_equal "source: the result is of what it holds now" "$(cat source.run/results/a/o)" one

# ---------------------------------------------------------------- a shell leaves nothing

"$sluice" shell old.run b -c 'setsid sleep 6677 & sleep 6677' 2>/dev/null &
shell=$!
check "shell: a daemon and a child run" wait_until 20 eval '[[ $(pgrep -fc "[s]leep 6677") -ge 2 ]]'
kill -TERM "$shell"
wait "$shell"
check_equal "shell: told to end, it ends all of them" "$(pgrep -fc '[s]leep 6677')" 0
"$sluice" shell old.run b -c 'setsid sleep 6678 >/dev/null 2>&1 &' 2>/dev/null
check_equal "shell: at its end too" "$(pgrep -fc '[s]leep 6678')" 0

# ---------------------------------------------------------------- no folder to stand in

mkdir nowhere
check_status "nowhere: a folder that is gone is no crash" 3 bash -c 'cd nowhere && rmdir ../nowhere && "$1" status ../old.run' bash "$sluice"
check_says "nowhere: says what is wrong" "sluice: error: "

# ---------------------------------------------------------------- what check refuses

{ printf 'sluice: 1\ntasks:\n  a: {sh: "touch %s/a_ran"}\n  b: {run: [echo, ' "$scratch"; head -c 200000 /dev/zero | tr '\0' y; echo ']}'; } >long.yaml
check_status "long: check refuses a word that no system takes" 2 "$sluice" check long.yaml
check_status "long: plan too" 2 "$sluice" plan long.yaml
check_status "long: and run, before it starts anything" 2 "$sluice" run long.yaml
check "long: nothing ran" test ! -e a_ran

# ---------------------------------------------------------------- the terminal goes away

cat >hup.yaml <<YAML
sluice: 1
tasks:
  quick: {foreach: {n: [1, 2]}, sh: 'echo \$ITEM_n >"\$OUT_o"; echo >>$scratch/quick', outputs: {o: {file: o}}}
  long: {sh: 'echo >$scratch/long; exec sleep 600', after: [quick]}
  all: {inputs: {o: quick.o}, sh: 'cat \$(cat "\$IN_o") >"\$OUT_p"', outputs: {p: {file: p}}, after: [long]}
YAML
"$sluice" run hup.yaml 2>hup.err &
run=$!
wait_until 60 test -e long
kill -HUP "$run"
wait "$run"
check_equal "hangup: ends in order" "$?" 4
check_equal "hangup: what is needed is saved" "$(counts hup.yaml)" "2 0 2"

# ---------------------------------------------------------------- an attempt that leaves half of it

# The first attempt writes one of two outputs, badly. Wherever the readers run, they see the second's.
cat >half.yaml <<YAML
sluice: 1
tasks:
  make:
    sh: |
      if [[ ! -e $scratch/tried ]]; then touch $scratch/tried; echo bad >"\$OUT_a"; exit 0; fi
      echo good >"\$OUT_a"; echo good >"\$OUT_b"
    outputs: {a: {file: a}, b: {file: b}}
    retry: {output: {max: 1}}
  read:
    foreach: {n: {range: [0, 8]}}
    sh: cat "\$IN_a" "\$IN_b" >"\$OUT_o"
    inputs: {a: make.a, b: make.b}
    outputs: {o: {file: o}}
YAML
half() { check_equal "half: $1: every reader has what the second attempt made" "$(cat half.run/results/read/*.o | sort | uniq -c | xargs)" "16 good"; }
check "half: one process" "$sluice" run half.yaml
half "one process"
if command -v mpirun >/dev/null; then
  rm -rf half.run tried
  check "half: two workers on a node" mpirun -n 3 "$sluice" run half.yaml
  half "two workers"
fi

# ---------------------------------------------------------------- values that are no numbers

cat >nan.yaml <<'YAML'
sluice: 1
tasks:
  make: {sh: 'echo nan >"$OUT_score"', outputs: {score: {value: float}}}
  read: {sh: 'echo "$IN_score" >"$OUT_o"', inputs: {score: make.score}, outputs: {o: {file: o}}}
  compute: {run: "echo ${{ in.score + 1 }}", inputs: {score: make.score}}
YAML
check_status "nan: only what computes with it fails" 1 "$sluice" run nan.yaml
check_equal "nan: it is passed on as it was written" "$(cat nan.run/results/read/o)" nan
check_says "nan: and the one that computes is told why" "needs a number, found 'nan'"
