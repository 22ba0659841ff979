#!/bin/bash
# node_rsh.sh [OPTION...] NODE COMMAND... - what ssh is between real nodes, between those of
# nodes.sh. No standard input. Exit code 255 if the node is dead or dies.
set -uo pipefail
while [[ ${1:-} == -* ]]; do shift; done
node=$1
shift
if [[ ! -p $NODES_DIR/$node.requests ]]; then
  echo "node_rsh: node $node is down" >&2
  exit 255
fi
request=$(mktemp -d "$NODES_DIR/request.XXXXXX")
trap 'rm -rf "$request"' EXIT
mkfifo "$request"/{out,err,status}
printf '%s' "$*" >"$request/command"
# Opening the pipe waits for a reader, which a node that just died is not.
if ! timeout 5 bash -c 'echo "$1" >"$2"' - "$request" "$NODES_DIR/$node.requests"; then
  echo "node_rsh: node $node does not answer" >&2
  exit 255
fi
cat "$request/out" &
cat "$request/err" >&2 &
status=$(<"$request/status")
wait
exit "${status:-255}"
