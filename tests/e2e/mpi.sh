#!/bin/bash
# Several ranks on one host: results, binding, data between ranks, and a worker that dies.
. "$(dirname "$0")/../support/check.sh"
cd "${scratch:?}" || exit
sluice=${sluice:?}
ranks() {
  local n=$1
  shift
  timeout 120 mpirun -n "$n" --bind-to none "$sluice" "$@"
}

cat >p.yaml <<YAML
sluice: 1
name: ranks
tasks:
  make:
    foreach: {n: {range: [0, 12]}}
    sh: |
      echo "make \$ITEM_n" >>$scratch/ran
      head -c 3000000 /dev/zero | tr '\0' "\$(printf "\\\\\$(printf %03o \$((97 + ITEM_n)))")" >"\$OUT_part"
    outputs: {part: {file: part}}
  sum:
    sh: |
      while read -r path; do cksum <"\$path"; done <"\$IN_parts" >"\$OUT_sums"
    inputs: {parts: make.part}
    outputs: {sums: {file: sums}}
YAML
check "one process gives the reference" "$sluice" run p.yaml --run-dir alone.run
check "three ranks: the run succeeds" ranks 3 run p.yaml --run-dir three.run
check "three ranks: the same result" cmp alone.run/results/sum/sums three.run/results/sum/sums
check_status "three ranks: status agrees" 0 "$sluice" status three.run --exit-code
check "three ranks: nothing to do the second time" ranks 3 run p.yaml --run-dir three.run
check_says "three ranks: says so" "nothing to do"
check "three ranks: the replay gives the digest" "$sluice" replay three.run
check "mpirun's own binding is undone: two ranks see all cores" \
  timeout 120 mpirun -n 2 "$sluice" run p.yaml --run-dir bound.run
check_says "mpirun's own binding is undone: the worker has them" "1 worker, 1 node, $(nproc) core"
check_status "a mistake under mpirun: exit 2, said once" 2 \
  eval 'sed "s/foreach/forech/" p.yaml >bad.yaml; ranks 3 run bad.yaml'
check_equal "a mistake under mpirun: printed once" "$(grep -c "error: .*forech" "$scratch/output")" 1

# -- a worker dies --------------------------------------------------------------------------------
cat >hold.yaml <<YAML
sluice: 1
name: hold
tasks:
  make:
    foreach: {n: {range: [0, 6]}}
    sh: |
      echo "make \$ITEM_n" >>$scratch/ran
      echo "\$ITEM_n" >"\$OUT_x"
    outputs: {x: {file: x}}
  hold:
    foreach: {n: {range: [0, 6]}}
    sh: |
      until [[ -e $scratch/go ]]; do read -t 0.05 <> <(:) || true; done
      cp "\$IN_x" "\$OUT_y"
    inputs: {x: make.x}
    outputs: {y: {file: y}}
  all:
    sh: cat \$(cat "\$IN_ys") >"\$OUT_z"
    inputs: {ys: hold.y}
    outputs: {z: {file: z}}
YAML
# The processes of a role, of this script only.
role_pids() {
  local pid
  for pid in $(check_own_processes); do
    [[ $(cat "/proc/$pid/comm" 2>/dev/null) == "$1" ]] && echo "$pid"
  done
}
rank_pid() {  # rank_pid ROLE MPI_RANK
  local pid
  for pid in $(role_pids "$1"); do
    grep -qsz "^OMPI_COMM_WORLD_RANK=$2\$" "/proc/$pid/environ" && echo "$pid" && return
  done
  return 1
}
for victim in sluice-rank sluice-launch sluice-guard; do
  rm -rf hold.run go ran
  ranks 4 run hold.yaml >hold.out 2>&1 &
  run=$!
  check "$victim of a worker: all six makes are done" \
    wait_until 60 eval '"$sluice" status hold.run --json | grep -q "\"done\": 6"'
  pid=$(rank_pid "$victim" 2)
  kill -9 "$pid"
  if [[ $victim == sluice-guard ]]; then
    # mpirun watches the guards: it ends the run; the same command continues it.
    wait "$run"
    touch go
    check "$victim killed: the same command finishes" ranks 4 run hold.yaml
  else
    touch go
    status=0
    wait "$run" || status=$?
    check_equal "$victim killed: the run goes on and exits 0" "$status" 0
    check "$victim killed: people are told" grep -q "worker 2 .*is lost" hold.out
  fi
  check_equal "$victim killed: the result is right" "$(tr '\n' ' ' <hold.run/results/all/z)" "0 1 2 3 4 5 "
done
