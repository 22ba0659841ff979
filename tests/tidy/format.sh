#!/bin/bash
# Every source is laid out as .clang-format says. `clang-format-14 -i FILE` puts one right.
. "$(dirname "$0")/../support/check.sh"
cd "${repository:?}" || exit

if ! command -v clang-format-14 >/dev/null; then
  skip "format: every source is laid out by .clang-format" "clang-format-14 is not installed"
  exit 0
fi
mapfile -t sources < <(find scheduler io engine tests configs -name '*.h' -o -name '*.hpp' -o -name '*.cpp' | sort)
check "format: every source is laid out by .clang-format" \
  clang-format-14 --dry-run -Werror --ferror-limit=1 "${sources[@]}"
