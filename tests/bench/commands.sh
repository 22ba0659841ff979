#!/bin/bash
# No-op commands, and chains of them, beside a bare spawn loop and other programs that run commands:
#
#   tests/bench/commands.sh [BUILD]      ROUNDS=5 TASKS=10000 CHAIN=1000; see bench.sh
#
# no-op: TASKS commands /bin/true, as a share of the rate of a bare posix_spawn loop with as many in
#        flight as there are slots; the peers run the same commands
# chain: a hop of CHAIN commands /bin/true, each after the one before, in milliseconds and in bare
#        spawns of it one after the other; start and end of the run are part of it. The same with
#        /bin/cp, each reading the file of the one before, in bare spawns of /bin/cp. Beside: make
. "$(dirname "$0")/bench.sh"
tasks=${TASKS:-10000} chain=${CHAIN:-1000}

write_specs() {
  local i
  cat >"$work/noop.yaml" <<YAML
sluice: 1
name: noop
tasks:
  nothing:
    foreach: {n: {range: [0, $tasks]}}
    run: /bin/true
YAML
  {
    printf 'sluice: 1\nname: order\ntasks:\n  t0: {run: /bin/true}\n'
    for ((i = 1; i < chain; ++i)); do printf '  t%d: {run: /bin/true, after: [t%d]}\n' "$i" $((i - 1)); done
  } >"$work/order.yaml"
  {
    printf 'sluice: 1\nname: chain\ntasks:\n'
    printf '  t0:\n    sh: echo 0 >"$OUT_x"\n    outputs: {x: {file: x}}\n'
    for ((i = 1; i < chain; ++i)); do
      printf '  t%d:\n    run: /bin/cp ${{ in.x }} ${{ out.x }}\n    inputs: {x: t%d.x}\n' "$i" $((i - 1))
      printf '    outputs: {x: {file: x}}\n'
    done
  } >"$work/chain.yaml"
  mkdir "$work/order" "$work/chain"
  echo 0 >"$work/chain/n0"
  {
    printf '.PHONY: n0\nall: n%d\nn0:\n\t@/bin/true\n' $((chain - 1))
    for ((i = 1; i < chain; ++i)); do printf 'n%d: n%d\n\t@/bin/true\n' "$i" $((i - 1)); done
  } >"$work/order/Makefile"
  {
    printf 'all: n%d\n' $((chain - 1))
    for ((i = 1; i < chain; ++i)); do printf 'n%d: n%d\n\t@/bin/cp n%d n%d\n' "$i" $((i - 1)) $((i - 1)) "$i"; done
  } >"$work/chain/Makefile"
  printf 'rule true\n command = /bin/true\n' >"$work/build.ninja"
  seq -f 'build n%.0f: true' "$tasks" >>"$work/build.ninja"
  {
    printf '.PHONY: all\nall:'
    seq -f ' n%.0f' "$tasks" | tr -d '\n'
    printf '\nn%%:\n\t@/bin/true\n'
  } >"$work/Makefile"
}

peer_xargs() { seq "$tasks" | xargs -P "$slots" -n 1 /bin/true; }
peer_ninja() { rm -f "$work/.ninja_log" && ninja -C "$work" -j "$slots" -k 0; }
peer_make() { make -s -C "$work" -j "$slots"; }
peer_parallel() { seq "$tasks" | PARALLEL_HOME=$work/parallel parallel --will-cite -j "$slots" /bin/true; }
peers() {
  local peer
  for peer in xargs ninja make parallel; do ! type -P "$peer" >/dev/null || echo "$peer"; done
}

# hop COMMAND...: milliseconds a hop of the chain.
hop() { calc "1000 * $(seconds "$@") / $chain"; }

write_specs
mapfile -t found < <(peers)
for ((r = 1; r <= rounds; ++r)); do
  b=$(bare "$slots" "$tasks" /bin/true)
  sample bare "$b"
  sample one "$(calc "$tasks / $(seconds alone "$work/noop.yaml") / $b")"
  sample two "$(calc "$tasks / $(seconds two "$work/noop.yaml") / $b")"
  for peer in "${found[@]}"; do
    sample "$peer" "$(calc "$tasks / $(seconds "peer_$peer") / $b")"
  done
  spawn_ms=$(calc "1000 / $(bare 1 "$chain" /bin/true)")
  sample spawn "$spawn_ms"
  sample hop1 "$(hop alone "$work/order.yaml")"
  sample hop2 "$(hop two "$work/order.yaml")"
  sample order1 "$(calc "$(last hop1) / $spawn_ms")"
  sample order2 "$(calc "$(last hop2) / $spawn_ms")"
  sample copy "$(calc "1000 / $(bare 1 "$chain" /bin/cp "$work/chain/n0" "$work/chain/copy")")"
  sample chain1 "$(calc "$(hop alone "$work/chain.yaml") / $(last copy)")"
  sample chain2 "$(calc "$(hop two "$work/chain.yaml") / $(last copy)")"
  if [[ " ${found[*]} " == *" make "* ]]; then
    sample make_order "$(calc "$(hop make -s -C "$work/order") / $spawn_ms")"
    rm -f "$work"/chain/n[1-9]*
    sample make_chain "$(calc "$(hop make -s -C "$work/chain") / $(last copy)")"
  fi
  round_done "$r"
done

figure bare "bare spawn loop of /bin/true, $slots in flight: tasks/s"
figure one "$tasks no-op commands, one process: share of the bare loop" '>= 0.8'
figure two "the same under mpirun -n 2" '>= 0.7'
for peer in xargs ninja make parallel; do
  if [[ " ${found[*]} " == *" $peer "* ]]; then
    figure "$peer" "the same by $peer with $slots at a time"
  else
    note "the same by $peer: not installed"
  fi
done
figure spawn "bare spawns of /bin/true one after the other: ms"
figure hop1 "chain of $chain, one process: ms a hop" '<= 0.8'
figure order1 "the same: bare spawns a hop" '<= 1.45'
figure hop2 "chain of $chain, mpirun -n 2: ms a hop" '<= 1.3'
figure order2 "the same: bare spawns a hop" '<= 2.36'
figure make_order "the same by make: bare spawns a hop"
figure copy "bare spawns of /bin/cp one after the other: ms"
figure chain1 "chain of $chain with files, one process: bare spawns of cp a hop" '<= 1.45'
figure chain2 "chain of $chain with files, mpirun -n 2: bare spawns of cp a hop" '<= 2.36'
figure make_chain "the same by make: bare spawns of cp a hop"
