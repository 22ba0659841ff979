#!/bin/bash
# Runs a pipeline with N MPI ranks on this machine: rank 0 schedules, the others work.
#
#   jobscripts/local.sh N PIPELINE.yaml [ARGUMENT of `sluice run`]...
#
# Ctrl-C, SIGTERM or SIGUSR1 stop it in order (what is sealed is kept, the same command continues);
# a second one stops it at once. The binary is $SLUICE, else build/release/sluice beside this
# folder, else the one in PATH. Exit status: that of the run, as `sluice status --exit-code` says
# it, because mpirun's own says little after a signal.
set -uo pipefail

usage() {
  echo "error: $1" >&2
  echo "usage: jobscripts/local.sh N PIPELINE.yaml [ARGUMENT of 'sluice run']..." >&2
  exit 2
}
[[ ${1:-} =~ ^[1-9][0-9]*$ ]] || usage "found '${1:-}' where the number of ranks is expected"
(($# >= 2)) || usage "no pipeline is named"
ranks=$1 pipeline=$2
shift 2

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
sluice=${SLUICE:-$root/build/release/sluice}
[[ -n ${SLUICE:-} || -x $sluice ]] || sluice=$(command -v sluice) || {
  echo "error: found no sluice: not in '$root/build/release', not in PATH; build it or set SLUICE" >&2
  exit 3
}
command -v mpirun >/dev/null || {
  echo "error: found no mpirun; install Open MPI, or load its module" >&2
  exit 3
}

# What `sluice status` needs to find the run.
run=$pipeline
for ((i = 1; i <= $#; ++i)); do
  case ${!i} in
    --run-dir=*) run=${!i#--run-dir=} ;;
    --run-dir) next=$((i + 1)) && run=${!next:-$run} ;;
  esac
done

options=(-n "$ranks" --oversubscribe --bind-to none)
if [[ $(id -u) == 0 ]]; then options+=(--allow-run-as-root); fi
# A session of its own: Ctrl-C reaches this script alone, mpirun would kill the ranks after 1 s.
setsid mpirun "${options[@]}" "$sluice" run "$pipeline" "$@" </dev/null &
mpirun=$!

signals=0
pass_on() {
  signals=$((signals + 1))
  if ((signals == 1)); then kill -USR1 "$mpirun"; else kill -TERM "$mpirun"; fi
}
trap pass_on USR1 INT TERM
while :; do
  wait "$mpirun"
  status=$?
  kill -0 "$mpirun" 2>/dev/null || break
done

# Bad usage, or a machine that cannot: there is no run to ask about.
((status == 2 || status == 3)) && exit "$status"
"$sluice" status --exit-code "$run" >/dev/null
result=$?
# Stopped before the run began: then there is nothing to ask about either.
((result == 2 && signals > 0)) && result=130
exit "$result"
