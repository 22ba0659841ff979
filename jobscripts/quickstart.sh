#!/bin/bash
#SBATCH --job-name=sluice-quickstart
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=4
#SBATCH --time=00:15:00
# Builds Sluice and runs its first pipeline, configs/quickstart/heat.yaml, with one process:
#
#   bash jobscripts/quickstart.sh        or        sbatch jobscripts/quickstart.sh
#
# Installs missing packages with apt where it may and names them where it may not. Arguments go to
# `sluice run` (for example --set time=0.05). Run it again: what is done is not done again.
# Exit status: that of `sluice run`; 3 when something that Sluice needs is missing or cannot build.
set -euo pipefail

# Slurm runs a copy of this file from elsewhere; then the repository is where sbatch was called.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
[[ -f $root/configs/quickstart/heat.yaml ]] || root=${SLURM_SUBMIT_DIR:-$PWD}
if [[ ! -f $root/configs/quickstart/heat.yaml ]]; then
  echo "error: found no configs/quickstart/heat.yaml below '$root'; submit from the folder that" \
    "holds Sluice's README.md" >&2
  exit 2
fi
cd "$root"

. jobscripts/prepare.sh
prepare build

log=build/quickstart.log
mkdir -p build
explain() {
  echo "error: building Sluice failed; the end of $root/$log:" >&2
  tail -n 25 "$log" >&2
  exit 3
}
: >"$log"
if [[ ! -f build/release/build.ninja ]]; then
  cmake --preset release -DSLUICE_TESTS=OFF >>"$log" 2>&1 || explain
fi
# Says that it builds only when that takes a while.
{ sleep 2 >/dev/null 2>&1 && echo "building Sluice, some minutes when new (see $root/$log)" >&2; } &
timer=$!
cmake --build --preset release --target sluice sluice-h5 >>"$log" 2>&1 || explain
kill "$timer" 2>/dev/null || true

status=0
build/release/sluice run configs/quickstart/heat.yaml "$@" || status=$?
if [[ $status == 0 ]]; then
  results=configs/quickstart/heat.run/results/report
  echo "table:   $root/$results/heat.csv"
  echo "picture: $root/$results/heat.svg"
fi
exit "$status"
