#!/bin/bash
# Parts of HDF5 objects over three nodes: only what a task reads travels, whatever else the file
# holds; a source that cannot make the part, and one that dies.
. "$(dirname "$0")/../support/check.sh"
. "${repository:?}/tests/cluster/nodes.sh"
if ! nodes_possible >/dev/null; then
  skip "parts over nodes" "needs root and namespaces"
  exit 0
fi
cd "${scratch:?}" || exit
sluice=${sluice:?}
make_h5=${build:?}/tests/make_h5
export NODES_DIR=$scratch/nodes NODES_SHARED="$repository $build $scratch" NODES_SUBNET=10.89.0
trap 'nodes_down; check_end' EXIT
nodes_up n1 n2 n3 || exit 1
over() { timeout 170 bash "$repository/tests/cluster/mpirun_nodes.sh" "$1" -x SLUICE_DEBUG=1 "${@:2}"; }
# received FILE: bytes that all workers of the run had from other nodes.
received() { sed -n 's/.*; \([0-9]*\) bytes of [0-9]* objects came from other nodes.*/\1/p' "$1" | awk '{sum += $1} END {print sum + 0}'; }
wait_for_go='until [[ -e $PIPELINE_DIR/go ]]; do read -t 0.05 <> <(:) || true; done'

# large.h5 has 16 MiB in /u, of 2048 rows, and as much in /v. The parts of a node wait for each other,
# so that all three nodes run some.
cat >p.yaml <<YAML
sluice: 1
name: parts
tasks:
  make:
    sh: $make_h5 large "\$OUT_f"
    outputs: {f: {h5: f.h5}}
  part:
    foreach: {part: {shards: 12}}
    sh: |
      echo "\$(uname -n)" >>$scratch/where
      until (( \$(sort -u $scratch/where | wc -l) >= 3 )); do read -t 0.05 <> <(:) || true; done
      "$build/sluice-h5" --describe "\$IN_u" >"\$OUT_seen"
      cksum <"\$IN_u" >>"\$OUT_seen"
    inputs: {u: {from: make.f, dataset: /u, shard: part}}
    outputs: {seen: {file: seen}}
    resources: {cpus: 2}
  all:
    inputs: {seen: part.seen}
    sh: cat \$(cat "\$IN_seen") >"\$OUT_all"
    outputs: {all: {file: all}}
YAML
printf '%s\n' n1 n2 n3 >where
check "one process gives the reference" "$sluice" run p.yaml --run-dir alone.run
: >where
over n1,n2,n3 "$sluice" run p.yaml --run-dir three.run >three.out 2>&1
check "three nodes: the run succeeds" "$sluice" status three.run --exit-code
check "three nodes: the parts are the same, to the byte" cmp alone.run/results/all/all three.run/results/all/all
check_equal "three nodes: each of them had some" "$(sort -u where | tr '\n' ' ')" "n1 n2 n3 "
# 12 parts of 16 MiB at most, less those of the node that has the file; whole, it would be 2 × 32.
bytes=$(received three.out)
check "three nodes: no more than the parts travelled: $bytes bytes" \
  test "$bytes" -gt $((16 << 18)) -a "$bytes" -lt $((17 << 20))

# ---------------------------------------------------------------- what cannot be made

sed 's/shard: part/rows: [0, 5000]/; s/: {shards: 12}/: [0, 1, 2, 3, 4, 5]/' p.yaml >short.yaml
: >where
over n1,n2,n3 "$sluice" run short.yaml >short.out 2>&1
check_status "too few rows: the run ends with failures" 1 "$sluice" status short.run --exit-code
check "too few rows: on every node the message says what is there" \
  eval '(( $(grep -c "input .u.: dataset ./u. of .f.h5.: it has 2048 rows" short.out) >= 6 ))'

# ---------------------------------------------------------------- a source that dies

cat >dies.yaml <<YAML
sluice: 1
name: dies
tasks:
  make:
    sh: |
      uname -n >>$scratch/made
      $make_h5 large "\$OUT_f"
    outputs: {f: {h5: f.h5}}
  hold:
    foreach: {k: {range: [0, 3]}}
    sh: |
      uname -n >>$scratch/held
      $wait_for_go
    inputs: {f: make.f}
    resources: {cpus: 2}
  part:
    foreach: {part: {shards: 12}}
    sh: |
      "$build/sluice-h5" --describe "\$IN_u" >"\$OUT_seen"
      cksum <"\$IN_u" >>"\$OUT_seen"
    inputs: {u: {from: make.f, dataset: /u, shard: part}}
    outputs: {seen: {file: seen}}
  all:
    inputs: {seen: part.seen}
    sh: cat \$(cat "\$IN_seen") >"\$OUT_all"
    outputs: {all: {file: all}}
YAML
# The node that made the file loses its power while the others wait with parts of it to come.
over n1,n2,n3 --enable-recovery "$sluice" run dies.yaml --lost-after 6 >dies.out 2>&1 &
run=$!
check "the source dies: all nodes are busy" wait_until 60 eval '(( $(wc -l <held) >= 3 ))'
maker=$(head -n 1 made)
[[ $maker == n1 ]] && maker=$(sed -n '/n1/!{p;q}' held)
node_kill "$maker"
touch go
check "the source dies: the run finishes all the same" wait_until 100 eval '"$sluice" status dies.run --exit-code'
check "the source dies: the result is the same" cmp alone.run/results/all/all dies.run/results/all/all
kill -TERM "$run" 2>/dev/null
wait "$run"
