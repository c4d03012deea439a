#!/usr/bin/env bash
# Installs the database servers (scripts/setup.sh), checks format and vet, and runs the tests and the mutants of the
# short list. SQLite, PostgreSQL 15 and MariaDB run every test, PostgreSQL 18
# and MySQL the quick set, which the tests' code names (testdb.Quick).
#
#   scripts/test.sh                              what has to pass before anything is merged
#   scripts/test.sh --all                        every test on every server
#   scripts/test.sh -run TestSuite/publish -v    more arguments for go test
#   scripts/test.sh ./internal/test/testdb       these packages only, no mutants
#   ROWFEED_TEST_ENGINES=sqlite scripts/test.sh  these engines only
#
# No server is left running: each test process ends its servers.
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
export GOGC=400 # Compilers and tests have enough memory, and not enough processors.
command -v go >/dev/null || export PATH=$PATH:/usr/local/go/bin

ROWFEED_NOT_TESTED=$(mktemp)
export ROWFEED_NOT_TESTED

# finish ends all running processes, and removes the folders of test processes that were killed: the folders whose
# lock is free.
finish() {
  local folder job
  for job in $(jobs -p); do kill -- "-$job" 2>/dev/null || true; done
  wait
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

if [[ ${1:-} == --all ]]; then
  export ROWFEED_TEST_ALL=1
  shift
fi

# ent's code is generated, and not in the repository.
go generate -C examples/orms ./...

if [[ $# -gt 0 ]]; then
  packages=(github.com/rowfeed/rowfeed/...)
  for argument in "$@"; do
    if [[ $argument == ./* || $argument == . ]]; then packages=(); fi
  done
  go test -race -timeout 40m "$@" "${packages[@]}"
  exit
fi

say 'gofmt'
unformatted=$(find . -name '*.go' -not -path './.engines/*' -not -path './.git/*' -exec gofmt -l {} +)
if [[ -n $unformatted ]]; then
  printf 'not formatted:\n%s\n' "$unformatted" >&2
  exit 1
fi

say 'go.mod'
scripts/tidy.sh --diff

say 'go vet'
go vet github.com/rowfeed/rowfeed/...

say 'mutants compile'
go run ./internal/test/mutants --compile

# Four test processes run at a time, because they often wait: for disks, servers and claims on leases. The longest
# begin first. The race detector runs on PostgreSQL 18, and in the packages that serve. The other databases run the
# same Go code, and with SQLite's translated C the detector takes minutes.
say 'staticcheck, and tests'
work=$(mktemp -d)
# go vet has already run, and the binaries need no symbols for debuggers.
built=(-vet=off -ldflags=-w)
suite=./cmd/internal/suite
go test "${built[@]}" -race -c -o "$work/raced" "$suite"
go test "${built[@]}" -c -o "$work/plain" "$suite"
only=${ROWFEED_TEST_ENGINES:-}
only=${only//[[:blank:]]/}
TIMEFORMAT='%0R s, %0U+%0S s of processors'

# run_suite runs the suite on one server. The two slowest engines have two processes, each with a server of its own and
# every second test.
run_suite() { # BINARY ENGINE [PART]
  local binary=$1 engine=$2 part=${3:-} log took
  [[ ,${only:-$engine}, == *,$engine,* ]] || return 0
  if [[ -z $only && $engine == mysql && ! -e .engines/mysql ]]; then # which is optional
    echo "mysql is missing: its tests were not run" >>"$ROWFEED_NOT_TESTED"
    return 0
  fi
  log=$(mktemp "$work/$engine.XXXXXX")
  if took=$( (
    cd "$suite"
    export ROWFEED_TEST_ENGINES=$engine ROWFEED_TEST_PART=$part
    time "$work/$binary" -test.timeout 30m -test.parallel 4 >"$log" 2>&1
  ) 2>&1); then
    echo "ok    $engine $part ($binary, $took)"
  else
    cat "$log"
    echo "FAIL  $engine $part ($binary, $took)"
    return 1
  fi
}
serving=(. ./feedhttp ./internal/{gap,install,publish,read,ulidfeed} ./cmd/{access,metrics,relay,server,sink,tracing}/... "$suite/feedhttp" ./cmd/internal/faults)
# Go caches a result by the files of the module. These tests also read files of other modules: hence -count=1.
serve() { go test "${built[@]}" -count=1 -race -timeout 20m "${serving[@]}"; }
others() {
  local elsewhere
  elsewhere=$(go list "${serving[@]}" "$suite" github.com/rowfeed/rowfeed/cmd/bench/...)
  go list github.com/rowfeed/rowfeed/... | grep -vxF "$elsewhere" |
    xargs go test "${built[@]}" -count=1 -timeout 20m
}
static() { go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 github.com/rowfeed/rowfeed/...; }
timed() { # FUNCTION
  local status=0
  time "$1" || status=$?
  return "$status"
}
set -m # Each job has a group of processes, which finish ends.
beside() { # COMMAND...
  while (($(jobs -rp | wc -l) >= 4)); do wait -n || true; done
  { "$@" || touch "$work/failed"; } &
}
beside run_suite plain postgres15 1/2
beside run_suite plain postgres15 2/2
beside run_suite plain mariadb 1/2
beside run_suite plain mariadb 2/2
beside timed static
beside timed others
beside timed serve
beside run_suite plain sqlite
beside run_suite plain mysql
beside run_suite raced postgres18
wait
[[ ! -e $work/failed ]] || exit 1

say 'mutants'
go run ./internal/test/mutants --short --green
