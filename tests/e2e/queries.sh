#!/bin/bash
# Questions about a run: status, logs, report, shell and clean, also after a kill.
. "$(dirname "$0")/../support/check.sh"
cd "${scratch:?}" || exit
sluice=${sluice:?}
json() { python3 -c "import json,sys; d=json.load(sys.stdin); print($1)"; }

cat >p.yaml <<YAML
sluice: 1
name: queries
params:
  bad: {type: int, default: 3}
tasks:
  make:
    foreach: {n: [1, 2, 3, 4, 5, 6]}
    sh: |
      echo "out of \$ITEM_n"
      echo "\$ITEM_n" >"\$OUT_part"
    outputs: {part: {file: part.txt}}
  use:
    foreach: {n: [1, 2, 3, 4, 5, 6]}
    sh: |
      echo "tried \$ITEM_n" >&2
      if (( ITEM_n <= PARAM_bad )) && [[ ! -e $scratch/mended ]]; then echo "no luck" >&2; exit 3; fi
      cp "\$IN_part" "\$OUT_copy"
    inputs: {part: make.part}
    outputs: {copy: {file: copy.txt}}
    resources: {cpus: 1, memory: 2GiB}
  total:
    sh: |
      cat \$(cat "\$IN_all") >"\$OUT_sum"
      wc -l <"\$OUT_sum" >"\$OUT_lines"
    inputs: {all: use.copy}
    outputs: {sum: {file: sum.txt}, lines: {value: int}}
YAML
sed -i 's/      echo "tried \$ITEM_n" >&2/      true/' p.yaml # equal stderr for the failures

# -- failures (UC-099) ----------------------------------------------------------------------------
check_status "run: three of six fail" 1 "$sluice" run p.yaml
check "status: after failures" "$sluice" status p.run
check_says "status: each task has its counts" "use +6 instances: 3 done, 3 failed"
check_says "status: equal failures are one line" "failed: +3 × use: exit 3"
check_says "status: with the last lines of stderr" "\| no luck"
check_says "status: and the command that continues" "continue: +cd $scratch && sluice run p.yaml"
check_equal "status --json: documented names, JSON alone on stdout" \
  "$("$sluice" status p.run --json | json 'd["version"], d["state"], d["outcome"], d["exit_code"], d["counts"]["failed"], d["failures"][0]["count"]')" \
  "1 ended failed 1 3 3"
check_equal "status --tsv: one line per instance that ended" "$("$sluice" status p.run --tsv | wc -l)" 14
check_equal "status --tsv: the command of one" \
  "$("$sluice" status p.run --tsv | awk -F'\t' '$1 == "use" && $2 == "n=2" {print $10}' | tr -s ' ' | cut -c 1-14)" "true if (( ITE"
check_equal "status --tsv: state, cause and exit of one" \
  "$("$sluice" status p.run --tsv | awk -F'\t' '$1 == "use" && $2 == "n=2" {print $3, $4, $5}')" "failed exit 3"
check "status: of the pipeline's name too" "$sluice" status p.yaml

check_equal "logs --json: each attempt and where its bytes are" \
  "$("$sluice" logs p.run 'use[n=2]' --json | json 'd["version"], d["attempts"][0]["outcome"], d["attempts"][0]["stderr"]["bytes"], open(d["attempts"][0]["file"]).read()[d["attempts"][0]["stderr"]["offset"]:][:7]')" \
  "1 exit 8 no luck"
check_status "run --json: only of a plan" 2 "$sluice" run p.yaml --json
check "logs --failed" "$sluice" logs p.run --failed
check_says "logs --failed: equal ones once" "2 more with the same stderr: use\[n="
check_equal "logs --failed: the text is there once" "$(grep -c 'no luck' "$scratch/output")" 1
check_equal "logs: one stream alone is its bytes and nothing else (UC-032)" \
  "$("$sluice" logs p.run 'make[n=4]' 2>/dev/null)" "out of 4"
check_status "logs: an unknown task is a usage error" 2 "$sluice" logs p.run nothing
check_status "logs: of no run is a usage error" 2 "$sluice" logs nosuch.run --failed
check_says "logs: of no run: says so" "no run in $scratch/nosuch.run: no journal is there"
check_status "logs --follow: of no run too" 2 "$sluice" logs nosuch.run --follow
mkdir -p odd.run/journal.1.jsonl
check_status "logs: a journal that cannot be read is an error" 3 "$sluice" logs odd.run --failed
check_says "logs: and is named" "error: .*odd.run/journal.1.jsonl"
check_status "logs --follow: not with --attempt" 2 "$sluice" logs p.run --follow --attempt 1
check_says "logs --follow: says what to leave out" "'--follow' and '--attempt' .*leave one of them out"
check_status "logs --follow: not with --paths" 2 "$sluice" logs p.run --follow --paths
check "logs --paths: names the bytes" eval '"$sluice" logs p.run "use[n=1]" --paths | grep -q "failed/1\."'

# -- shell ----------------------------------------------------------------------------------------
check "shell: inputs of a failed instance are in place" \
  eval '[[ $("$sluice" shell p.run "use[n=2]" -c "cat \$IN_part; test -e \$OUT_copy || echo none; pwd -P" 2>shell.err | head -2 | tr "\n" " ") == "2 none " ]]'
check "shell: says what would run" grep -q "bash -euo pipefail .*/script" shell.err
check_status "shell: its status is the command's" 7 "$sluice" shell p.run 'use[n=2]' -c 'exit 7'
check_status "shell: an input that is nowhere is named, with its maker" 3 "$sluice" shell p.run total -c true
check_says "shell: and what would have to run" "output 'copy' of use\[n=1\]"
check_status "shell: an unknown instance is a usage error" 2 "$sluice" shell p.run 'use[n=99]' -c true

# -- attempts (UC-084), report --------------------------------------------------------------------
touch mended
check "run: mended" "$sluice" run p.yaml
check_equal "logs: of an attempt that failed before" \
  "$("$sluice" logs p.run 'use[n=1]' --attempt 1 2>/dev/null)" "no luck"
sed -i '/"use"/{/"n=2"/d}' p.run/logs/1.*.index # as if lost with its worker
check "logs --attempt 1: one that left no log is found" "$sluice" logs p.run 'use[n=2]' --attempt 1
check_says "logs --attempt 1: with what the journal says" "use\[n=2\], attempt 1\..*exit 3.* \(left no log\)"
check_equal "logs --attempt 2: one without a log counts" \
  "$("$sluice" logs p.run 'use[n=2]' --attempt 2 --paths | awk -F'\t' '$5 == "stderr" {print substr($3, 1, 2)}')" "2."
check_equal "logs --attempt -1: the last one" \
  "$("$sluice" logs p.run 'use[n=2]' --attempt -1 --paths | awk -F'\t' '$5 == "stderr" {print substr($3, 1, 2)}')" "2."
check_status "logs --attempt 3: there is none" 2 "$sluice" logs p.run 'use[n=2]' --attempt 3
check "report: as text" "$sluice" report p.run
check_says "report: all submissions with their outcome" "submission 1: failed"
check_says "report: all submissions with their outcome" "submission 2: done"
check_says "report: asked for and used, with the number of samples (UC-102)" "use: n = 6"
check_says "report: a suggestion from enough samples" "suggestion from 6 attempts: memory: 64MiB instead of 2048MiB"
check_says "report: failures by cause" "3 × use: exit 3"
check_equal "report --json: bound is at most makespan" \
  "$("$sluice" report p.run --json | json 'd["version"], all(s["bound_ns"] <= s["makespan_ns"] for s in d["submissions"])')" "1 True"

# -- provenance (UC-109) --------------------------------------------------------------------------
"$sluice" report p.run --provenance p.run/results/total/sum.txt --json >made.json 2>made.err
check_equal "provenance: each instance on the way, once" \
  "$(json 'len(d["instances"]), sorted({i["task"] for i in d["instances"]})' <made.json)" "13 ['make', 'total', 'use']"
check_equal "provenance: command, inputs and spec hash are there" \
  "$(json '"cat $(cat" in d["instances"][0]["command"], len(d["instances"][0]["inputs"]), len(d["instances"][0]["spec_hash"])' <made.json)" \
  "True 6 32"
check_equal "provenance: the failed attempts before" \
  "$(json '[i["failed_attempts"][0]["exit_code"] for i in d["instances"] if i["task"] == "use" and i["item"] == "n=1"]' <made.json)" "[3]"
check "provenance: of a value" eval '"$sluice" report p.run --provenance results/total/lines | grep -q "was made by"'
check_status "provenance: of no result is a usage error" 2 "$sluice" report p.run --provenance results/nothing

# -- clean ----------------------------------------------------------------------------------------
results() { (cd p.run/results && find . -type f -exec sha256sum {} + | sort); }
before=$(results)
mkdir -p p.run/objects/old && echo x >p.run/objects/old/y && echo z >p.run/results/.tmp/7
check "clean --dry-run: prints what would go" "$sluice" clean p.run --dry-run
check_says "clean --dry-run: temporaries, objects, failed directories" "p.run/failed/1\."
check "clean --dry-run: removes nothing" test -e p.run/objects/old/y -a -e p.run/results/.tmp/7
check "clean: removes" "$sluice" clean p.run --logs
check "clean: they are gone" test ! -e p.run/objects/old/y -a ! -e p.run/results/.tmp/7 -a -z "$(ls p.run/failed)"
check_equal "clean --logs: only the newest submission's stay" "$(find p.run/logs -name '1.*' | wc -l)" 0
check_equal "clean: results are as before" "$(results)" "$before"
check "clean: the next run has nothing to do" eval '"$sluice" run p.yaml 2>&1 | grep -q "nothing to do"'
sed -i 's/\[1, 2, 3, 4, 5, 6\]/[1, 2, 3, 4, 5]/' p.yaml
sed -i 's/outputs: {copy: {file: copy.txt}}/outputs: {copy: {file: copy.txt, keep: true}}/' p.yaml
check "run: one item less" "$sluice" run p.yaml
check "status: an item that is gone is not counted" eval '"$sluice" status p.run | grep -q "all tasks: *11 instances: 11 done"'

# -- raw bytes (UC-032), a flood (UC-045) -----------------------------------------------------------
cat >bytes.yaml <<'YAML'
sluice: 1
name: bytes
tasks:
  raw:
    sh: printf 'M\xe4rz \x90\x00\n'
  flood:
    sh: "{ yes error || true; } | head -c 30000000 1>&2"
YAML
check "run: odd bytes and a flood" env LANG=C "$sluice" run bytes.yaml
check_equal "logs: raw bytes come out as they were" \
  "$("$sluice" logs bytes.run raw 2>/dev/null | sha256sum)" "$(printf 'M\xe4rz \x90\x00\n' | sha256sum)"
check "logs: says how much of a flood was dropped" eval '"$sluice" logs bytes.run flood 2>&1 >/dev/null | grep -q "dropped from the middle"'
check_equal "logs --tail" "$("$sluice" logs bytes.run flood --tail 2 2>/dev/null)" $'error\nerror'

# -- followed -------------------------------------------------------------------------------------
cat >live.yaml <<YAML
sluice: 1
name: live
tasks:
  good:
    sh: |
      echo "all is well"
      until [[ -e $scratch/begin ]]; do read -t 0.05 <> <(:) || true; done
  bad:
    after: [good]
    sh: |
      printf 'half \033[1m'
      until [[ -e $scratch/fail ]]; do read -t 0.05 <> <(:) || true; done
      echo "line"
      exit 3
YAML
"$sluice" run live.yaml 2>live.err &
run=$!
wait_until 60 eval '"$sluice" status live.run --json | json "d[\"counts\"][\"running\"]" | grep -q 1'
"$sluice" logs live.run --follow --failed >failed.out 2>failed.err &
follow=$!
check "logs --follow: at a terminal" \
  "$build/tests/pty" --limit 60 --on "all is well" "file=$scratch/begin" --on half "file=$scratch/fail" \
  -- "$sluice" logs live.run --follow
check_says "logs --follow: at a terminal, control characters are replaced, lines stay whole" 'half \?\[1mline'
wait "$follow"
check_status "run: one of two fails" 1 wait "$run"
check_equal "logs --follow --failed: raw bytes of what failed" \
  "$(grep -v '^==' failed.out)" $'half \e[1mline'

# -- killed (UC-103) ------------------------------------------------------------------------------
cat >slow.yaml <<YAML
sluice: 1
name: slow
tasks:
  quick:
    foreach: {n: [1, 2, 3]}
    sh: echo "\$ITEM_n" >"\$OUT_x"
    outputs: {x: {file: x}}
  hang:
    sh: |
      echo "waiting here"
      until [[ -e $scratch/go ]]; do read -t 0.05 <> <(:) || true; done
      cat \$(cat "\$IN_all") >"\$OUT_y"
    inputs: {all: quick.x}
    outputs: {y: {file: y}}
YAML
"$sluice" run slow.yaml 2>slow.err &
run=$!
wait_until 60 eval '"$sluice" status slow.run --json | json "d[\"counts\"][\"running\"]" | grep -q 1'
check "status: while it runs" "$sluice" status slow.run
check_says "status: says running" "state: +running"
check_says "status: names what runs and where" "running: +hang on "
"$sluice" logs slow.run hang --follow --failed >follow_failed.out 2>&1 &
follow_failed=$!
"$sluice" logs slow.run hang --follow >follow.out 2>follow.err &
follow=$!
check "logs --follow: prints what a running attempt has written" wait_until 30 grep -q "waiting here" follow.out
check_status "clean: refuses while a run is going on" 3 "$sluice" clean slow.run
kill -9 "$run"
wait "$run" 2>/dev/null
wait_until 30 eval '! "$sluice" status slow.run | grep -q "state: *running"'
check "logs --follow: ends with the run" wait_until 30 eval '! kill -0 $follow 2>/dev/null'
wait "$follow" "$follow_failed" 2>/dev/null
check_equal "logs --follow --failed: nothing of one that runs" "$(grep -c "waiting here" follow_failed.out)" 0
check "status: after kill -9" "$sluice" status slow.run
check_says "status: not running, with what is left" "not running: .*1 unfinished"
check_says "status: last alive, when and where" "last alive: 20.* on host .*, process [0-9]+"
check_says "status: how to continue" "continue: +cd $scratch && sluice run slow.yaml"
check_equal "status --json: after kill -9" \
  "$("$sluice" status slow.run --json | json 'd["state"], d["exit_code"], d["counts"]["done"], d["counts"]["running"], d["counts"]["waiting"]')" \
  "not_running 4 3 0 1"
check_status "status --exit-code: 4, to be continued" 4 "$sluice" status slow.run --exit-code
echo '{"version": 1, "run' >slow.run/status.json
check_equal "status: a damaged status.json is not believed, the journal is" \
  "$("$sluice" status slow.run --json | json 'd["counts"]["done"], d["counts"]["waiting"]')" "3 1"
touch go
check "run: continues after the kill" "$sluice" run slow.yaml
check "report: a killed submission is called so" eval '"$sluice" report slow.run | grep -q "submission 1: killed"'
