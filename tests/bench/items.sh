#!/bin/bash
# What many items cost before the first task starts: seconds and memory of `sluice check`.
#
#   tests/bench/items.sh [BUILD]      build folder, default build/release; LINES=1000000 LISTED=200000 FILES=20000
#
# lines: LINES lines of a file as items          two: the same, and a second task that reads the first one to one
# glob:  FILES files by a pattern, each an input
# block: LISTED items in the spec, one a line    flow: the same in one line    cases: LISTED maps with two keys
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(realpath "${1:-build/release}")
lines=${LINES:-1000000} listed=${LISTED:-200000} files=${FILES:-20000}
work=$(mktemp -d "${TMPDIR:-/tmp}/sluice-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

measure() {  # NAME ITEMS
  /usr/bin/time -f '%U %S %e %M' -o time.txt "$build/sluice" check "$1.yaml" >out.txt || {
    cat out.txt >&2
    exit 1
  }
  awk -v name="$1" -v items="$2" '{
    printf "%-6s %8d items  %6.2f s cpu  %6.2f s wall  %6.0f MiB  %5.0f bytes an instance\n",
           name, items, $1 + $2, $3, $4 / 1024, $4 * 1024 / items
  }' time.txt
}

seq -f 'sample-%.0f' "$lines" >list.txt
cat >lines.yaml <<END
sluice: 1
tasks:
  first:
    foreach: {s: {lines: list.txt}}
    run: prepare \${{ item.s }} \${{ out.x }}
    outputs: {x: {file: x}}
END
{
  cat lines.yaml
  cat <<END
  second:
    foreach: {s: {lines: list.txt}}
    run: use \${{ in.x }}
    inputs: {x: first.x}
END
} >two.yaml
mkdir data
(cd data && seq -f 'f%.0f.dat' "$files" | xargs touch)
cat >glob.yaml <<END
sluice: 1
tasks:
  count:
    foreach: {f: {glob: "data/*.dat"}}
    run: wc -c \${{ in.f }}
    inputs: {f: {file: "\${{ item.f }}"}}
END
written() {  # the spec of a task whose foreach is standard input
  printf 'sluice: 1\ntasks:\n  a:\n    run: a ${{ item.s }}\n    foreach:'
  cat
}
{ printf '\n      s:\n'; seq -f '      - sample-%.0f' "$listed"; } | written >block.yaml
{ printf ' {s: ['; seq -s, -f 'sample-%.0f' "$listed" | tr -d '\n'; printf ']}\n'; } | written >flow.yaml
{ printf '\n'; seq -f '    - {s: sample-%.0f, t: 1}' "$listed"; } | written >cases.yaml

measure lines "$lines"
measure two $((2 * lines))
measure glob "$files"
measure block "$listed"
measure flow "$listed"
measure cases "$listed"
