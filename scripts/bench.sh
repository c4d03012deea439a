#!/usr/bin/env bash
# Compares the speed of the working tree with that of another commit: builds both, runs the measures
# of `rowfeed bench` with both in turns, on private servers, and prints a table with the medians and
# the ratio of each. A ratio of 0.97 or more means that the speed has not changed.
#
#   scripts/bench.sh main                           seven pairs on SQLite, PostgreSQL 15 and MariaDB
#   scripts/bench.sh --pairs 3 --engine sqlite HEAD~1
#   scripts/bench.sh --json HEAD~1 >pairs.json      with the figures of each pair
set -euo pipefail
cd "$(dirname "$0")/.."

# The package whose TestPairs runs both builds, and the command that is measured.
driver=cmd/internal/bench/pairs command=./cmd/rowfeed

usage() {
  printf '%s\nusage: scripts/bench.sh [--pairs N] [--engine NAME,…] [--json] COMMIT\n' "$1" >&2
  exit 2
}

pairs=7 engines=sqlite,postgres15,mariadb json=() commit=
while (($#)); do
  case $1 in
    --pairs) pairs=${2:-} && shift ;;
    --engine) engines=${2:-} && shift ;;
    --json) json=(-json) ;;
    -*) usage "scripts/bench.sh has no option $1" ;;
    *) [[ -z $commit ]] || usage "give one commit, not $commit and $1" && commit=$1 ;;
  esac
  shift || usage 'the last option needs a value'
done
[[ -n $commit ]] || usage 'name the commit to compare with'
[[ $pairs =~ ^[1-9][0-9]*$ ]] || usage "--pairs takes a number from 1 on, not \"$pairs\""
base=$(git rev-parse --verify --quiet "$commit^{commit}") || usage "there is no commit $commit in this repository"

work=$(mktemp -d)
finish() {
  git worktree remove --force "$work/tree" 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
# A signal ends the script, which then removes what it has made.
trap 'exit 130' INT TERM

describe() { git log -1 --format='%h %s' "$1"; }
name=$(describe HEAD)
if [[ -n $(git status --porcelain) ]]; then name+=', and changes that are not committed'; fi

printf 'building %s\n' "$(describe "$base")" >&2
git worktree add --quiet --detach "$work/tree" "$base"
(cd "$work/tree" && go build -o "$work/base" "$command")
printf 'building %s\n' "$name" >&2
go build -o "$work/new" "$command"

(cd "$driver" && ROWFEED_TEST_ENGINES=$engines go test -vet=off -count=1 -timeout 0 -run '^TestPairs$' \
  -pairs "$pairs" "${json[@]}" \
  -base "$work/base" -base-name "$(describe "$base")" -new "$work/new" -new-name "$name" -to "$work/table") >&2
cat "$work/table"
