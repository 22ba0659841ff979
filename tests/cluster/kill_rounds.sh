#!/bin/bash
# The kill loop over nodes with networks, memory and process ids of their own: here objects travel,
# a cable can be pulled and a node can lose its power. Cases and oracle: tests/support/kill_rounds.sh.
. "$(dirname "$0")/../support/check.sh"
. "${repository:?}/tests/cluster/nodes.sh"
if ! why=$(nodes_possible); then
  skip "kill rounds over nodes" "$why"
  exit 0
fi
cd "${scratch:?}" || exit
pad_bytes=2500000 # three pieces of a fetch, and more than sockets hold
. "$repository/tests/support/kill_rounds.sh"
rounds=${SLUICE_KILL_ROUNDS:-$([[ ${SLUICE_LONG:-} == 1 ]] && echo 80 || echo 12)}
export NODES_DIR=$scratch/nodes NODES_SHARED="$repository ${build:?} $scratch" NODES_SUBNET=10.88.0
trap 'nodes_down; check_end' EXIT

# Rank 0 is a worker, too, as it is alone on its node.
nodes=(n1 n2 n3)
nodes_to_hurt=(n2 n3)
workers=(1 2)
blows=(
  "kill sluice-rank W" "cut N short" "kill sluice-launch W" "ends power N" "ends kill sluice-rank 0"
  "ends cut N long" "ends kill orted -" "ends kill sluice-rank 0 sluice-rank W"
  "stop sluice-rank W long" "ends kill mpirun -" "ends kill sluice-guard W"
  "kill sluice-rank W sluice-rank V" "stop sluice-rank 0 short" "stop sluice-rank W short"
  "ends stop sluice-rank 0 long" "kill sluice-h5 -" "hang seal.reported:3@W"
  "ends hang seal.reported:3@0"
)
points=(
  "point fetch.asked:6@W" "point fetch.serve:4@W" "point fetch.served:4@W" "point fetch.chunk:4@W"
  "point fetch.chunk.written:4@W" "point fetch.last:2@W" "point fetch.sealed:2@W"
  "ends point fetch.serve:3@0" "ends point fetch.chunk:2@0" "point store.sealed:6@W"
  "point publish.saved:3@W" "point seal.reported:6@W" "ends point journal.done.appended:20@0"
  "ends point publish.renamed:8@0" "point drop.removed:5@W" "point attempt.staged:8@W"
)

# All that this script started, but for the nodes themselves.
declare -A of_nodes
own_processes() {
  local pid
  for pid in $(check_own_processes); do
    if [[ ! -v of_nodes[$pid] ]]; then echo "$pid"; fi
  done
}
note_processes_of_nodes() {
  local pid
  of_nodes=()
  for pid in $(check_own_processes); do of_nodes[$pid]=1; done
}
left_memory() {
  local node pid
  for node in "${nodes[@]}"; do
    pid=$(nodes_pid "$node" 2>/dev/null) || continue
    find "/proc/$pid/root"/{dev/shm,tmp} -maxdepth 1 \
      \( -name 'sluice.[0-9]*' -o -name 'vader_segment*' \) -printf "$node: %f\n" 2>/dev/null
  done
  check_left_memory
}
# Between nodes MPI may end a rank that has words left for a dead one (io/mpi_session.h).
may_end() { true; }

# With --enable-recovery mpirun waits for ever for the daemon of a node without power, when all is
# done: it is told to end, as a job script does, too.
mpirun_waits_for_the_dead() {
  [[ ${options_of_mpirun[*]:-} == *recovery* ]] && is_said 'instances done' &&
    [[ -z $(victim_pids sluice-guard -) ]]
}

after_blow() {
  local node dead=false
  for node in "${nodes[@]}"; do
    [[ -e $NODES_DIR/$node.pid ]] && continue
    node_start "$node" || wrong "the node $node does not start again"
    dead=true
  done
  if $dead; then note_processes_of_nodes; fi
}

start_run() {
  options_of_mpirun=()
  # Where a daemon of mpirun dies with its node the run goes on only with this.
  if [[ $1 == first && ${what:-} == power* && $((seed / 2 / ${#blows[@]} % 2)) == 0 ]]; then
    options_of_mpirun=(--enable-recovery)
  fi
  (
    export SLUICE_FAULT=$2
    exec bash "$repository/tests/cluster/mpirun_nodes.sh" n1:1,n2:1,n3:1 -x SLUICE_FAULT \
      "${options_of_mpirun[@]}" "$sluice" run p.yaml --lost-after "$lost_after"
  ) >"$1" 2>&1 &
  run=$!
}

nodes_up "${nodes[@]}" || exit 1
note_processes_of_nodes
play_rounds
