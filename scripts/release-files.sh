#!/usr/bin/env bash
# Makes the files of a release's archive that are neither the binary nor in the repository.
#
#   scripts/release-files.sh FOLDER VERSION TIME     TIME is the commit's, for example 2026-01-31T12:00:00Z
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$1 version=$2 time=$3
rm -rf "$folder"
mkdir -p "$folder/completions"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CGO_ENABLED=0 # As the release is built, so that it takes from the same build cache.
go build -trimpath -buildvcs=false -ldflags "-X main.stamp=$version -X main.stampTime=$time" -o "$work/rowfeed" ./cmd/rowfeed
"$work/rowfeed" docs man "$folder/man" >/dev/null
"$work/rowfeed" docs markdown "$folder/reference" >/dev/null
"$work/rowfeed" config schema >"$folder/rowfeed.schema.json"
for shell in bash zsh fish powershell; do "$work/rowfeed" completion "$shell" >"$folder/completions/rowfeed.$shell"; done

# licences PRINTED-NAME FOLDER: most licences require that their text is distributed. A module without a licence is refused.
licences() {
  local file found=
  while IFS= read -r file; do
    found=1
    printf '\n==== %s: %s\n\n' "$1" "$(basename "$file")"
    cat "$file"
  done < <(find "$2" -maxdepth 1 -type f -iregex '.*/\(licen[cs]e\|copying\|notice\|patents\)\([.-].*\)?' ! -name '*.go' | sort)
  [[ -n $found ]] || { echo "release: $1 has no licence in $2" >&2; exit 1; }
}
for platform in linux darwin windows; do
  GOOS=$platform go list -deps \
    -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}' ./cmd/rowfeed
done | sort -u >"$work/modules"
{
  echo 'rowfeed contains these modules, each under its own licence.'
  licences "Go $(go env GOVERSION)" "$(go env GOROOT)"
  while read -r path version at; do licences "$path $version" "$at"; done <"$work/modules"
} >"$folder/LICENSES-THIRD-PARTY.txt"
