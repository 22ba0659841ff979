#!/bin/bash
# A user with low limits: on open files, processes, the size of files, and shared memory. The run is
# right, only slower, or ends with the cause and what to do; it never hangs, and the same command
# without the limit finishes what was left. Limits hold for users only: root steps down.
. "$(dirname "$0")/../support/check.sh"
cd "${scratch:?}" || exit
sluice=${sluice:?}
# Of a user that nobody else uses at the same time: processes are counted by user.
uid=$((60000 + $$ % 5000))
if ! setpriv --reuid="$uid" --regid="$uid" --clear-groups true 2>/dev/null; then
  skip "low limits" "needs the right to become another user (setpriv)"
  exit 0
fi
chmod 755 "$scratch"
mkdir work && chown "$uid" work "$TMPDIR" && cd work || exit
sluice_copy=$scratch/bin/sluice
mkdir "$scratch/bin" && cp "$sluice" "$(dirname "$sluice")/sluice-h5" "$scratch/bin" || exit

cat >p.yaml <<'YAML'
sluice: 1
name: limits
tasks:
  make:
    foreach: {n: {range: [0, 24]}}
    sh: |
      echo "said $ITEM_n"
      yes "$ITEM_n" | head -c 20000 >"$OUT_x" || [ "${PIPESTATUS[1]}" = 0 ]
    outputs: {x: {file: x}}
YAML

# as_user LIMITS...: the run, with those options of prlimit.
as_user() {
  local step=(setpriv --reuid="$uid" --regid="$uid" --clear-groups)
  # What it prints goes through a pipe: no limit on the size of files is reached by that.
  timeout -k 10 120 "${step[@]}" prlimit "$@" env HOME="$PWD" "$sluice_copy" run p.yaml --run-dir r 2>&1 |
    cat
  return "${PIPESTATUS[0]}"
}
whole_results() { find r/results/make -type f -size 20000c 2>/dev/null | wc -l; }
anew() { chmod -R u+w r 2>/dev/null; rm -rf r; }
no_bug() { ! grep -q 'bug in sluice' "$scratch/output"; }
# What a limit left undone is done without it.
check_rest() {
  check "$1: then all is done without the limit" as_user --core=0
  check_equal "$1: and all results are whole" "$(whole_results)" 24
}

# ---------------------------------------------------------------- open files

for files in 40 64 256; do
  anew
  check "at most $files open files: the run is done" as_user --nofile="$files:$files"
  check_equal "at most $files open files: all results are whole" "$(whole_results)" 24
done
anew
check_status "at most 20 open files: exit 3" 3 as_user --nofile=20:20
check_says "at most 20 open files: the message says what to do" \
  'only 20 files may be open at a time, 32 are needed at the least: raise .*ulimit -n'
check_rest "at most 20 open files"

# ---------------------------------------------------------------- processes

# Enough for some forks and not for all: bash tries again by itself, and so does the launcher.
anew
as_user --nproc=12:12 >"$scratch/output" 2>&1
status=$?
check_equal "at most 12 processes: the run ends" "$((status == 0 || status == 1))" 1 ||
  tail -n 20 "$scratch/output"
check_rest "at most 12 processes"

# Threads count as well.
anew
check_status "at most 3 processes: exit 3" 3 as_user --nproc=3:3
check_says "at most 3 processes: the message names the limit" 'ulimit -u'
check "at most 3 processes: no failed assertion" no_bug
check_rest "at most 3 processes"

# One attempt finds room, or none: what waits is told.
anew
as_user --nproc=6:6 >"$scratch/output" 2>&1 &
run=$!
waits() { grep -q 'wait to be started, .*cannot make a process: .*ulimit -u' "$scratch/output"; }
check "at most 6 processes: it says that attempts wait, and why" wait_until 100 waits
pkill -TERM -P "$run" timeout 2>/dev/null
wait "$run"
check_rest "at most 6 processes"

# ---------------------------------------------------------------- size of files

anew
as_user --fsize=2000:2000 >"$scratch/output" 2>&1
status=$?
check_equal "files of at most 2000 bytes: exit 3 for the journal" "$status" 3 || tail -n 20 "$scratch/output"
check_says "files of at most 2000 bytes: the message names the limit" \
  'the journal cannot be written: .*File too large; raise the limit .*ulimit -f'
check_rest "files of at most 2000 bytes"

# Programs die of it where it is their file that is too large.
anew
check_status "files of at most 15000 bytes: the tasks fail" '[14]' as_user --fsize=15000:15000
check_says "files of at most 15000 bytes: their cause is shown" 'ended by (exit|signal)'
check_rest "files of at most 15000 bytes"

# ---------------------------------------------------------------- shared memory

in_small_memory() {
  unshare --mount --propagation private bash -c "mount -t tmpfs -o size=$1,mode=1777 tmpfs /dev/shm && $(declare -f as_user) &&
    uid=$uid sluice_copy=$sluice_copy && as_user --core=0"
}
if unshare --mount --propagation private mount -t tmpfs tmpfs /dev/shm 2>/dev/null; then
  for size in 1m 4m; do
    anew
    check "shared memory of $size: the run is done" in_small_memory "$size"
    check_equal "shared memory of $size: all results are whole" "$(whole_results)" 24
  done
else
  skip "small shared memory" "needs the right to mount"
fi
