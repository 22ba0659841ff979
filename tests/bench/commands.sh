#!/bin/bash
# No-op commands, and chains of them, beside a bare spawn loop and other programs that run commands:
#
#   tests/bench/commands.sh [BUILD]      ROUNDS=5 TASKS=10000 CHAIN=1000; see bench.sh
#
# no-op: TASKS commands /bin/true, as a share of the rate of a bare posix_spawn loop with as many in
#        flight as there are slots; the peers run the same commands
# chain: a hop of CHAIN commands /bin/cp, each of which reads the file of the one before, in
#        milliseconds and in bare spawns of /bin/true one after the other; start and end of the run
#        are part of it
. "$(dirname "$0")/bench.sh"
tasks=${TASKS:-10000} chain=${CHAIN:-1000}

write_specs() {
  cat >"$work/noop.yaml" <<YAML
sluice: 1
name: noop
tasks:
  nothing:
    foreach: {n: {range: [0, $tasks]}}
    run: /bin/true
YAML
  local i
  {
    printf 'sluice: 1\nname: chain\ntasks:\n'
    printf '  t0:\n    sh: echo 0 >"$OUT_x"\n    outputs: {x: {file: x}}\n'
    for ((i = 1; i < chain; ++i)); do
      printf '  t%d:\n    run: /bin/cp ${{ in.x }} ${{ out.x }}\n    inputs: {x: t%d.x}\n' "$i" $((i - 1))
      printf '    outputs: {x: {file: x}}\n'
    done
  } >"$work/chain.yaml"
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
  hop=$(calc "1000 * $(seconds alone "$work/chain.yaml") / $chain")
  sample hop1 "$hop" && sample spawns1 "$(calc "$hop / $spawn_ms")"
  hop=$(calc "1000 * $(seconds two "$work/chain.yaml") / $chain")
  sample hop2 "$hop" && sample spawns2 "$(calc "$hop / $spawn_ms")"
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
figure spawns1 "chain of $chain, one process: bare spawns a hop" '<= 1.45'
figure hop2 "chain of $chain, mpirun -n 2: ms a hop" '<= 1.3'
figure spawns2 "chain of $chain, mpirun -n 2: bare spawns a hop" '<= 2.36'
