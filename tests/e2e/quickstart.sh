#!/bin/bash
# The promise of the README: one command builds and runs configs/quickstart, and the numbers are
# right. They are computed here again, not from a simulation but from the closed form of the scheme:
# sin sin is an eigenvector of the five-point operator, so each step multiplies it by
# g = 1 - 8 r sin^2(pi / 2N), with r = alpha dt / dx^2.
. "$(dirname "$0")/../support/check.sh"
cd "${repository:?}" || exit

# A copy, so that a run of the user's own is neither used nor disturbed.
copy=${scratch:?}/copy
mkdir "$copy"
cp -r jobscripts configs CMakePresets.json "$copy"
rm -rf "$copy"/configs/quickstart/*.run
ln -s "$repository/build" "$copy/build"
run=$copy/configs/quickstart/heat.run
results=$run/results/report

study() {
  if [[ ${build:?} == "$repository/build/release" ]]; then
    bash "$copy/jobscripts/quickstart.sh" "$@"
  else
    "${sluice:?}" run "$copy/configs/quickstart/heat.yaml" "$@"
  fi
}

check "quickstart: the study runs to its end" study || exit 1
if [[ $build == "$repository/build/release" ]]; then
  check_says "quickstart: it ends by naming the table" '^table:   .*/heat.csv$'
  check_says "quickstart: and the picture" '^picture: .*/heat.svg$'
fi

# wrong_numbers FILE: every line of the table that is not as it must be.
wrong_numbers() {
  awk -F, '
    function near(name, found, expected, tolerance) {
      if (found - expected > tolerance || expected - found > tolerance)
        printf "line %d: %s is %s, expected %.10g\n", NR, name, found, expected
    }
    NR == 1 {
      if ($0 != "grid,alpha,time,max_u,mean_u,l2_error,order") print "line 1: " $0
      next
    }
    {
      n = $1; alpha = $2; time = $3; dx = 1 / n; pi = atan2(0, -1)
      steps = alpha * time / (0.2 * dx * dx)
      steps = steps == int(steps) ? steps : int(steps) + 1
      r = alpha * (time / steps) / (dx * dx)
      g = (1 - 8 * r * sin(pi / (2 * n)) ^ 2) ^ steps
      exact = exp(-2 * pi * pi * alpha * time)
      cotangent = cos(pi / (2 * n)) / sin(pi / (2 * n))
      near("max_u", $4, g, 1e-8)
      near("mean_u", $5, g * (dx * cotangent) ^ 2, 1e-8)
      near("l2_error", $6, (exact > g ? exact - g : g - exact) / 2, 1e-9)
      if ($7 != "") near("order", $7, 2, 0.05)
    }
    END {if (NR != 26) print NR - 1 " cases, expected 25"}' "$1"
}
check_equal "quickstart: every number of the 25 cases agrees with the closed form of the scheme" \
  "$(wrong_numbers "$results/heat.csv")" ""
check "quickstart: the picture is complete" \
  eval 'tail -n 1 "$results/heat.svg" | grep -q "</svg>" &&
        test "$(grep -c "<circle" "$results/heat.svg")" = 25'
check "quickstart: the observed order of the scheme is 2" \
  awk '{exit !($1 > 1.95 && $1 < 2.05)}' "$results/order"

# made: what tells apart a result that was written again.
made() { stat -c '%i %Y' "$results"/*; }
before=$(made)
check "quickstart: a second run succeeds" study
check_equal "quickstart: a second run writes nothing again" "$(made)" "$before"

grids='grids=[32, 64, 96, 128, 192, 256]'
check "quickstart: the plan of one more grid says what will run, and that the rest may stay" \
  eval '"$sluice" plan "$copy/configs/quickstart/heat.yaml" --set "$grids"'
check_says "quickstart: no other simulation is planned" "^simulate: 30 instances, 5 will run, 25 up to date"
check "quickstart: one more grid succeeds" study --set "$grids"
check_says "quickstart: only its simulations, its reduction and the report ran" "38 of 38 instances done \(7 ran now\)"
sed -i "s/observed order/found order/" "$copy/configs/quickstart/report.cpp"
check "quickstart: an edited report succeeds" study --set "$grids"
check_says "quickstart: only build and report ran, nothing was simulated" "\(2 ran now\)"
check "quickstart: the edited program made the picture" grep -q "found order" "$results/heat.svg"

check_status "quickstart: a wrong parameter fails the run, status 1" 1 study --set time=-1
check_says "quickstart: the failure shows what the program said" \
  "heat: TIME is '-1', expected a number above 0"
