#!/bin/bash
# pi.sh SEED POINTS FILE: four times the share of random points in a square that are in the circle.
set -euo pipefail
awk -v seed="$1" -v points="$2" '
  BEGIN {
    srand(seed)
    for (i = 0; i < points; ++i) { x = rand(); y = rand(); if (x * x + y * y < 1) ++inside }
    printf "%.4f\n", 4 * inside / points
  }' >"$3"
echo "seed $1: $(cat "$3")"
