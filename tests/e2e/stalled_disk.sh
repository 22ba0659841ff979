#!/bin/bash
# A stalled parallel file system: in the middle of a run every write in the run directory blocks, for
# longer than a worker may be silent. No worker is declared lost, nothing runs twice, no result is
# lost, and signals are answered meanwhile. The file system is an ext4 image that is frozen.
if [[ -z ${STALLED_DISK_NAMESPACE:-} ]] && unshare --mount true 2>/dev/null; then
  exec env STALLED_DISK_NAMESPACE=1 unshare --mount --propagation private "$0"
fi
. "$(dirname "$0")/../support/check.sh"
cd "${scratch:?}" || exit
sluice=${sluice:?}
disk=$scratch/disk

mount_disk() {
  mkdir disk && truncate -s 64M image && mkfs.ext4 -q image && mount -o loop image disk &&
    fsfreeze -f disk && fsfreeze -u disk
}
if ! mount_disk >mount.log 2>&1; then
  umount -l disk 2>/dev/null
  skip "a stalled disk" "needs the right to mount and freeze an ext4 image: $(tail -n 1 mount.log)"
  exit 0
fi
thaw() { fsfreeze -u "$disk" 2>/dev/null; }
# Nothing can be killed that waits for the disk.
trap 'thaw; kill "${run:-$$}" 2>/dev/null; wait 2>/dev/null; cd /; umount -l "$disk"; check_end' EXIT

# Longer than --lost-after; what a worker does then, it does not do at once.
stall_seconds=15 lost_after=10
[[ -z ${SLUICE_LONG:-} ]] || stall_seconds=90

# What ran is noted on another file system.
cat >p.yaml <<YAML
sluice: 1
name: stalled
tasks:
  make:
    foreach: {n: {range: [0, 120]}}
    sh: |
      echo "\$ITEM_n" >>$scratch/ran
      sleep 0.2
      echo "result \$ITEM_n" >"\$OUT_x"
      echo "said \$ITEM_n"
    outputs: {x: {file: x}}
YAML

begin() {
  rm -rf disk/run ran
  : >ran
  SLUICE_DEBUG=1 timeout 300 "$@" --run-dir disk/run --lost-after "$lost_after" >run.log 2>&1 &
  run=$!
}
ran_at_least() { (($(wc -l <ran) >= $1)); }
freeze_midway() { wait_until 100 ran_at_least 8 && fsfreeze -f disk; }
# The stall itself takes its time.
outlast_stall() {
  local until=$((SECONDS + stall_seconds))
  wait_until $((stall_seconds + 60)) eval "((SECONDS > $until))"
}
result_count() { find disk/run/results/make -type f -exec grep -l '^result ' {} + | wc -l; }
# What a rank's control thread waited for at most in one turn, in ms; the stall is seconds.
longest_wait() { sed -nE 's/.*blocked for more than 1 ms, at most ([0-9]+) ms$/\1/p' run.log | sort -n | tail -n 1; }
says() { grep -qE -- "$1" run.log; }

# -- the run goes on

for how in alone mpirun; do
  command=("$sluice" run p.yaml) ranks=1
  [[ $how == alone ]] || command=(mpirun -n 3 --bind-to none "${command[@]}") ranks=3
  begin "${command[@]}"
  check "$how: the disk stalls in the middle of the run" freeze_midway
  check "$how: and it does for longer than a worker may be silent" outlast_stall
  check "$how: the run is still there" kill -0 "$run"
  check "$how: it goes on when the disk does" thaw
  wait "$run"
  check_equal "$how: it ends well" $? 0 || tail -n 20 run.log
  check_equal "$how: no worker was declared lost" "$(grep -c 'is lost' run.log)" 0
  check_equal "$how: nor recorded as lost" "$(cat disk/run/journal.*.jsonl | grep -c '"state":"lost"')" 0
  check_equal "$how: every rank says what its control thread waited for" \
    "$(grep -c 'turns of the control thread' run.log)" "$ranks"
  check "$how: and no control thread waited for the disk" eval '(($(longest_wait) + 0 < 1000))'
  check_equal "$how: all results are there" "$(result_count)" 120
  check_equal "$how: nothing ran twice" "$(sort ran | uniq -d | wc -l)" 0
  check_equal "$how: what each task printed is there" \
    "$("$sluice" logs disk/run 2>/dev/null | grep -c '^said ')" 120
done

# -- signals while it stalls

begin "$sluice" run p.yaml
check "stop: the disk stalls in the middle of the run" freeze_midway
kill -TERM "$(pgrep -P "$run")"
check "stop: SIGTERM is answered while the disk stalls" wait_until 10 says 'stopping because of SIGTERM'
check "stop: the disk goes on" thaw
wait "$run"
check_equal "stop: the run ends in order" $? 4
check "stop: it is continued" "$sluice" run p.yaml --run-dir disk/run
check_equal "stop: then all results are there" "$(result_count)" 120
