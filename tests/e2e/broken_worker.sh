#!/bin/bash
# A worker where every task fails at once: it would draw all tasks, being free again at once. It is
# set aside and named; where every worker is like that, nobody is, and the run says why it failed.
. "$(dirname "$0")/../support/check.sh"
cd "${scratch:?}" || exit
sluice=${sluice:?}
if (($(nproc) < 2)); then
  skip "a broken worker is set aside" "two workers need two cores"
  exit 0
fi

# The tool is in the PATH of sound workers only, as with a mount or a module that a node lacks.
mkdir tools
printf '#!/bin/bash\necho "result of $1"\n' >tools/the-tool
chmod +x tools/the-tool
cat >p.yaml <<'YAML'
sluice: 1
name: broken
tasks:
  work:
    foreach: {n: {range: [0, 60]}}
    run: the-tool ${{ item.n }}
    stdout: text
    outputs: {text: {file: text.txt}}
    retry: {start: {max: 1}}  # the first failure of a worker is charged: it may be the task's own
  all:
    sh: cat $(cat "$IN_texts") >"$OUT_all"
    inputs: {texts: work.text}
    outputs: {all: {file: all}}
YAML
for ((n = 0; n < 60; n++)); do echo "result of $n"; done >expected
# ranks RUN_DIR PATH...: rank 0 finds the tool; a worker with each of these in front of its PATH.
ranks() {
  local run=$1 words=(-n 1 env "PATH=$scratch/tools:$PATH" "$sluice" run p.yaml --run-dir "$1")
  shift
  for path; do words+=(: -n 1 env "PATH=$path:$PATH" "$sluice" run p.yaml --run-dir "$run"); done
  timeout 200 mpirun --bind-to none "${words[@]}"
}

check "one of two workers is broken: the run succeeds" ranks one.run "$scratch/tools" /nowhere
cp output one.txt
check_equal "one of two: it is set aside and named, once, with what to look at" \
  "$(grep -cE 'warn: worker 2 on .* is set aside: .*look at that node' one.txt)" 1
check "one of two: the sound one is not" eval '! grep -q "worker 1 on .* is set aside" one.txt'
check "one of two: every result is right" cmp expected one.run/results/all/all
check "one of two: it cost a few attempts, not the run" \
  test "$(grep -c 'ended by start' one.txt)" -le 12
check "one of two: status names it afterwards" "$sluice" status one.run
check_says "one of two: with its node" "^set aside: +worker 2 on $(hostname)"
check_equal "one of two: so does JSON" \
  "$("$sluice" status one.run --json | python3 -c 'import json, sys; print([w["worker"] for w in json.load(sys.stdin)["workers_set_aside"]])')" "[2]"
check "one of two: the replay gives the digest" "$sluice" replay one.run

check_status "both workers are broken: the run ends with 1" 1 ranks both.run /nowhere /nowhere
cp output both.txt
check "both: none is set aside" eval '! grep -q "set aside" both.txt'
check "both: the reason is told" grep -qE "20 × work: start|no program 'the-tool' in PATH" both.txt
check "both: that nothing of this task succeeds is told once, not sixty times" \
  test "$(grep -c "task 'work' is held" both.txt)" = 1
check "both: the run can be continued where it works" ranks both.run "$scratch/tools" "$scratch/tools"
check "both: then every result is right" cmp expected both.run/results/all/all
