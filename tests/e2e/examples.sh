#!/bin/bash
# The examples of configs/ run, and give what their READMEs say; computed again here by other means.
. "$(dirname "$0")/../support/check.sh"
cd "${scratch:?}" || exit
sluice=${sluice:?}
cp -r "${repository:?}"/configs/{sweep,files,values,many} . || exit

# ran: how many instances the last command ran.
ran() { sed -n 's/.* done (\([0-9]*\) ran now.*/\1/p' output; }

# ---------------------------------------------------------------- sweep

check "sweep: runs" "$sluice" run sweep/sweep.yaml
table=sweep/sweep.run/results/table/exponents.tsv
check_equal "sweep: six rates in the order of the spec, four starts each" \
  "$(awk 'NR > 1 {print $1, $3}' $table | tr '\n' ';')" "2.8 4;3.2 4;3.5 4;3.7 4;3.9 4;4.0 4;"
check_equal "sweep: at a rate of 4 the exponent is ln 2" \
  "$(awk '$1 == "4.0" {print $2}' $table)" "$(awk 'BEGIN {printf "%.4f", log(2)}')"
# The fixed point 1 - 1/r attracts below 3; its multiplier is 2 - r.
check_equal "sweep: at a rate of 2.8 it is ln |2 - r|" \
  "$(awk '$1 == "2.8" {print $2}' $table)" "$(awk 'BEGIN {printf "%.4f", log(0.8)}')"
check "sweep: again" "$sluice" run sweep/sweep.yaml
check_equal "sweep: again runs nothing" "$(ran)" ""
check "sweep: one rate more" "$sluice" run sweep/sweep.yaml --set 'rates=[2.8, 3.2, 3.5, 3.6, 3.7, 3.9, 4.0]'
check_equal "sweep: one rate more runs its four instances, its average and the table" "$(ran)" 6

# ---------------------------------------------------------------- values

check "values: runs" "$sluice" run values/values.yaml
check_equal "values: the last root is that of 2" \
  "$(tail -n 1 values/values.run/results/report/roots.tsv)" "5	1.41421356237309"

# ---------------------------------------------------------------- many

check "many: runs" "$sluice" run many/many.yaml
check_equal "many: 10 000 squares sum up to n (n - 1) (2 n - 1) / 6" \
  "$(cat many/many.run/results/sum/sum)" "$((10000 * 9999 * 19999 / 6))"
if [[ ${SLUICE_LONG:-} == 1 ]]; then
  check "many: 20 000" "$sluice" run many/many.yaml --set count=20000
  check_equal "many: and those sum up as well" "$(cat many/many.run/results/sum/sum)" "$((20000 * 19999 * 39999 / 6))"
fi

# ---------------------------------------------------------------- files

check_status "files: one broken file makes the run end with 1" 1 "$sluice" run files/files.yaml
check_says "files: the message of its program is in the summary" 'data/station-3.csv:4: "n.a." is no temperature'
check_equal "files: the other four are done" "$(find files/files.run/results/summarise -name "*.row.tsv" | wc -l)" 4
check "files: logs --failed shows the failed attempt" "$sluice" logs files/files.run --failed
check_says "files: and only that" 'station-3'
sed -i 's/n\.a\./15.9/' files/data/station-3.csv
check "files: mended, it runs" "$sluice" run files/files.yaml
check_equal "files: only the mended file and the table ran" "$(ran)" 2
check_equal "files: the table has five rows" "$(wc -l <files/files.run/results/table/table.tsv)" 5
printf 'hour,temperature\n00,1.5\n' >files/data/station-6.csv
check "files: with one file more, it runs" "$sluice" run files/files.yaml
check_says "files: it says that there is a new item" '1 new item'
check_equal "files: only the new file and the table ran" "$(ran)" 2
