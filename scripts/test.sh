#!/usr/bin/env bash
# The one test command: installs the database servers (scripts/setup.sh), then
# vets, checks the formatting, and runs all tests on all servers, with the race
# detector, and the short list of mutants.
#
#   scripts/test.sh                              everything
#   scripts/test.sh -run TestPublish -v          more arguments for go test
#   scripts/test.sh ./internal/testdb            these packages only, no mutants
#   ROWFEED_TEST_ENGINES=sqlite scripts/test.sh  these engines only
#
# Nothing is left running: each test process takes its servers with it.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\n== %s\n' "$*" >&2; }

# Bare environments (cron, some CI runners) lack what the go command needs.
if [[ -z ${HOME:-} ]]; then
  HOME=$(getent passwd "$(id -u)" | cut -d: -f6)
  export HOME
fi
if [[ ! -w $HOME ]]; then
  export HOME=$PWD/.engines/home
  mkdir -p "$HOME"
fi
export GOCACHE=${GOCACHE:-$HOME/.cache/go-build}
command -v go >/dev/null || export PATH=$PATH:/usr/local/go/bin

ROWFEED_NOT_TESTED=$(mktemp)
export ROWFEED_NOT_TESTED

# finish removes what a test process that was killed could not: its folders,
# which are those whose lock nobody holds.
finish() {
  local folder
  for folder in "${TMPDIR:-/tmp}"/rowfeed-testdb-* /dev/shm/rowfeed-testdb-*; do
    if [[ -e $folder/lock ]] && flock --nonblock "$folder/lock" true; then rm -rf "$folder"; fi
  done
  if [[ -s $ROWFEED_NOT_TESTED ]]; then
    printf '\n' >&2
    sort -u "$ROWFEED_NOT_TESTED" | sed 's/.*/*** & ***/' >&2
  fi
  rm -f "$ROWFEED_NOT_TESTED"
}
trap finish EXIT

say 'setup'
if ! scripts/setup.sh; then
  [[ ${CI:-} != true ]] || exit 1
  say 'setup failed: engines that are missing will not be tested'
fi

packages=(./...)
for argument in "$@"; do
  if [[ $argument == ./* || $argument == . ]]; then packages=(); fi
done

say 'gofmt'
unformatted=$(find . -name '*.go' -not -path './.engines/*' -not -path './.git/*' -exec gofmt -l {} +)
if [[ -n $unformatted ]]; then
  printf 'not formatted:\n%s\n' "$unformatted" >&2
  exit 1
fi

say 'go vet'
go vet ./...

if [[ ${#packages[@]} -gt 0 ]]; then
  say 'mutants compile'
  go run ./internal/mutants --compile
fi

say 'go test'
# SQLite's translated C shares no memory between goroutines but under its own locks,
# and runs some thirty times as slowly under the race detector: it is left out.
go test -race '-gcflags=modernc.org/...=-race=false' -timeout 40m "$@" "${packages[@]}"

if [[ ${#packages[@]} -gt 0 ]]; then
  say 'mutants'
  go run ./internal/mutants --short --green
fi
