#!/usr/bin/env bash
# Builds what is released of a commit, into dist/: for each platform an archive with a static
# binary, man pages, completions, the example files of deploy/ and all licences, a CycloneDX
# list of its modules, and SHA256SUMS over all of them.
#
#   scripts/release.sh v1.2.3            the commit that is checked out, which must have no changes
#   scripts/release.sh --twice v1.2.3    and once more from a clone elsewhere, with an empty build
#                                        cache: fails unless every byte is the same
#   TARGETS=linux/amd64 scripts/release.sh v1.2.3
#
# Nothing is uploaded or tagged.
set -euo pipefail
cd "$(dirname "$0")/.."

twice=
if [[ ${1:-} == --twice ]]; then twice=1 && shift; fi
version=${1:?say which version, as v1.2.3}
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$ ]] || { echo "release: $version is no version like v1.2.3" >&2; exit 2; }
[[ -z $(git status --porcelain) ]] || { echo 'release: the tree has changes that are not committed' >&2; exit 1; }
grep -q "^## \[${version#v}\] - " CHANGELOG.md || { echo "release: CHANGELOG.md has no section ${version#v}" >&2; exit 1; }
out=$(realpath -m "${OUT:-dist}")
targets=${TARGETS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64}

say() { printf '== %s\n' "$*" >&2; }
work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT

export CGO_ENABLED=0 GOFLAGS=-mod=readonly
for target in $targets; do
  say "$target"
  folder=$work/built/${target/\//_}
  mkdir -p "$folder"
  # Without version control in the build: the same bytes come from an archive of the sources.
  GOOS=${target%/*} GOARCH=${target#*/} go build -trimpath -buildvcs=false \
    -ldflags "-s -w -buildid= -X main.stamp=$version -X main.stampCommit=$(git rev-parse HEAD) -X main.stampTime=$(git show -s --format=%cI HEAD)" \
    -o "$folder/" ./cmd/rowfeed
done

say 'manual, completions, files'
mkdir -p "$work/extra/man" "$work/extra/completions"
go build -trimpath -buildvcs=false -ldflags "-X main.stamp=$version -X main.stampTime=$(git show -s --format=%cI HEAD)" -o "$work/rowfeed" ./cmd/rowfeed
"$work/rowfeed" docs man "$work/extra/man" >/dev/null
for shell in bash zsh fish powershell; do "$work/rowfeed" completion "$shell" >"$work/extra/completions/rowfeed.$shell"; done
"$work/rowfeed" config schema >"$work/extra/rowfeed.schema.json"
cp LICENSE README.md CHANGELOG.md "$work/extra/"
cp -r deploy "$work/extra/deploy"

say "archives in $out"
rm -rf "$out"
go run ./cmd/internal/release -version "$version" -time "$(git show -s --format=%ct HEAD)" -built "$work/built" -extra "$work/extra" -out "$out"
(cd "$out" && sha256sum --quiet --check SHA256SUMS)

if [[ -n $twice ]]; then
  say 'once more, elsewhere, from nothing'
  git clone -q . "$work/again"
  GOCACHE=$work/cache OUT=$work/dist TARGETS=$targets "$work/again/scripts/release.sh" "$version"
  diff -r "$out" "$work/dist" >&2 || { echo 'release: two builds differ' >&2; exit 1; }
  say 'both builds are the same'
fi
