#!/usr/bin/env bash
# Searches for inputs that break a parser: each fuzz target for ten minutes, one after the other.
# `go test` runs the seeds of the targets, and the inputs that were found earlier, in testdata/fuzz.
#
#   scripts/fuzz.sh                    every target, 10 minutes each
#   scripts/fuzz.sh 90s                each target for 90 seconds
#   scripts/fuzz.sh 90s FuzzCursor     the targets whose name matches
set -euo pipefail
cd "$(dirname "$0")/.."

each=${1:-10m} only=${2:-.} failed=0
while IFS=: read -r file target; do
  [[ $target =~ $only ]] || continue
  printf '== %s of ./%s, %s\n' "$target" "$(dirname "$file")" "$each"
  go test -run '^$' -fuzz "^$target\$" -fuzztime "$each" -parallel "${FUZZ_PARALLEL:-1}" "./$(dirname "$file")" || failed=1
done < <(grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9]*' . | sed 's|^\./||; s/func //' | sort)
exit "$failed"
