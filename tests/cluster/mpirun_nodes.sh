#!/bin/bash
# mpirun_nodes.sh NODE[:RANKS],... [MPIRUN OPTION...] PROGRAM ARGUMENT... - Open MPI over nodes of
# nodes.sh, mpirun itself on the first one. Uses the nodes that are up in NODES_DIR; if there are
# none it makes those named, and takes them down at the end. Exit code: mpirun's; 77: not possible
# here.
set -uo pipefail
. "$(cd "$(dirname "$0")" && pwd)/nodes.sh"
hosts=$1
shift
IFS=, read -ra names <<<"$hosts"
names=("${names[@]%%:*}")
if ! nodes_are_up; then
  nodes_possible || exit 77
  trap nodes_down EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  nodes_up "${names[@]}" || exit 1
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# oob: its daemons; btl: messages of ranks.
node_exec "${names[0]}" mpirun --host "$hosts" --oversubscribe --bind-to none \
  --mca plm rsh --mca plm_rsh_agent "${nodes_here:?}/node_rsh.sh" --mca plm_rsh_no_tree_spawn 1 \
  --mca oob_tcp_if_include eth0 --mca btl_tcp_if_include eth0 -x NODES_DIR "$@"
