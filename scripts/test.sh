#!/usr/bin/env bash
# The one test command: installs the database servers (scripts/setup.sh), then
# vets, checks the formatting, and runs the tests on all servers (where goroutines share memory,
# with the race detector), and the short list of mutants.
#
#   scripts/test.sh                              what has to pass before anything is merged
#   scripts/test.sh --all                        and the long tests on the second server of each family, too
#   scripts/test.sh -run TestPublish -v          more arguments for go test
#   scripts/test.sh ./internal/test/testdb            these packages only, no mutants
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
modules=(bench cmd/internal/faults examples/orms)

packages=(./...)
for argument in "$@"; do
  if [[ $argument == ./* || $argument == . ]]; then packages=(); fi
done

# ent's code is generated, not kept.
go generate -C examples/orms ./...

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
  go run ./internal/test/mutants --compile
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

# Four suites run at a time, as they wait for disks, servers and terms of leases, too.
# The race detector runs on one PostgreSQL, where several goroutines are at work, and in the
# packages that serve: it sees nothing where one step comes after the other, elsewhere the
# same Go code runs, and of SQLite's translated C it makes minutes. What takes longest begins first.
say 'the conformance suite, and the other packages'
work=$(mktemp -d)
# Vetted they are already, and nobody looks at their variables in a debugger.
built=(-vet=off -ldflags=-w)
go test "${built[@]}" "${race[@]}" -c -o "$work/raced" ./cmd/internal/conformance
go test "${built[@]}" -c -o "$work/plain" ./cmd/internal/conformance
alone='KilledAtEveryStatement$|^Test(Plans|Reshard|RestoredBackup)|^TestShardsShareTheFeed$|^TestWaitersCostNothing$|^TestGroup(IdleCost|Moves)$|^Test(ULIDMatrix|OutboxDropKilled|BackFillKilled)$'
# About rowfeed's own processes, or long: run on one server of a family, the other adds its version only.
once='KilledAtEvery(Statement|Step)$|^Test(RestoredBackup|ULIDMatrix|ReshardUnderAPage|WaitersCostNothing|BackFillKilled|OutboxDropKilled|Divided|(Group|ShardIDs|ShardCount|ShardRests|Relay|Recount|Consumers?|Consume|Dead|Lease|Rest|Held|Tail|Wait|Start|Processed|Standing|Publishers?|Retain)([A-Z].*)?)$'
# Where several goroutines share memory.
shared="$once"'|Racing|Race$|Many|Together|Beside|Wait|Woken|WakeUp|Crowd|Shared|Sleep|ReadAhead|AtOnce|OnePage|OnePlace|Interrupted|Killed|Publisher|Movers|Cached|Unflushed|Flush|Stand|Deliver|Mirror|Consistent|Conflict|Pooler|OverHTTP|Stream|Watch'
if [[ $all -eq 1 ]]; then
  once='^$' shared=.
else
  echo 'tests of consumers, relays, leases, groups and kills at every statement not run on mysql and postgres18, nor three quarters of the others (another quarter at the next commit) where their relatives run them; tests of one session at a time not on postgres15, commands and documents on neither mysql nor postgres18: --all runs them' >>"$ROWFEED_NOT_TESTED"
fi
TIMEFORMAT='%0R s, %0U+%0S s of processors'
suite() { # BINARY ENGINE [ARGUMENT...]
  local binary=$1 engine=$2 log took
  log=$(mktemp "$work/$2.XXXXXX")
  shift 2
  [[ ,${ROWFEED_TEST_ENGINES:-$engine}, == *,$engine,* ]] || return 0
  if took=$( (
    cd cmd/internal/conformance
    export ROWFEED_TEST_ENGINES=$engine
    time "$work/$binary" -test.timeout 30m -test.parallel 4 "$@" >"$log" 2>&1
  ) 2>&1); then
    echo "ok    $engine ($binary, $took)"
  else
    cat "$log"
    echo "FAIL  $engine ($binary, $took)"
    return 1
  fi
}
serving='/(access|feedhttp|metrics|relay|server|sink|tracing)(/|$)|^[^/]*/rowfeed/rowfeed$'
# One server of a family is enough for what stands above the databases.
above=${ROWFEED_TEST_ENGINES:-sqlite,postgres15,mariadb}
if [[ $all -eq 1 ]]; then above=${ROWFEED_TEST_ENGINES:-}; fi
others() {
  go test "${built[@]}" -timeout 20m ./dialect/... ./sink/sqlmirror || return
  go list ./... | grep -Ev "/internal/conformance|/dialect|$serving" | ROWFEED_TEST_ENGINES=$above xargs go test "${built[@]}" -timeout 20m
}
timed() { # FUNCTION
  local status=0
  time "$1" || status=$?
  return "$status"
}
serve() { go list ./... | grep -E "$serving" | grep -v /sink/sqlmirror | ROWFEED_TEST_ENGINES=$above xargs go test "${built[@]}" "${race[@]}" -timeout 20m; }
faults() { go test -C cmd/internal/faults "${built[@]}" "${race[@]}" -timeout 20m ./...; }
orms() { go test -C examples/orms "${built[@]}" -timeout 10m ./...; }
# part names the tests of which the second server of a family runs a quarter, another quarter at the
# next commit: those that match, and where that is not all also the others, all of them.
commit=$(git rev-list --count HEAD 2>/dev/null || echo 0)
part() { # PATTERN
  local quarter=$((commit % 4))
  if [[ $all -eq 1 ]]; then quarter=; fi
  (cd cmd/internal/conformance && "$work/plain" -test.list .) | awk -v of="$1" -v quarter="$quarter" '
    /^Test/ { if (quarter == "" || $0 !~ of || ++n % 4 == quarter) names = names "|" $0 }
    END { print "^(" substr(names, 2) ")$" }'
}
beside() { # COMMAND...
  while (($(jobs -rp | wc -l) >= 4)); do wait -n || true; done
  { "$@" || touch "$work/failed"; } &
}
beside suite raced postgres15 -test.run "$shared" -test.skip "$alone"
beside suite plain mariadb -test.skip "$once"
beside suite plain mariadb -test.run "$once"
beside timed others
beside suite plain mysql -test.run "$(part .)" -test.skip "$once"
beside suite plain postgres18 -test.run "$(part "$shared")" -test.skip "$once"
beside timed serve
beside timed faults
beside suite plain sqlite
beside suite plain postgres15 -test.run "$alone"
beside timed orms
wait

failed=0
if [[ -e $work/failed ]]; then failed=1; fi

if [[ $failed -eq 0 ]]; then
  say 'mutants'
  go run ./internal/test/mutants --short --green || failed=1
fi
exit "$failed"
