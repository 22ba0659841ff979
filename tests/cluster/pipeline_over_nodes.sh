#!/bin/bash
# A pipeline over three nodes with networks, host names and node memory of their own: objects travel over MPI/TCP, and
# when one node loses its power the run still finishes with everything done.
. "$(dirname "$0")/../support/check.sh"
. "${repository:?}/tests/cluster/nodes.sh"
if ! nodes_possible >/dev/null; then
  skip "a pipeline over nodes" "needs root and namespaces"
  exit 0
fi
cd "${scratch:?}" || exit
sluice=${sluice:?}
export NODES_DIR=$scratch/nodes NODES_SHARED="$repository ${build:?} $scratch" NODES_SUBNET=10.87.0
trap 'nodes_down; check_end' EXIT
nodes_up n1 n2 n3 || exit 1
over() { timeout 170 bash "$repository/tests/cluster/mpirun_nodes.sh" "$@"; }

cat >p.yaml <<YAML
sluice: 1
name: nodes
tasks:
  make:
    foreach: {n: {range: [0, 9]}}
    sh: |
      echo "\$ITEM_n \$(uname -n)" >>$scratch/where
      yes "line \$ITEM_n" | head -c 5000000 >"\$OUT_part" || true
      mkdir -p "\$OUT_tree/sub/empty"
      for ((i = 0; i < 500; i++)); do echo "\$ITEM_n.\$i" >"\$OUT_tree/sub/\$i"; done
      ln -s sub/7 "\$OUT_tree/link"
    outputs: {part: {file: part}, tree: {dir: tree}}
  pair:
    foreach: {m: {range: [0, 6]}}
    sh: |
      echo "pair \$(uname -n)" >>$scratch/where
      until (( \$(wc -l <$scratch/where) > 9 )) && { [[ \$ITEM_m != 5 ]] || [[ -e $scratch/go ]]; }; do
        read -t 0.05 <> <(:) || true
      done
      while read -r path; do cksum <"\$path"; done <"\$IN_parts" >"\$OUT_sums"
      while read -r tree; do
        (cd "\$tree" && find . -printf '%P %y %l\n' | sort && cat link sub/[0-9]*) | cksum >>"\$OUT_sums"
      done <"\$IN_trees"
    inputs: {parts: make.part, trees: make.tree}
    outputs: {sums: {file: sums}}
  all:
    sh: cat \$(cat "\$IN_all") >"\$OUT_all"
    inputs: {all: pair.sums}
    outputs: {all: {file: all}}
YAML
sed -i 's/yes "line/trap "" PIPE; yes "line/' p.yaml
touch go
check "one process gives the reference" "$sluice" run p.yaml --run-dir alone.run || exit 1
rm -f where
check "three nodes: the run succeeds" over n1,n2,n3 "$sluice" run p.yaml --run-dir three.run
check_equal "three nodes: each of them ran attempts" "$(awk '{print $NF}' where | sort -u | tr '\n' ' ')" "n1 n2 n3 "
check "three nodes: files and directories travelled, the result is the same" cmp alone.run/results/all/all three.run/results/all/all
check "three nodes: the replay gives the digest" "$sluice" replay three.run

rm -f where go
over n1,n2,n3 --enable-recovery "$sluice" run p.yaml --run-dir lost.run --lost-after 6 >lost.out 2>&1 &
run=$!
check "a node dies: the run is under way" wait_until 60 eval '(( $(grep -c pair where) >= 4 ))'
node_kill n2
touch go
check "a node dies: the run finishes all the same" \
  wait_until 100 eval '"$sluice" status lost.run --exit-code'
check "a node dies: people are told" grep -q "worker 1 on n2 is lost" lost.out
check "a node dies: the result is the same" cmp alone.run/results/all/all lost.run/results/all/all
# mpirun waits for ever for the dead node's daemon: it is told to end (what a job script does, too).
kill -TERM "$run" 2>/dev/null
wait "$run"
tail -n 5 lost.out
