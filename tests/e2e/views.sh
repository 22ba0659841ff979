#!/bin/bash
# Parts of HDF5 files as inputs, and several files as one: with one rank, with several, and wrong.
. "$(dirname "$0")/../support/check.sh"
cd "${scratch:?}" || exit
sluice=${sluice:?}
make_h5=${build:?}/tests/make_h5
cp -r "${repository:?}/configs/shards" . || exit
ranks() { timeout 120 mpirun --enable-recovery -n "$1" --bind-to none "$sluice" "${@:2}"; }
table=shards/shards.run/results/table/sums.tsv
expected() { awk -v rows="$1" 'BEGIN {print "row\tsum"; for (r = 0; r < rows; ++r) print r "\t" 64 * r + 31.5}'; }

check "shards: the example runs" "$sluice" run shards/shards.yaml
check_equal "shards: each row's sum is there once, in order" "$(cat $table)" "$(expected 1000)"
check "shards: in 7 parts of unequal length" "$sluice" run shards/shards.yaml --set parts=7
check_says "shards: another number of parts runs all parts again, and what was in node memory" '10 ran now'
check_equal "shards: in 7 parts the table is the same" "$(cat $table)" "$(expected 1000)"
check "shards: more parts than rows" "$sluice" run shards/shards.yaml --set rows=3 --set parts=5
check_equal "shards: parts without rows add none" "$(cat $table)" "$(expected 3)"
rm -rf shards/shards.run
check "shards: four ranks" ranks 4 run shards/shards.yaml --set parts=16
check_equal "shards: four ranks give the same table" "$(cat $table)" "$(expected 1000)"
check "shards: plan says what of the file is read" "$sluice" plan shards/shards.yaml --verbose
check_says "shards: plan names dataset and shard" 'dataset /u, shard part'
check_says "shards: plan names the gather" 'concatenated'

# ---------------------------------------------------------------- what the views hold

cat >p.yaml <<YAML
sluice: 1
name: views
tasks:
  make:
    foreach: {n: [1, 2]}
    sh: $make_h5 plain "\$OUT_f"
    outputs: {f: {h5: f.h5, keep: true}}
  rows:
    foreach: {n: [1, 2]}
    sh: '"$build/sluice-h5" --describe "\$IN_u" >"\$OUT_seen"; ls in/u >>"\$OUT_seen"'
    inputs: {u: {from: make.f, dataset: u, rows: [10, 20]}}
    outputs: {seen: {file: seen}}
  all:
    sh: |
      for input in "\$IN_stack" "\$IN_concat" "\$IN_file" "\$IN_group"; do
        "$build/sluice-h5" --describe "\$input"
      done >"\$OUT_seen"
      cp in/stack/stack.h5 "\$OUT_copy"
    inputs:
      stack: {from: make.f, gather: stack}
      concat: {from: make.f, dataset: /g/v, gather: concat}
      file: {file: source.h5, rows: [0, 2]}
      group: {file: source.h5, dataset: /g/v}
    outputs: {seen: {file: seen}, copy: {h5: copy.h5}}
YAML
"$make_h5" plain source.h5
check "views: runs" "$sluice" run p.yaml
check_equal "views: rows of one dataset, under the file's name" "$(cat "p.run/results/rows/n=1.seen")" \
  "$(printf '%s\n' '1 dataset: u f64[10,64]' f.h5)"
check_equal "views: stacked, concatenated, rows of all datasets, one dataset" "$(cat p.run/results/all/seen)" \
  "$(printf '%s\n' '2 datasets: g/v f64[2,10], u f64[2,64,64]' '1 dataset: g/v f64[20]' \
    '2 datasets: g/v f64[2], u f64[2,64]' '1 dataset: g/v f64[10]')"
check "views: sluice shell makes them too" "$sluice" shell p.run 'rows[n=2]' -c 'cat "$IN_u" >seen && test -s seen'
sed -i 's/rows: \[10, 20\]/rows: [10, 21]/' p.yaml
check "views: other rows, another run" "$sluice" run p.yaml
check_says "views: only what reads them runs again" '2 ran now'
check_equal "views: and sees them" "$(head -n 1 "p.run/results/rows/n=1.seen")" '1 dataset: u f64[11,64]'

# ---------------------------------------------------------------- what is wrong

wrong() { # SENTENCE INPUT PATTERN
  printf '%s\n' 'sluice: 1' 'name: wrong' 'tasks:' "  make: {sh: '$make_h5 ${4:-plain} \"\$OUT_f\"', outputs: {f: {h5: f.h5}}}" \
    "  use: {sh: 'true', inputs: {u: $2}}" >wrong.yaml
  rm -rf wrong.run
  check_status "wrong: $1: the instance fails" 1 "$sluice" run wrong.yaml
  check_says "wrong: $1: the message says what is there" "$3"
  check_says "wrong: $1: and that no program was to blame" 'staging'
}
wrong "no such dataset" '{from: make.f, dataset: /w}' "'f.h5' has no dataset '/w'; it has /g/v, /u"
wrong "too few rows" '{from: make.f, dataset: /u, rows: [0, 100]}' "it has 64 rows; expected at least 100"
cp source.h5 wrong.h5 && printf 'no' | dd of=wrong.h5 conv=notrunc status=none
wrong "no HDF5 file" '{file: wrong.h5, dataset: /u}' "'wrong.h5' is not an HDF5 file"
wrong "references" '{from: make.f, dataset: /r}' "holds references to other objects" references
