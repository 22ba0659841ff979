#!/bin/bash
# What people do to a run directory between two runs, and what a plan promises about the next one.
. "$(dirname "$0")/../support/check.sh"
cd "${scratch:?}" || exit
sluice=${sluice:?}
ran() { sort ran 2>/dev/null | tr '\n' ' '; rm -f ran; }

#  make[n] -> pair: the outputs of make live in node memory only
cat >p.yaml <<YAML
sluice: 1
name: edited
params:
  cases: {type: list, default: [1, 2]}
tasks:
  make:
    foreach: {n: "\${{ params.cases }}"}
    sh: |
      echo "make \$ITEM_n" >>$scratch/ran
      echo "\$ITEM_n" >"\$OUT_part"
    outputs: {part: {file: part.txt}}
  pair:
    sh: |
      echo pair >>$scratch/ran
      xargs cat <"\$IN_parts" >"\$OUT_both"
    inputs: {parts: make.part}
    outputs: {both: {file: both.txt}, count: {value: int}}
YAML
sed -i '/xargs/a\      wc -l <"$OUT_both" >"$OUT_count"' p.yaml
check "run: succeeds" "$sluice" run p.yaml || exit 1
check_says "run: a value without consumer is named among the results" "p.run/results/pair/count$"
ran >/dev/null

# -- a plan says what is made again only because its bytes are gone ------------------------------
check "plan: with one more case" "$sluice" plan p.yaml --set 'cases=[1, 2, 3]'
check_says "plan: what the run will make again is not called up to date" "^make: 3 instances, 3 will run"
check_says "plan: and why" "2 × its output 'part' is gone and 'pair' needs it"
check "run: with one more case" "$sluice" run p.yaml --set 'cases=[1, 2, 3]'
check_equal "run: just that ran" "$(ran)" "make 1 make 2 make 3 pair "
check "run: back to two cases" "$sluice" run p.yaml
ran >/dev/null

# -- edited, deleted -----------------------------------------------------------------------------
result=p.run/results/pair/both.txt
printf '7\n8\n' >$result
check "an edited result of the same size: the plan says so" "$sluice" plan p.yaml
check_says "an edited result of the same size: it will be made again" "^pair: 1 instance, 1 will run"
check "an edited result of the same size: the run succeeds" "$sluice" run p.yaml
check_says "an edited result of the same size: the run says what it found" \
  "both.txt' has other bytes than recorded \(it was written after the last run\)"
check_equal "an edited result of the same size: it is made again" "$(cat $result)" $'1\n2'
ran >/dev/null
touch $result
check "a touched result: the run succeeds" "$sluice" run p.yaml
check_equal "a touched result: nothing runs" "$(ran)" ""

rm -r p.run/logs
check_status "deleted logs: usage error" 2 "$sluice" logs p.run
check_says "deleted logs: says that nothing is there" "no output of any task in .*p.run/logs"

# -- failures ------------------------------------------------------------------------------------
cat >bad.yaml <<'YAML'
sluice: 1
name: bad
tasks:
  bad:
    sh: echo half >left.txt; exit 3
    outputs: {x: {file: x}}
YAML
check_status "a failure: exit 1" 1 "$sluice" run bad.yaml
check "a failure: its directory is kept under the attempt's name" grep -q half bad.run/failed/1.1/left.txt
check "a failure that wrote nothing: logs say so" eval '"$sluice" logs bad.run 2>&1 | grep -q "1 attempt wrote nothing"'

# -- not ours ------------------------------------------------------------------------------------
if [[ $(id -u) == 0 ]] && command -v setpriv >/dev/null; then
  chmod 755 . && mkdir -m 755 theirs.run
  cp bad.yaml theirs.yaml
  check_status "a run directory of somebody else: exit 3" 3 \
    setpriv --reuid 65534 --regid 65534 --clear-groups "$sluice" run theirs.yaml
  check_says "a run directory of somebody else: what to do" \
    "run directory .*theirs.run cannot be written: Permission denied; choose another with --run-dir"
else
  skip "a run directory of somebody else" "needs root and setpriv"
fi
