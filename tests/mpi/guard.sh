#!/bin/bash
# guard.sh PROGRAM ARGUMENT... - stands for the engine's guard: mpirun watches this process, which
# has no MPI, so it does not see its child, the rank, die. Rank 0's status is passed on; another
# rank's death is hidden, as the engine does it.
"$@" &
rank=$!
trap 'kill -TERM "$rank" 2>/dev/null' TERM INT
while :; do
  wait "$rank"
  status=$?
  kill -0 "$rank" 2>/dev/null || break
done
[ "${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-0}}" = 0 ] && exit "$status"
[ "$status" -gt 128 ] && exit 0
exit "$status"
