#!/bin/bash
# What people see at a terminal and what a batch log gets: progress, colours, a resize, Ctrl-C once
# and twice, a reader who goes away. `pty` gives a real pseudo-terminal and acts when a text comes.
. "$(dirname "$0")/../support/check.sh"
cd "${scratch:?}" || exit
sluice=${sluice:?} pty=${build:?}/tests/pty
unset NO_COLOR
export TERM=xterm

# The last command goes on when a file appears: nothing here depends on how long anything takes.
list() { printf '%s\n' true true true false "$1" >list && rm -rf list.run go; }
waits="until [[ -e $PWD/go ]]; do sleep 0.02; done"
# Control characters, but for the line ends of a terminal.
controls() { sed 's/\r$//' "$1" | grep -caP '[\x00-\x08\x0b-\x1f]'; }
go=file=$PWD/go
progress=$'\r\e\\[K'

# ---------------------------------------------------------------- progress

list "$waits"
check_status "terminal: a run shows its progress" 1 \
  "$pty" --limit 30 --on '3/5 done, 1 running, 1 failed' "$go" -- "$sluice" run --commands list
check_says "terminal: on one line, drawn again" "$progress"
check_says "terminal: errors are coloured" $'\e\\[31merror\e\\[0m'
check_says "terminal: the summary has the line to itself" "${progress}sluice: 4 of 5 instances done"

list "$waits"
check_status "NO_COLOR: progress is shown" 1 \
  env NO_COLOR=1 "$pty" --limit 30 --on '3/5 done, 1 running, 1 failed' "$go" -- "$sluice" run --commands list
check_equal "NO_COLOR: nothing is coloured" "$(grep -cP '\e\[[0-9;]*m' "$scratch/output")" 0

list true
check_status "TERM=dumb: a run" 1 env TERM=dumb "$pty" --limit 30 -- "$sluice" run --commands list
check_equal "TERM=dumb: plain lines" "$(controls "$scratch/output")" 0

# UC-100
list true
"$sluice" run --commands list >stdout 2>stderr
check_equal "file: a batch log gets plain lines" "$(controls stderr)" 0
check_equal "file: nothing but results goes to stdout" "$(cat stdout)" ""

list "$waits"
check_status "resize: the line shrinks with the terminal" 1 \
  "$pty" --limit 30 --size 80x24 --on '3/5 done, 1 running, 1 failed' size=15x5 \
  --on $'\e[K3/5 done, 1 ru\r' "$go" -- "$sluice" run --commands list

# ---------------------------------------------------------------- Ctrl-C

list "$waits"
check_status "Ctrl-C: the run stops in order" 4 \
  "$pty" --limit 30 --on '3/5 done, 1 running' interrupt -- "$sluice" run --commands list
check_says "Ctrl-C: it says so" 'stopping because of Ctrl-C \(a second one ends it at once\): nothing new starts'
check_says "Ctrl-C: and how to go on" 'continue with: sluice run --commands list'
check_status "Ctrl-C: the run is known to be unfinished" 4 "$sluice" status --exit-code list
touch go
check_status "Ctrl-C: the same command continues" 1 "$sluice" run --commands list
check_says "Ctrl-C: with what was not done" '4 of 5 instances done \(1 ran now\)'

list "trap '' TERM INT; $waits"
check_status "Ctrl-C twice: ends at once" 130 \
  "$pty" --limit 30 --on '3/5 done, 1 running' interrupt --on 'a second one ends it at once' interrupt \
  -- "$sluice" run --commands list
check "Ctrl-C twice: no command is left" wait_until 10 bash -c '! pgrep -f "[u]ntil .* -e $1"' bash "$PWD/go"
touch go
check_status "Ctrl-C twice: the same command continues" 1 "$sluice" run --commands list

# ---------------------------------------------------------------- ends

printf '%s\n' true true >list
rm -rf list.run
"$sluice" run --commands list 2>&1 | true
check_equal "closed pipe: the run goes on without its reader" "${PIPESTATUS[0]}" 0
check "closed pipe: and is done" "$sluice" status --exit-code list
check_status "full disk: a run whose messages nobody gets is a run all the same" 0 \
  bash -c '"$1" run --commands list 2>/dev/full' bash "$sluice"

# UC-083
said() { grep -v '^sluice: [^:]*: ' "$scratch/output" | grep -ci 'warn\|error\|abort\|exit'; }
for count in 1 2 3; do
  echo "true $count" >one
  check "ends: one command, time $count" timeout 60 "$sluice" run --commands one
done
check "ends: nothing is left to do" timeout 60 "$sluice" run --commands one
if command -v mpirun >/dev/null; then
  echo "true mpi" >one
  check "ends: a worker that never gets a task" timeout 60 mpirun -n 3 "$sluice" run --commands one
  check_equal "ends: without a complaint" "$(said)" 0
else
  skip "ends: a worker that never gets a task" "no mpirun here"
fi
