#!/bin/bash
# What the documents show is true: the first pipeline of README.md runs as printed, and every
# pipeline in configs/ passes `sluice check`.
. "$(dirname "$0")/../support/check.sh"
cd "${repository:?}" || exit

# The fenced block that follows the line which names hello.yaml.
awk '/^`hello.yaml`:/ {named = 1} named && /^```/ {++fences; next} fences == 1' README.md \
  >"${scratch:?}/hello.yaml"
check "documents: the pipeline of the README runs as printed" "${sluice:?}" run "$scratch/hello.yaml"
check_equal "documents: its results are where the README says" \
  "$(cat "$scratch"/hello.run/results/greet/*.txt)" $'hello moon\nhello sun'

for pipeline in configs/*/*.yaml; do
  check "documents: $pipeline passes sluice check" "$sluice" check "$pipeline"
done
