#!/usr/bin/env bash
# Runs the README's first block in a copy of the committed files, and prints after how many seconds the first
# entry was fetched.
#
#   scripts/first-entry.sh            with this machine's caches of Go
#   scripts/first-entry.sh --fresh    with empty caches: all modules are downloaded and compiled
#
# The block installs packages (as root) and listens on 127.0.0.1:8080.
set -euo pipefail
cd "$(dirname "$0")/.."

# Bare environments lack what the go command needs.
if [[ -z ${HOME:-} ]]; then
  HOME=$(getent passwd "$(id -u)" | cut -d: -f6)
  export HOME
fi
command -v go >/dev/null || export PATH=$PATH:/usr/local/go/bin

work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
if [[ ${1:-} == --fresh ]]; then
  export GOCACHE=$work/cache GOMODCACHE=$work/modules
fi
block=$(awk '/^## The first five minutes$/ {section = 1} section && /^```sh$/ {inside = 1; next} inside && /^```$/ {exit} inside' README.md)
[[ $block == *'rowfeed fetch kv'* ]] || { echo 'first-entry: the block is not in the README' >&2; exit 1; }
git clone -q . "$work/rowfeed"

started=${EPOCHREALTIME/[.,]/}
seconds() { local now=${EPOCHREALTIME/[.,]/}; printf '%d.%01d' $(((now - started) / 1000000)) $(((now - started) / 100000 % 10)); }
first=
while IFS= read -r line; do
  printf '%7s  %s\n' "$(seconds)" "$line"
  if [[ -z $first && $line == '{"position":'* ]]; then first=$(seconds); fi
done < <(cd "$work/rowfeed" && TMPDIR=$work bash -e -c "trap 'kill \$(jobs -p) 2>/dev/null || true' EXIT
$block" 2>&1)
[[ -n $first ]] || { echo 'first-entry: no entry was fetched' >&2; exit 1; }
printf 'seconds to the first entry: %s (to the end of the block: %s)\n' "$first" "$(seconds)"
