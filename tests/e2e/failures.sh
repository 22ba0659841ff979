#!/bin/bash
# Where is the error? What the end of a run says when some of many fail, and what it takes to go on.
. "$(dirname "$0")/../support/check.sh"
cd "${scratch:?}" || exit
sluice=${sluice:?}

# UC-081, UC-099: 300 samples, three reasons to fail, each sample with a second step.
cat >many.yaml <<'YAML'
sluice: 1
tasks:
  first:
    foreach: {n: {range: [0, 300]}}
    sh: |
      case $ITEM_n in
        17 | 200) echo "sample is empty" >&2; exit 3 ;;
        99) echo "last words of $ITEM_n" >&2; kill -SEGV $$ ;;
      esac
      echo "$ITEM_n" >"$OUT_part"
    outputs: {part: {file: part.txt}}
  second:
    foreach: {n: {range: [0, 300]}}
    run: cp ${{ in.part }} ${{ out.whole }}
    inputs: {part: first.part}
    outputs: {whole: {file: whole.txt}}
YAML
check_status "failures: some of many fail" 1 "$sluice" run many.yaml || exit 1
cp output end
check_equal "failures: all that does not depend on them is done" \
  "$(find many.run/results/second -type f ! -name items.tsv | wc -l)" 297
check_says "failures: counts come first" \
  '594 of 600 instances done \(594 ran now\) in .*; 3 failed; 3 skipped$'
check_equal "failures: then two causes, most first" \
  "$(grep -oE '^  [0-9]+ × .*' end)" \
  $'  2 × first: exit 3\n  1 × first: signal 11 (Segmentation fault)'
check_equal "failures: the same last lines are shown once" \
  "$(sed -n '/instances done/,$p' end | grep -c '| sample is empty')" 1
check_says "failures: with the node and how many more" \
  "first\[n=17\] and 1 more with the same last lines on $(hostname)"
check_says "failures: and the command that shows more" "more: sluice logs $PWD/many.run 'first\[n=99\]'"
check_says "failures: why is named" "why one failed or was skipped: sluice why .*many.run"
logs=$(sed -n 's/.*all that failed wrote: sluice //p' end)
check "failures: the command for all of them works" bash -c "'$sluice' $logs"
check_says "failures: and shows what they said" '^sample is empty$'
check_says "failures: each of them" '^last words of 99$'
check "failures: why of a skipped one" "$sluice" why many.yaml 'second[n=17]'

sed -i 's/17 | 200/17/' many.yaml
check_status "failures: a fix" 1 "$sluice" run many.yaml
