#!/usr/bin/env bash
# Makes one executable file that runs the suite on a machine without Go and without this repository, such as one that
# has SQL Server.
#
#   scripts/suite-binary.sh suite
#   ROWFEED_TEST_SQLSERVER=sqlserver://sa:password@localhost:1433 ./suite
#   ROWFEED_TEST_SQLSERVER=… ./suite -test.run TestSuite/publish -test.v   more arguments, as of go test
#   ROWFEED_TEST_ENGINES=sqlite ./suite                                    on an engine that is installed there
#
# Each test makes a database of its own on the server, and drops it. The login must be sa, or the tests that look for
# that name fail. The file is a shell script with an archive behind it. It unpacks the archive into a temporary folder,
# which it removes at the end. GOOS and GOARCH choose the machine.
set -euo pipefail
[[ $# == 1 && $1 != -* ]] || { echo 'usage: scripts/suite-binary.sh FILE' >&2; exit 2; }
target=$(realpath "$1")
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The tests find the files that they read below the repository's root, three folders up.
suite=cmd/internal/suite
mkdir -p "$work/files/$suite" "$work/files/programs"
export CGO_ENABLED=0
go test -c -vet=off -trimpath -ldflags=-s -o "$work/files/$suite/suite" "./$suite"
go build -trimpath -ldflags=-s -o "$work/files/programs/" ./cmd/rowfeed ./internal/test/checker
cp -R --parents testdata docs/GUARANTEES.md docs/ULIDS.md internal/test/suite/install/testdata "$suite/wire/testdata" \
  "$work/files"

{
  cat <<'SCRIPT'
#!/bin/sh
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
sed '1,/^# The archive:$/d' "$0" | tar -xzf - -C "$folder"
cd "$folder/cmd/internal/suite"
export ROWFEED_TEST_ENGINES="${ROWFEED_TEST_ENGINES:-sqlserver}" ROWFEED_TEST_PROGRAMS="$folder/programs"
code=0
./suite -test.timeout 0 "$@" || code=$?
exit "$code"
# The archive:
SCRIPT
  tar -czf - -C "$work/files" .
} >"$target"
chmod +x "$target"
