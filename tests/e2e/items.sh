#!/bin/bash
# Items from files, joins with conditions, and empty lists, run to their end.
. "$(dirname "$0")/../support/check.sh"
cd "${scratch:?}" || exit
sluice=${sluice:?}

# ---- files of a pattern, with odd names (UC-014), one of them new later (UC-107) ----
mkdir data
for name in 'a b' "it's" 'x(1)' '-n' 'q;touch pwned' $'new\nline' 'dollar$HOME' 'star*'; do
  printf '%s' "$name" >"data/$name.dat"
done
cat >files.yaml <<'YAML'
sluice: 1
tasks:
  count:
    foreach: {f: {glob: "data/*.dat"}}
    run: wc -c ${{ in.f }}
    inputs: {f: {file: "${{ item.f }}"}}
  copy:
    foreach: {f: {glob: "data/*.dat"}}
    sh: |
      cat -- "$IN_f" >"$OUT_text"
      printf '\n%s\n' "$ITEM_f" >>"$OUT_text"
    inputs: {f: {file: "${{ item.f }}"}}
    outputs: {text: {file: text}}
  all:
    run: cat ${{ in.texts.paths }}
    inputs: {texts: copy.text}
YAML
check "odd names: every file is an item" "$sluice" run files.yaml || exit 1
check "odd names: the gather has them all" "$sluice" logs files.yaml all
for name in 'a b' "it's" 'x\(1\)' '-n' 'q;touch pwned' 'dollar\$HOME' 'star\*'; do
  check_says "odd names: '$name' arrived whole" "^data/$name\.dat$"
done
check_equal "odd names: nothing in a name was executed" "$(find . -name pwned)" ""
rm 'data/a b.dat'
echo new >data/new.dat
check "later: succeeds" "$sluice" run files.yaml
check_says "later: says which items are new and which are gone" \
  "task 'count': 1 new item \(\[f=data/new\.dat\]\), 1 gone \(\[f=data/a b\.dat\]\) since the last submission, from data/\*\.dat"

# ---- a pattern that covers the results (UC-107) ----
mkdir covered && cd covered || exit
echo 1 >one.dat
cat >p.yaml <<'YAML'
sluice: 1
tasks:
  copy:
    foreach: {f: {glob: "**/*.dat"}}
    run: cp ${{ in.f }} ${{ out.copy }}
    inputs: {f: {file: "${{ item.f }}"}}
    outputs: {copy: {file: copy.dat}}
YAML
check "own results: the first run succeeds" "$sluice" run p.yaml
check_says "own results: the pattern is warned of" "also covers the run directory 'p.run'"
check "own results: the second run succeeds" "$sluice" run p.yaml
check_says "own results: they are no items" "nothing to do: all 1 instances are done"
cd .. || exit

# ---- zero, one and many parts (UC-094), in a list with carriage returns (UC-008) ----
cat >parts.yaml <<'YAML'
sluice: 1
tasks:
  mesh: {run: "touch ${{ out.mesh }}", outputs: {mesh: {file: mesh}}}
  part:
    foreach: {p: {lines: parts.txt}, allow_empty: true}
    sh: echo "$ITEM_p" >"$OUT_text"; printf 7 >"$OUT_n"
    inputs: {mesh: mesh.mesh}
    outputs: {text: {file: text}, n: {value: int}}
  sum:
    sh: |
      echo "paths $(grep -c . "$IN_texts" || true), values $(grep -c . "$IN_ns" || true)" >"$OUT_text"
    inputs: {texts: part.text, ns: part.n}
    outputs: {text: {file: sum.txt}}
  words:
    run: echo first ${{ in.texts.paths }} ${{ in.ns }} ${{ len(in.ns) }} last
    inputs: {texts: part.text, ns: part.n}
YAML
: >parts.txt
check "zero parts: the run succeeds" "$sluice" run parts.yaml || exit 1
check_equal "zero parts: the gather has an empty list" "$(cat parts.run/results/sum/sum.txt)" "paths 0, values 0"
check "zero parts: an empty list is no word" "$sluice" logs parts.yaml words
check_says "zero parts: between the others" "^first 0 last$"
check "zero parts: what nobody reads is a result" test -e parts.run/results/mesh/mesh
printf 'one\r\n' >parts.txt
check "one part: the run succeeds" "$sluice" run parts.yaml
check_says "one part: the carriage return is told once" "carriage returns are ignored"
check_equal "one part: it is there" "$(cat parts.run/results/sum/sum.txt)" "paths 1, values 1"
seq 40 >parts.txt
check "forty parts: the run succeeds" "$sluice" run parts.yaml
check_equal "forty parts: all are there" "$(cat parts.run/results/sum/sum.txt)" "paths 40, values 40"
: >parts.txt
check "zero parts again: the run succeeds" "$sluice" run parts.yaml
check_equal "zero parts again: the list is empty again" "$(cat parts.run/results/sum/sum.txt)" "paths 0, values 0"

# ---- joins ----
cat >joins.yaml <<'YAML'
sluice: 1
tasks:
  train:
    foreach:
      product: [{grid: [64, 128]}, [{seed: 0, kind: base}, {seed: 1, kind: new}]]
      except: [{grid: 128, kind: new}]
    sh: echo "$ITEM_grid.$ITEM_seed" >"$OUT_model"
    outputs: {model: {file: model.txt}}
  compare:
    foreach: {grid: [64, 128]}
    sh: |
      while read -r one; do cat "$one"; done <"$IN_all" | tr '\n' ' ' >"$OUT_text"
      echo "against $(cat "$IN_base")" >>"$OUT_text"
    inputs:
      all: {from: train.model, join: all}
      base: {from: train.model, where: {seed: 0, kind: base}}
    outputs: {text: {file: text}}
  new:
    foreach: {grid: [64, 128]}
    sh: grep -c . "$IN_new" >"$OUT_text" || true
    inputs: {new: {from: train.model, where: {seed: 1}, join: [grid, kind]}}
    outputs: {text: {file: text}}
YAML
check "joins: a key that one side lacks is an error" '!' "$sluice" check joins.yaml
check_says "joins: which names it" "task 'new' has no foreach key 'kind'"
sed -i 's/where: {seed: 1}, join: \[grid, kind\]/where: {seed: 1}, missing: skip/' joins.yaml
check "joins: the run succeeds" "$sluice" run joins.yaml || exit 1
check_equal "joins: all, and the one that 'where' gives" \
  "$(cat joins.run/results/compare/grid=128.text)" "64.0 64.1 128.0 against 128.0"
check_equal "joins: a list that finds something" "$(cat joins.run/results/new/grid=64.text)" 1
check_equal "joins: a list that finds nothing" "$(cat joins.run/results/new/grid=128.text)" 0
check "joins: the plan describes them" "$sluice" plan joins.yaml
check_says "joins: with their conditions" "base: train.model, one-to-one where seed=0,kind=base"
