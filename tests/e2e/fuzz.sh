#!/bin/bash
# Fuzzes what reads bytes that others wrote: the spec, `${{ }}`, the journal, what processes say to
# each other. A fixed number of runs from a fixed seed, so that a failure is not chance; with
# SLUICE_LONG=1 fifty times as many. Inputs that fail are kept in build/fuzz/findings: each becomes
# a case in tests/issues.
# slow: builds a second time, with sanitizers
. "$(dirname "$0")/../support/check.sh"

runtime=$(compgen -G '/usr/lib/llvm-14/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a')
if ! command -v clang++-14 >/dev/null || [[ -z $runtime ]]; then
  skip "no input crashes or hangs a reader" "clang++-14 with libFuzzer is missing"
  exit
fi

fuzz=$repository/build/fuzz
findings=$fuzz/findings
targets=(spec expression journal wire)
check "fuzz: the targets build" eval \
  'cd "$repository" && cmake --preset fuzz && ninja -C "$fuzz" "${targets[@]/#/fuzz_}"' || exit 1
mkdir -p "$findings"

# ---------------------------------------------------------------- seeds

seeds=$scratch/seeds
mkdir -p "$seeds"/{spec,expression,journal,wire}
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

# ---------------------------------------------------------------- runs

# fuzz TARGET RUNS BYTES
fuzz() {
  local target=$1 runs=$2 bytes=$3
  if [[ ${SLUICE_LONG:-} == 1 ]]; then runs=$((runs * 50)); fi
  mkdir -p "$scratch/corpus/$target"
  check "fuzz: $target stands $runs inputs" env ASAN_OPTIONS=detect_leaks=0 \
    UBSAN_OPTIONS=print_stacktrace=1 "$fuzz/tests/fuzz/fuzz_$target" -runs="$runs" -seed=1 \
    -max_len="$bytes" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$findings/$target-" "$scratch/corpus/$target" "$seeds/$target"
}
fuzz spec 4000 4096
fuzz expression 60000 300
fuzz journal 20000 8192
fuzz wire 100000 2048
