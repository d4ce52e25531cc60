#!/bin/sh
# Runs every fuzz target for a while.
#
#   tools/fuzz.sh [TIME]     (default 60s each)
set -eu
cd "$(dirname "$0")/.."
time=${1:-60s}
grep -rlE '^func Fuzz' --include='*_test.go' . | sort | while read -r file; do
  dir=$(dirname "$file")
  for target in $(sed -nE 's/^func (Fuzz[A-Za-z0-9_]+)\(.*/\1/p' "$file"); do
    echo "== $dir $target"
    go test "$dir" -run '^$' -fuzz "^$target\$" -fuzztime "$time" -fuzzminimizetime 10s
  done
done
