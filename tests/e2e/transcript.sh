#!/bin/bash
# The first hour of a newcomer, as a transcript: a typo in the spec, one failing task among 200, and
# Ctrl-C in the middle. What the terminal shows is kept in golden/transcript.txt, with times, paths
# and counts that depend on the moment replaced; SLUICE_BLESS=1 writes it anew.
. "$(dirname "$0")/../support/check.sh"
golden=${repository:?}/tests/e2e/golden/transcript.txt
cd "${scratch:?}" || exit
PATH=${build:?}:$PATH

# show COMMAND...: as a person would see it.
show() {
  local status=0
  printf '$ %s\n' "$*"
  "$@" 2>&1 </dev/null || status=$?
  printf '[exit %s]\n\n' "$status"
}

# What differs from machine to machine and from day to day.
neutral() {
  sed -E -e "s|$scratch|~|g" -e "s/\b$(hostname)\b/HOST/g" \
    -e 's/[0-9]+(\.[0-9]+)? (ms|s|min)\b/TIME/g' -e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9:]+/DATE/g' \
    -e 's/pid [0-9]+/pid PID/g' -e 's/[0-9]+ workers?, [0-9]+ nodes?, [0-9]+ cores?/WORKERS/' \
    -e 's/attempt 1\.[0-9]+/attempt 1.N/g'
}

mkdir data
for n in $(seq 0 199); do echo "$n" >"data/$n.txt"; done
echo "not a number" >data/137.txt
cat >squares.yaml <<'YAML'
sluice: 1
name: squares
tasks:
  square:
    foreach: {n: {rang: [0, 200]}}
    sh: |
      read -r x <"$IN_number"
      [[ $x =~ ^[0-9]+$ ]] || { echo "'$x' is no number" >&2; exit 3; }
      echo $((x * x)) >"$OUT_square"
    inputs:  {number: {file: "data/${{ item.n }}.txt"}}
    outputs: {square: {file: square.txt, keep: true}}
  sum:
    sh: xargs cat <"$IN_squares" | awk '{s += $1} END {print s}' >"$OUT_sum"
    inputs:  {squares: square.square}
    outputs: {sum: {value: int}}
YAML
# Each attempt says that it has begun; from the sixth on it waits until the file `go` is there.
mkfifo never
cat >slow.yaml <<YAML
sluice: 1
name: slow
tasks:
  wait:
    foreach: {n: {range: [0, 20]}}
    sh: |
      echo "\$ITEM_n" >>$scratch/begun
      until [[ \$ITEM_n -lt 5 || -e $scratch/go ]]; do read -rt 0.05 <>$scratch/never || true; done
      echo "\$ITEM_n" >"\$OUT_x"
    outputs: {x: {file: x.txt}}
YAML

stop_in_the_middle() {
  local status=0 run
  echo '$ sluice run slow.yaml'
  sluice run slow.yaml >stopped 2>&1 </dev/null &
  run=$!
  wait_until 60 grep -qx 5 begun || echo "the sixth instance did not begin"
  echo '^C'
  kill -INT "$run"
  wait "$run" || status=$?
  sed -E 's/[0-9]+ of 20/N of 20/; s/\([0-9]+ ran now[^)]*\)/(…)/' stopped
  printf '[exit %s]\n\n' "$status"
}

{
  echo "# a typo"
  show sluice check squares.yaml
  sed -i 's/{rang:/{range:/' squares.yaml
  show sluice check squares.yaml
  echo "# one of 200 fails"
  show sluice run squares.yaml
  show sluice logs squares.run --failed
  echo 137 >data/137.txt
  show sluice plan squares.yaml
  show sluice run squares.yaml
  show cat squares.run/results/sum/sum
  echo "# Ctrl-C in the middle"
  stop_in_the_middle
  touch go
  show sluice run slow.yaml | sed -E 's/\([0-9]+ ran now[^)]*\)/(…)/'
} | neutral >transcript

if [[ -n ${SLUICE_BLESS:-} ]]; then cp transcript "$golden"; fi
check "transcript: the terminal shows what the golden transcript shows" diff "$golden" transcript
check_equal "transcript: after Ctrl-C nothing that was done ran again" \
  "$(sort -n begun | uniq -c | awk '$2 < 5 && $1 > 1')" ""
check_equal "transcript: and all of it is there" "$(find slow.run/results/wait -type f ! -name items.tsv | wc -l)" 20
