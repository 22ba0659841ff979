#!/bin/bash
# node_init.sh NAME - process 1 of a node (see nodes.sh): makes its mounts, then starts what the
# other nodes ask for. A request is a line in the pipe NAME.requests: a folder with the command and
# pipes for its output. Entering a sibling's PID namespace is not possible, so nodes ask like this.
set -euo pipefail
name=$1

mount_own_files() {
  local folder own_tmp=$NODES_DIR/$name.tmp
  mkdir -p "$own_tmp"
  mount -t tmpfs -o size=4g,mode=1777 "node-$name" "$own_tmp"
  for folder in "$NODES_DIR" ${NODES_SHARED:-}; do
    [[ $folder == /tmp/* ]] || continue
    mkdir -p "$own_tmp/${folder#/tmp/}"
    mount --bind "$folder" "$own_tmp/${folder#/tmp/}"
  done
  mount -t tmpfs -o size=4g,mode=1777 "node-$name" /dev/shm
  mount --bind "$NODES_DIR/hosts" /etc/hosts
  mount --move "$own_tmp" /tmp
}

# The pipe `status` is held open all the time: if the node dies its reader sees the end, not a
# number.
serve() {
  local request=$1 status=0
  exec 8>"$request/status"
  cd /
  bash -c "$(<"$request/command")" </dev/null >"$request/out" 2>"$request/err" 8>&- || status=$?
  echo "$status" >&8
}

hostname "$name"
mount_own_files
ip link set lo up
unset TMPDIR
rm -f "$NODES_DIR/$name.requests"
mkfifo "$NODES_DIR/$name.requests"
exec 9<>"$NODES_DIR/$name.requests"
touch "$NODES_DIR/$name.ready"
while read -r -u 9 request; do
  serve "$request" 9>&- &
done
