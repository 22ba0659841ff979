#!/bin/bash
# guard.sh DEATH-FILE PROGRAM ARGUMENT... - stands for the engine's guard: mpirun watches this
# process, which has no MPI, so it does not see its child, the rank, die. Rank 0's status is passed
# on. A signal that ended another rank is hidden, and leaves DEATH-FILE.
death_file=$1
shift
"$@" &
rank=$!
trap 'kill -TERM "$rank" 2>/dev/null' TERM INT
while :; do
  wait "$rank"
  status=$?
  kill -0 "$rank" 2>/dev/null || break
done
if [ "${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-0}}" != 0 ] && [ "$status" -gt 128 ]; then
  touch "$death_file"
  exit 0
fi
exit "$status"
