#!/bin/bash
# What programs do for real: crash, exit 3, hang, fork a daemon, write nothing, write nonsense, write too much. One bad
# instance never harms the others, and the summary says what happened.
. "$(dirname "$0")/../support/check.sh"
cd "${scratch:?}" || exit
sluice=${sluice:?}

cat >bad.yaml <<YAML
sluice: 1
name: bad programs
tasks:
  crash:
    sh: kill -SEGV \$\$
    outputs: {x: {file: x}}
  three:
    sh: |
      echo "no convergence after 17 steps" >&2
      exit 3
    outputs: {x: {file: x}}
  hang:
    sh: |
      trap '' TERM
      while :; do read -t 1 <> <(:) || true; done
    timeout: 1s
    grace: 1s
  daemon:
    sh: |
      (setsid bash -c 'trap "" TERM HUP; echo \$BASHPID >$scratch/daemon.pid; while :; do read -t 1 <> <(:) || true; done' &) </dev/null
      until [[ -s $scratch/daemon.pid ]]; do :; done
      echo fine >"\$OUT_x"
    outputs: {x: {file: daemon.txt}}
  nothing:
    sh: echo x >other.txt
    outputs: {x: {file: x.txt}}
  broken:
    sh: |
      printf '\211HDF\r\n\032\n' >"\$OUT_x"
      head -c 1000 /dev/zero | tr '\0' 'z' >>"\$OUT_x"
    outputs: {x: {h5: x.h5}}
  text:
    sh: echo "no HDF5 at all" >"\$OUT_x"
    outputs: {x: {h5: x.h5}}
  score:
    sh: echo "about seven" >"\$OUT_x"
    outputs: {x: {value: int}}
  loud:
    sh: |
      echo "the first line"
      head -c 1000000000 /dev/zero | tr '\0' 'y'
      echo "the last line"
  program:
    run: no-such-program-anywhere
  after:
    sh: cat "\$IN_x"
    inputs: {x: three.x}
  good:
    sh: echo fine >"\$OUT_x"
    outputs: {x: {file: good.txt}}
YAML
check_status "bad programs: the run ends with 1" 1 timeout 120 "$sluice" run bad.yaml
cp output bad.txt
says() { grep -qE -- "$1" bad.txt; }
check "bad programs: the good one has its result" grep -q fine bad.run/results/good/good.txt
check "bad programs: so has the one that left a daemon" grep -q fine bad.run/results/daemon/daemon.txt
check "crash: names the signal" says "crash: .*signal 11 \(Segmentation fault\)"
check "exit 3: names the code" says "three: .*exit 3"
check "exit 3: shows the end of stderr" says "no convergence after 17 steps"
check "hang: names the timeout" says "hang: .*timeout"
check "daemon: it is gone" eval '! kill -0 "$(cat daemon.pid)"'
check "no output: names the file that is missing and what is there" says "nothing: .*x\.txt.*other\.txt"
check "broken HDF5: says so" says "broken: .*x\.h5"
check "no HDF5: says what it starts with" says "text: .*not an HDF5 file.*no HDF5"
check "value: says what was found and expected" says "score: .*about seven"
check "no program: says what was looked for" says "no-such-program-anywhere"
check "a dependant is skipped, and says why" says "after is skipped because three failed"
check "summary: the command that shows more" says "sluice logs .*three"
check "loud: 10 MiB are kept, head and tail, and that is said" \
  eval '"$sluice" logs bad.run loud >loud.txt 2>&1 &&
        grep -q "the first line" loud.txt && grep -q "the last line" loud.txt && grep -q "dropped" loud.txt &&
        test "$(stat -c %s loud.txt)" -lt 11000000 && test "$(stat -c %s loud.txt)" -gt 10000000'
check "status: counts the failures" eval '"$sluice" status bad.run | grep -q "8 failed, 1 skipped"'
check_status "again: only what failed runs again" 1 timeout 120 "$sluice" run bad.yaml

# -- retries --------------------------------------------------------------------------------------
cat >retry.yaml <<YAML
sluice: 1
name: retry
tasks:
  flaky:
    foreach: {n: [1, 2]}
    sh: |
      echo x >>$scratch/tries.\$ITEM_n
      [[ \$(wc -l <$scratch/tries.\$ITEM_n) == 3 ]] || exit 7
      echo done >"\$OUT_x"
    outputs: {x: {file: x}}
    retry: {exit: {max: 2, codes: [7]}}
YAML
check "retry: the third attempt succeeds" "$sluice" run retry.yaml
check_equal "retry: three attempts each" "$(cat tries.1 tries.2 | wc -l)" 6
check "retry: the log of each attempt is kept" eval 'test "$("$sluice" logs retry.run --failed 2>&1 | wc -l)" -ge 0'

# -- the environment of programs ------------------------------------------------------------------
cat >env.yaml <<YAML
sluice: 1
name: environment
params: {who: {type: string, default: "a b's"}}
tasks:
  look:
    sh: |
      env >"\$OUT_all"
      echo "\$PARAM_who" >"\$OUT_who"
      pwd -P >"\$OUT_here"
      ls -A >"\$OUT_list"
      wc -c </dev/stdin >"\$OUT_stdin"
    env: {MINE: "1 2"}
    outputs: {all: {file: all}, who: {file: who}, here: {file: here}, list: {file: list}, stdin: {file: stdin}}
YAML
check "environment: runs" env OMPI_NONSENSE=1 SLURM_JOB_ID=77 PMIX_FOO=2 "$sluice" run env.yaml
results=env.run/results/look
check "environment: launcher variables are gone" eval '! grep -qE "^(OMPI_NONSENSE|PMIX_FOO|SLURM_JOB_ID)=" $results/all'
check "environment: the batch job is known under our name" grep -qx "SLUICE_BATCH_ID=77" $results/all
check "environment: threads match the request" grep -qx "OMP_NUM_THREADS=1" $results/all
check "environment: env: is there" grep -qx "MINE=1 2" $results/all
check_equal "environment: text arrives as typed" "$(cat $results/who)" "a b's"
check_equal "environment: stdin is empty" "$(cat $results/stdin)" 0

# -- a request that no worker can meet ------------------------------------------------------------
cat >large.yaml <<YAML
sluice: 1
name: large
tasks:
  large:
    sh: echo never >"\$OUT_x"
    outputs: {x: {file: x}}
    resources: {cpus: 4096}
  small:
    sh: echo fine >"\$OUT_y"
    outputs: {y: {file: y}}
YAML
check_status "too large: the run ends with 4, not never" 4 timeout 60 "$sluice" run large.yaml
check_says "too large: names task, request and the largest worker" \
  "task 'large' .* asks for 4096 cpus; .*the largest has [0-9]+ cpus?,"
check "too large: the other work is done" grep -q fine large.run/results/small/y
