#!/bin/bash
# Fuzzes what reads bytes that others wrote: the spec, `${{ }}`, the journal, what processes say to
# each other, the protocol of sluice-h5. A fixed number of runs from a fixed seed, so that a failure
# is not chance; with SLUICE_LONG=1 five minutes each instead. Memory that is lost counts where that
# can be found out. The targets are part of the preset `asan`: what is built here is not built again
# for the unit tests of that preset. Inputs that fail are kept in build/asan/findings: each becomes
# a case in tests/issues or beside the unit.
# slow: builds a second time, with sanitizers
. "$(dirname "$0")/../support/check.sh"

runtime=$(compgen -G '/usr/lib/llvm-14/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a')
if ! command -v clang++-14 >/dev/null || [[ -z $runtime ]]; then
  skip "no input crashes or hangs a reader" "clang++-14 with libFuzzer is missing"
  exit
fi

fuzz=$repository/build/asan
findings=$fuzz/findings
targets=(spec expression journal wire h5_protocol)
# With warnings as errors where this build has that: else all of it would be compiled twice.
werror=$(sed -n 's/^SLUICE_WERROR:BOOL=//p' "$build/CMakeCache.txt" 2>/dev/null)
mkdir -p "$fuzz"
check "fuzz: the targets build" eval 'cd "$repository" && flock "$fuzz/lock" bash -c "
  cmake --preset asan -DSLUICE_WERROR=${werror:-OFF} && ninja -C $fuzz ${targets[*]/#/fuzz_}"' || exit 1
mkdir -p "$findings"

# To look for leaks the process has to stop its own threads as a debugger does: not allowed to all.
leaks=1
if ! ASAN_OPTIONS=detect_leaks=1 "$fuzz/tests/fuzz/fuzz_wire" -runs=1 >"$scratch/leaks" 2>&1; then
  leaks=0
  skip "fuzz: no memory is lost" "LeakSanitizer does not work here: $(grep -m 1 -i leaksan "$scratch/leaks")"
fi

# ---------------------------------------------------------------- seeds

seeds=$scratch/seeds
mkdir -p "$seeds"/{spec,expression,journal,wire,h5_protocol}
cp "$repository"/tests/io/golden/mistakes/*.yaml "$seeds/spec"
find "$repository/configs" -name '*.yaml' -exec cp {} "$seeds/spec" \;
# The texts in `${{ }}` of all of these.
grep -hoE '\$\{\{[^}]*\}\}' "$seeds"/spec/*.yaml | sort -u | while read -r text; do
  echo "$text" >"$seeds/expression/$((++count))"
done
# A small run, whose journal has every common record; `s`: with sums that the target sets.
cat >"$scratch/p.yaml" <<'YAML'
sluice: 1
tasks:
  make: {foreach: {k: [1, 2]}, sh: 'echo $ITEM_k >"$OUT_n"', outputs: {n: {value: int}}}
  bad: {sh: 'exit 3'}
  after: {sh: 'cat "$IN_n" >"$OUT_x"', inputs: {n: make.n}, outputs: {x: {file: x}}}
YAML
check_status "fuzz: a run leaves a journal as a seed" 1 "$sluice" run "$scratch/p.yaml"
for journal in "$scratch"/p.run/journal.*.jsonl; do
  { printf 'r' && cat "$journal"; } >"$seeds/journal/raw"
  { printf 's' && sed 's/,"sum":"[0-9a-f]*"}$/}/' "$journal"; } >"$seeds/journal/sealed"
done
# One byte for the decoder, one for the kind of message.
for decoder in 0 1 2 3 4 5; do
  for kind in 00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 10 11 12 13; do
    printf "\\x0$decoder\\x$kind\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00" >"$seeds/wire/$decoder.$kind"
  done
done

# A request with a file; values; what a helper may say, as datagrams with their length before them.
printf 'q{"id":1,"kind":"value","type":"float","path":"/x"}\0000.5\n' >"$seeds/h5_protocol/value"
printf 'q{"id":2,"kind":"dir","type":"int","path_hex":"2f78ff"}\000text' >"$seeds/h5_protocol/dir"
printf 'v[1, 2.5, "a\\u00e9", {"k": [true, null]}]\n' >"$seeds/h5_protocol/list"
printf 'v-0012\n' >"$seeds/h5_protocol/int"
printf 'v 1e-400\n' >"$seeds/h5_protocol/float"
# say TEXT...: these datagrams, a request or three before each.
say() {
  local text
  printf 'd\006\000'
  for text; do printf "\\x$(printf %02x ${#text})%s" "$text"; done
}
say '{"id":1,"ok":true,"bytes":5,"content":"00112233445566778899aabbccddeeff","value":"","mode":420,"description":""}' \
  '{"id":2,"busy":true}' '{"id":2,"ok":false,"error":"no file"}' >"$seeds/h5_protocol/replies"
say '{"id":0,"crashed":11}' '{"id":0,"crashed":9}' '{"id":0,"crashed":9}' nonsense \
  '{"id":0,"ok":false,"error":"?"}' >"$seeds/h5_protocol/crashes"

# ---------------------------------------------------------------- runs

# fuzz TARGET RUNS BYTES: one target. Its output is kept for `fuzzed`.
fuzz() {
  local target=$1 bound=(-runs="$2")
  if [[ ${SLUICE_LONG:-} == 1 ]]; then bound=(-max_total_time=300); fi
  mkdir -p "$scratch/corpus/$target"
  env ASAN_OPTIONS=detect_leaks=$leaks UBSAN_OPTIONS=print_stacktrace=1 \
    "$fuzz/tests/fuzz/fuzz_$target" "${bound[@]}" -seed=1 -max_len="$3" -timeout=10 \
    -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$findings/$target-" \
    "$scratch/corpus/$target" "$seeds/$target" >"$scratch/$target.log" 2>&1
  echo $? >"$scratch/$target.status"
}
fuzzed() {
  tail -n 40 "$scratch/$1.log"
  [[ $(cat "$scratch/$1.status") == 0 ]]
}
# As many at a time as there are cores; each reports on its own.
run() {
  while (($(jobs -rp | wc -l) >= $(nproc))); do wait -n; done
  fuzz "$@" &
}
run spec 4000 4096
run expression 60000 300
run journal 20000 8192
run wire 100000 2048
run h5_protocol 5000 2048
wait
how="the inputs of a fixed seed"
if [[ ${SLUICE_LONG:-} == 1 ]]; then how="five minutes of inputs"; fi
for target in "${targets[@]}"; do
  check "fuzz: $target stands $how" fuzzed "$target"
done
