#!/usr/bin/env bash
# The one test command: installs the database servers (scripts/setup.sh), then
# vets, checks the formatting, and runs the tests on all servers (on one PostgreSQL with
# the race detector), and the short list of mutants.
#
#   scripts/test.sh                              what has to pass before anything is merged
#   scripts/test.sh --all                        and the long tests on the second server of each family, too
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
  rm -rf "$ROWFEED_NOT_TESTED" "${work:-}"
}
trap finish EXIT

say 'setup'
if ! scripts/setup.sh; then
  [[ ${CI:-} != true ]] || exit 1
  say 'setup failed: engines that are missing will not be tested'
fi

all=0
if [[ ${1:-} == --all ]]; then all=1 && shift; fi

# Modules of their own, because of what they need.
modules=(bench internal/faults)

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
for module in "${modules[@]}"; do go vet -C "$module" ./...; done

if [[ ${#packages[@]} -gt 0 ]]; then
  say 'mutants compile'
  go run ./internal/mutants --compile
fi

# A raced binary leaves nothing out of the race detector, also not SQLite's translated C, which
# runs slowly under it: functions of type parameters (sync.Map, atomic.Pointer) are compiled
# in every package that uses them and linked once, so that one package without would take
# the others' order away, and the detector see races where there are none.
race=(-race)

if [[ ${#packages[@]} -eq 0 || $# -gt 0 ]]; then
  say 'go test'
  go test "${race[@]}" -timeout 40m "$@" "${packages[@]}"
  exit
fi

# Three engines run at a time, as the suite waits for disks, servers and terms of leases, too.
# The race detector runs on one PostgreSQL: elsewhere the same Go code runs, of SQLite's
# translated C it makes minutes, and the other packages' tests run it on SQLite. Nor does it see
# anything where one step comes after the other. What takes longest begins first.
say 'the conformance suite, and the other packages'
work=$(mktemp -d)
go test "${race[@]}" -c -o "$work/raced" ./internal/conformance
go test -c -o "$work/plain" ./internal/conformance
alone='KilledAtEveryStatement$|^TestPlans|^TestReshard|^TestShardsShareTheFeed$|^TestWaitersCostNothing$|^TestGroup(IdleCost|Moves)$|^Test(ULIDMatrix|OutboxDropKilled|BackFillKilled)$'
# About rowfeed's own processes, or long: the second server of a family adds its version only.
once='KilledAtEvery(Statement|Step)$|^Test(ULIDMatrix|ReshardUnderAPage|WaitersCostNothing|BackFillKilled|OutboxDropKilled|Divided|Readme|(Group|ShardIDs|ShardCount|ShardRests|Relay|Recount|Consumers?|Consume|Dead|Lease|Rest|Held|Tail|Wait|Start|Processed|Standing|Publishers?|Retain)([A-Z].*)?)$'
if [[ $all -eq 1 ]]; then
  once='^$'
else
  echo 'tests of consumers, relays, leases, groups and kills at every statement not run on mysql and postgres18: --all runs them' >>"$ROWFEED_NOT_TESTED"
fi
suite() { # BINARY ENGINE [ARGUMENT...]
  local binary=$1 engine=$2 log=$work/$1.$2.log started=$SECONDS
  shift 2
  [[ ,${ROWFEED_TEST_ENGINES:-$engine}, == *,$engine,* ]] || return 0
  if (cd internal/conformance && ROWFEED_TEST_ENGINES=$engine "$work/$binary" -test.timeout 30m -test.parallel 4 "$@") >"$log" 2>&1; then
    echo "ok    $engine ($binary, $((SECONDS - started)) s)"
  else
    cat "$log"
    echo "FAIL  $engine ($binary, $((SECONDS - started)) s)"
    return 1
  fi
}
others() { go list ./... | grep -v /internal/conformance | xargs go test "${race[@]}" -timeout 20m; }
beside() { # COMMAND...
  while (($(jobs -rp | wc -l) >= 3)); do wait -n || true; done
  { "$@" || touch "$work/failed"; } &
}
beside suite raced postgres15 -test.skip "$alone"
beside suite plain mariadb
beside others
for engine in mysql postgres18; do beside suite plain "$engine" -test.skip "$once"; done
beside suite plain sqlite
beside suite plain postgres15 -test.run "$alone"
wait

failed=0
if [[ -e $work/failed ]]; then failed=1; fi

say 'relay processes under faults'
go test -C internal/faults "${race[@]}" -timeout 20m ./... || failed=1

if [[ $failed -eq 0 ]]; then
  say 'mutants'
  go run ./internal/mutants --short --green || failed=1
fi
exit "$failed"
