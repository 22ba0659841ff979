# shellcheck shell=bash
# Several nodes on one machine, for tests. Sourced by bash; needs root, util-linux and iproute2.
#
#   . "$(dirname "$0")/nodes.sh"
#   nodes_possible || exit 77
#   nodes_up n1 n2 n3            # first address .1, and so on
#   node_exec n1 hostname        # keeps the folder and the environment, except TMPDIR
#   node_kill n2                 # power failure: every process of it dies at once
#   node_start n2                # switched on again, with an empty /tmp and /dev/shm
#   node_cut n3; node_join n3    # network cable out, and in
#   nodes_down
#
# A node is a set of namespaces (network, host name, mounts, IPC, PIDs) with its own /tmp and
# /dev/shm and one cable into a switch, which has a network namespace of its own: this machine's
# network is never touched. All other files are common, like a parallel file system; folders below
# /tmp that must be common too are named in NODES_SHARED.
#
#   NODES_DIR      state (default: a new folder). Two sets of nodes differ by it, in nothing else.
#   NODES_SUBNET   first three numbers of the addresses (default 10.86.0)
#
# Nodes live no longer than the shell that called nodes_up (not a subshell of it), even if that is
# killed by SIGKILL: processes, mounts and interfaces go with the last process of a namespace.

nodes_here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
NODES_SUBNET=${NODES_SUBNET:-10.86.0}
export NODES_DIR NODES_SHARED

# Says why not, and fails, where nodes cannot be made: the test ends with 77 then.
nodes_possible() {
  if [[ $(id -u) == 0 ]] && command -v ip nsenter setpriv >/dev/null &&
    unshare -n -u -m -i -p --fork --mount-proc true 2>/dev/null; then
    return 0
  fi
  echo "skipped: needs root and namespaces"
  return 1
}

# The process id, as seen here, of the first process of a node or of the switch.
nodes_pid() { cat "$NODES_DIR/$1.pid"; }

nodes_are_up() {
  [[ -n ${NODES_DIR:-} && -e $NODES_DIR/switch.pid ]] && kill -0 "$(nodes_pid switch)" 2>/dev/null
}

node_exec() {
  local node=$1
  shift
  nsenter -t "$(nodes_pid "$node")" -m -u -i -n -p --wdns="$PWD" -- env -u TMPDIR "$@"
}

nodes_in_switch() { nsenter -t "$(nodes_pid switch)" -n "$@"; }

# Waits until the command succeeds; fails when process $1 has ended.
nodes_wait() {
  local pid=$1
  shift
  until "$@" >/dev/null 2>&1; do
    kill -0 "$pid" 2>/dev/null || return 1
    sleep 0.01
  done
}

nodes_start_switch() {
  setpriv --pdeathsig KILL unshare -n sh -c \
    'ip link add br0 type bridge && ip link set br0 up && exec sleep infinity' \
    </dev/null >"$NODES_DIR/switch.log" 2>&1 &
  echo $! >"$NODES_DIR/switch.pid"
  disown
  nodes_wait "$(nodes_pid switch)" nodes_in_switch ip link show br0 up
}

nodes_up() {
  local node number=0
  NODES_DIR=${NODES_DIR:-$(mktemp -d /tmp/sluice-nodes.XXXXXX)}
  mkdir -p "$NODES_DIR"
  echo "127.0.0.1 localhost" >"$NODES_DIR/hosts"
  for node; do
    number=$((number + 1))
    echo "$NODES_SUBNET.$number $node" >>"$NODES_DIR/hosts"
  done
  nodes_start_switch || return 1
  for node; do node_start "$node" || return 1; done
}

node_start() {
  local node=$1 address outer inner
  address=$(awk -v node="$node" '$2 == node { print $1 }' "$NODES_DIR/hosts")
  rm -f "$NODES_DIR/$node.ready"
  setpriv --pdeathsig KILL unshare -n -u -m -i -p --fork --mount-proc --kill-child \
    "$nodes_here/node_init.sh" "$node" </dev/null >>"$NODES_DIR/$node.log" 2>&1 &
  outer=$!
  disown
  if ! nodes_wait "$outer" test -e "$NODES_DIR/$node.ready"; then
    echo "node $node did not start:" >&2
    cat "$NODES_DIR/$node.log" >&2
    return 1
  fi
  read -r inner _ <"/proc/$outer/task/$outer/children"
  echo "$inner" >"$NODES_DIR/$node.pid"
  node_plug_in "$inner" "$address"
}

node_plug_in() {
  local pid=$1 address=$2 port=port${2##*.}
  nodes_in_switch ip link add "$port" type veth peer name eth0 netns "$pid" &&
    nodes_in_switch ip link set "$port" master br0 up &&
    nsenter -t "$pid" -n ip address add "$address/24" dev eth0 &&
    nsenter -t "$pid" -n ip link set eth0 up
}

nodes_gone() { ! kill -0 "$1" 2>/dev/null; }

node_kill() {
  local pid
  pid=$(nodes_pid "$1")
  rm -f "$NODES_DIR/$1.pid" "$NODES_DIR/$1.requests"
  kill -9 "$pid"
  nodes_wait $$ nodes_gone "$pid"
}

node_cut() { node_exec "$1" ip link set eth0 down; }
node_join() { node_exec "$1" ip link set eth0 up; }

# Takes down what is up, and removes the state. Harmless when nothing is up.
nodes_down() {
  local file pid
  [[ -d ${NODES_DIR:-} ]] || return 0
  for file in "$NODES_DIR"/*.pid; do
    [[ -e $file ]] || continue
    pid=$(<"$file")
    kill -9 "$pid" 2>/dev/null
    nodes_wait $$ nodes_gone "$pid"
  done
  rm -rf "$NODES_DIR"
}
