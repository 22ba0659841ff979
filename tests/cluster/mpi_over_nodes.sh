#!/bin/bash
# Nodes made of namespaces are apart from each other, ranks on them talk over the network and
# survive each other's death, and nothing of a node stays behind.
. "$(dirname "$0")/../support/check.sh"
. "$(dirname "$0")/nodes.sh"
program=${build:?}/tests/mpi/transport_test_main
guard=${repository:?}/tests/mpi/guard.sh
mpirun_nodes=$repository/tests/cluster/mpirun_nodes.sh
if ! why=$(nodes_possible); then
  skip "cluster: ranks on several nodes" "$why"
  exit 0
fi
export NODES_SHARED="$repository $build ${scratch:?}"
mounts_before=$(wc -l </proc/self/mounts)
interfaces_before=$(ip -o link | wc -l)

# ranks EXPECTED HOSTS COMMAND...: exit code 0 of mpirun, and so many ranks that say "ok".
ranks() {
  local expected=$1 said
  shift
  timeout -k 2 300 "$mpirun_nodes" "$@" >"$scratch/ranks" 2>&1 || {
    local status=$?
    cat "$scratch/ranks"
    return "$status"
  }
  said=$(grep -c '^rank [0-9]*: ok$' "$scratch/ranks")
  [[ $said == "$expected" ]] || { cat "$scratch/ranks" && return 1; }
}
on() { node_exec "$@"; }

check "cluster: two nodes come up" nodes_up n1 n2
check_equal "cluster: a node has its own host name" "$(on n2 hostname)" n2
on n1 touch /tmp/mine /dev/shm/mine
check "cluster: nodes do not share /tmp" ! on n2 test -e /tmp/mine
check "cluster: nodes do not share /dev/shm" ! on n2 test -e /dev/shm/mine
check_equal "cluster: a node has its own process ids" "$(on n2 cat /proc/1/comm)" node_init.sh
check "cluster: a program runs on both nodes" \
  eval '[[ $("$mpirun_nodes" n1:1,n2:1 hostname | sort | xargs) == "n1 n2" ]]'
check "cluster: the transport holds its contract between nodes" \
  ranks 3 n1:1,n2:2 "$program" contract
check "cluster: a rank on another node dies, the others finish, mpirun returns 0" \
  ranks 3 n1:2,n2:2 "$guard" "$scratch/death" "$program" death 3 "$scratch/death" source

reached() { on n1 timeout 2 bash -c ': </dev/tcp/n2/7'; }
refused() { local said; said=$(reached 2>&1) || [[ $said == *refused* ]]; }
check "cluster: a node reaches another one" refused
node_cut n2
check "cluster: it does not when the cable is out" ! refused
node_join n2
check "cluster: and again when it is in" wait_until 5 refused

node_kill n2
check_status "cluster: a dead node does not answer" 255 \
  node_exec n1 "$repository/tests/cluster/node_rsh.sh" n2 true
node_start n2
check "cluster: a node that is switched on again answers" \
  node_exec n1 "$repository/tests/cluster/node_rsh.sh" n2 true

state=$NODES_DIR
nodes_down
check "cluster: no state stays behind" ! test -e "$state"
check_equal "cluster: no mount stays behind" "$(wc -l </proc/self/mounts)" "$mounts_before"
check_equal "cluster: no interface stays behind" "$(ip -o link | wc -l)" "$interfaces_before"
