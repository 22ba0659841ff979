#!/bin/bash
# A run whose TASKS instances are done, submitted again: there is nothing to do but to read; and
# what `status` takes to say so.
#
#   tests/bench/resume.sh [BUILD]      ROUNDS=5 TASKS=100000; see bench.sh
#
# bench_journal writes what the run would have recorded. The yardstick is to read the same
# bytes once (`cksum`), and to start a program.
. "$(dirname "$0")/bench.sh"
tasks=${TASKS:-100000}
cat >"$work/many.yaml" <<YAML
sluice: 1
name: many
tasks:
  nothing:
    foreach: {n: {range: [0, $tasks]}}
    run: /bin/true
YAML

again() { "$@" run "$work/many.yaml" --run-dir "$work/run"; }
# resume KEY COMMAND...: of a run directory as the first run left it.
resume() {
  local key=$1 s
  shift
  rm -rf "$work/run" && "$build/tests/bench_journal" "$work/run" "$work/many.yaml" >"$work/made"
  s=$(seconds again "$@")
  grep -q "nothing to do: all $tasks instances are done" "$work/out" ||
    { echo "the run was not finished:" >&2 && tail -n 5 "$work/out" >&2 && exit 1; }
  sample "$key" "$s"
}

for ((r = 1; r <= rounds; ++r)); do
  resume one "$sluice"
  resume two mpirun -n 2 --bind-to none "$sluice"
  sample check "$(seconds "$sluice" check "$work/many.yaml")"
  sample status "$(seconds "$sluice" status "$work/run")"
  sample tsv "$(seconds "$sluice" status --tsv "$work/run")"
  rm "$work/run/status.json"
  sample journal "$(seconds "$sluice" status "$work/run")"
  sample read "$(seconds cksum "$work/run/journal.1.jsonl")"
  sample help "$(seconds "$sluice" --version)"
  round_done "$r"
done

note "journal of $(cat "$work/made")"
figure one "run again of $tasks done instances, one process: s" '<= 1'
figure two "the same under mpirun -n 2: s"
figure check "of it, reading the spec ('check'): s"
figure status "'status' of it: s" '<= 0.2'
figure journal "'status' without status.json, from the journal: s"
figure tsv "'status --tsv' of it: s"
figure read "the journal read once by cksum: s"
figure help "'sluice --version': s"
