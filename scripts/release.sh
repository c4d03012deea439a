#!/usr/bin/env bash
# Builds a release into dist/; .goreleaser.yaml says what is in it. Nothing is uploaded, committed or tagged.
#
#   scripts/release.sh --require v1.2.3      lets the modules of this repository require each other in this version:
#                                            commit that, and give the commit the tags that the next step asks for
#   scripts/release.sh v1.2.3                of the commit that is checked out, which has the tags and no changes
#   scripts/release.sh --snapshot            of any commit, to try
set -euo pipefail
cd "$(dirname "$0")/.."

goreleaser=(go run github.com/goreleaser/goreleaser/v2@v2.16.0 release --clean --skip=publish,announce)
version=${1:?say which version, as v1.2.3, or --snapshot}
case $version in
  --snapshot) exec "${goreleaser[@]}" "$@" ;;
  --require)
    sed -i -E "s#(github\.com/rowfeed/rowfeed[a-z/]*) v[0-9]\S*#\1 ${2:?say which version, as v1.2.3}#" go.work $(git ls-files '*go.mod')
    exit
    ;;
esac
grep -q "^## \[${version#v}\] - " CHANGELOG.md || { echo "release: CHANGELOG.md has no section ${version#v}" >&2; exit 1; }
for module in '' pgxtx/ internal/test/ cmd/; do
  git tag --points-at HEAD | grep -qx "$module$version" || { echo "release: this commit has no tag $module$version" >&2; exit 1; }
done
if git grep -hE 'github\.com/rowfeed/rowfeed[a-z/]* v[0-9]' -- '*go.mod' | grep -v " $version"; then
  echo "release: a go.mod requires another version: run scripts/release.sh --require $version and commit" >&2
  exit 1
fi
GORELEASER_CURRENT_TAG=$version exec "${goreleaser[@]}"
