#!/bin/bash
# A full disk: a clear message, exit 3, nothing lost, and a later run finishes.
. "$(dirname "$0")/../support/check.sh"
cd "${scratch:?}" || exit
sluice=${sluice:?}
mkdir small
if ! mount -t tmpfs -o size=4m tmpfs small 2>/dev/null; then
  skip "disk full" "needs the right to mount a small file system"
  exit 0
fi
trap 'umount -l "$scratch/small"; check_end' EXIT

cat >p.yaml <<YAML
sluice: 1
name: full
tasks:
  make:
    foreach: {n: [1, 2, 3, 4, 5, 6]}
    sh: |
      echo "\$ITEM_n" >>$scratch/ran
      head -c 200000 /dev/zero >"\$OUT_x"
    outputs: {x: {file: x}}
YAML
fill() { head -c 100000000 /dev/zero >small/ballast 2>/dev/null; }

head -c 3400000 /dev/zero >small/ballast
check_status "results do not fit: exit 3" 3 timeout 60 "$sluice" run p.yaml --run-dir small/run
check_says "results do not fit: the message names the folder and the remedy" "small/run.*make room"
check_status "results do not fit: status agrees" 3 "$sluice" status small/run --exit-code
rm -f small/ballast
check "room again: the run finishes" "$sluice" run p.yaml --run-dir small/run
check_equal "room again: all results are there" "$(find small/run/results/make -type f -size 200000c | wc -l)" 6

rm -rf small/run ran
mkdir -p small/run
fill
check_status "no room for the journal: exit 3" 3 timeout 60 "$sluice" run p.yaml --run-dir small/run
check_says "no room for the journal: the message says what to do" "No space left on device; free some space"
rm -f small/ballast
check "room again: that run finishes too" "$sluice" run p.yaml --run-dir small/run
