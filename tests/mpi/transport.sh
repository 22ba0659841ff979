#!/bin/bash
# The transport between ranks of this machine, and what the death of one of them does to the others.
. "$(dirname "$0")/../support/check.sh"
program=${build:?}/tests/mpi/transport_test_main
guard=$(cd "$(dirname "$0")" && pwd)/guard.sh
if ! command -v mpirun >/dev/null; then
  skip "mpi: the transport between ranks" "there is no mpirun"
  exit 0
fi

# ranks COUNT EXPECTED COMMAND...: exit code 0 of mpirun, and so many ranks that say "ok".
ranks() {
  local count=$1 expected=$2 said
  shift 2
  timeout -k 2 300 mpirun -n "$count" --bind-to none "$@" >"${scratch:?}/ranks" 2>&1 || {
    local status=$?
    cat "$scratch/ranks"
    return "$status"
  }
  said=$(grep -c '^rank [0-9]*: ok$' "$scratch/ranks")
  [[ $said == "$expected" ]] || { cat "$scratch/ranks" && return 1; }
}
# death COUNT EXPECTED VICTIM ROLE: as above, while rank VICTIM dies.
death() {
  rm -f "$scratch/death"
  ranks "$1" "$2" "$guard" "$scratch/death" "$program" death "$3" "$scratch/death" "$4"
}
# with NAME=VALUE... FUNCTION ARGUMENT...: in an environment of its own.
with() (
  while [[ $1 == *=* ]]; do export "${1?}" && shift; done
  "$@"
)
ucx=(OMPI_MCA_pml=ucx OMPI_MCA_pml_ucx_tls=any OMPI_MCA_pml_ucx_devices=any)

check "mpi: ranks survive a death by default" ranks 2 2 "$program" profile survive
check "mpi: what a site excludes is no choice of its own" \
  with OMPI_MCA_pml=^ucx ranks 2 2 "$program" profile survive
if ompi_info --parsable 2>/dev/null | grep -q '^mca:pml:ucx:'; then
  check "mpi: a site's network library is kept" with "${ucx[@]}" ranks 2 2 "$program" profile fast
else
  skip "mpi: a site's network library is kept" "this Open MPI has no UCX"
fi
alone() { SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=0 "$program" profile fast 2>"$scratch/refusal"; }
check_status "mpi: many processes that are each alone in their world are refused" 3 alone
check "mpi: the refusal says how often it was started and what to use" \
  grep -q '^started 4 times without MPI .*: use srun --mpi=pmix or mpirun$' "$scratch/refusal"
check "mpi: whole messages in order, control before bulk, a forgotten peer" \
  ranks 3 3 "$program" contract
check "mpi: the same over sockets" \
  with OMPI_MCA_btl=self,tcp ranks 3 3 "$program" contract
check "mpi: a rank dies amid large messages, the others finish, mpirun returns 0" \
  death 4 3 2 both
# Not "both" over sockets: Open MPI 4.1 ends a rank ("pml_ob1_sendreq.c FATAL", or a lock taken
# twice) when a connection breaks while data for the dead peer wait in it.
check "mpi: the same over sockets, when the dead one was sending" \
  with OMPI_MCA_btl=self,tcp death 3 2 2 source
