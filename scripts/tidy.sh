#!/usr/bin/env bash
# Tidies the go.mod of every module, as `go mod tidy` does. With --diff it only prints the differences.
#
# The modules of this repository require each other in versions that are not released yet. `go mod tidy` would try to
# download these versions. So the script works on copies of go.mod that replace them by the folders.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
modules=$(go work edit -json | sed -n 's/.*"DiskPath": "\(.*\)".*/\1/p')
path() { sed -n 's/^module //p' "$root/$1/go.mod"; }
replace=() drop=()
for module in $modules; do
  replace+=("-replace=$(path "$module")=$root/$module")
  drop+=("-dropreplace=$(path "$module")")
done
export GOWORK=off
failed=0
for module in $modules; do
  cd "$root/$module"
  cp go.mod "$copy/go.mod"
  : >"$copy/go.sum"
  [[ ! -e go.sum ]] || cp go.sum "$copy/go.sum"
  go mod edit "${replace[@]}" "$copy/go.mod"
  if [[ ${1:-} == --diff ]]; then
    go mod tidy -modfile="$copy/go.mod" -diff || failed=1
    continue
  fi
  go mod tidy -modfile="$copy/go.mod"
  go mod edit "${drop[@]}" "$copy/go.mod"
  cp "$copy/go.mod" go.mod
  if [[ -s $copy/go.sum ]]; then cp "$copy/go.sum" go.sum; else rm -f go.sum; fi
done
exit "$failed"
