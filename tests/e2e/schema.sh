#!/bin/bash
# The JSON schema of `sluice schema`, judged by an independent validator (python3-jsonschema): it
# accepts every spec that is known to be sound, and refuses every mistake that a schema can see.
. "$(dirname "$0")/../support/check.sh"
cd "$scratch" || exit

if ! python3 -W ignore -c 'import jsonschema, yaml; jsonschema.Draft202012Validator' 2>/dev/null; then
  skip "the schema accepts what is sound and refuses what is not" "python3-jsonschema and python3-yaml are missing"
  exit
fi
judge() { python3 -W ignore "$repository/tests/support/check_schema.py" schema.json "$@"; }

check "schema: is printed" eval '"$sluice" schema >schema.json' || exit 1

# UC-007
mapfile -t configs < <(find "$repository/configs" -name '*.yaml')
check "schema: accepts every pipeline of configs/ (${#configs[@]})" judge accept "${configs[@]}" || exit 1
check "schema: flags a misspelt key of an example" \
  judge misspelt "$repository/configs/quickstart/heat.yaml" foreach
check "schema: flags a misspelt key of an input or output" \
  judge misspelt "$repository/configs/quickstart/heat.yaml" file
check "schema: refuses every golden mistake that it can see" \
  judge reject "$repository/tests/io/golden/mistakes"

mkdir sound
check "schema: the reader's tests leave their sound specs" \
  env SLUICE_SOUND_SPECS="$scratch/sound" "$build/tests/test_io" --test-case='spec*,render*'
check "schema: accepts every spec that the reader accepts in its tests ($(find sound -name '*.yaml' | wc -l))" \
  judge accept sound/*.yaml
