#!/usr/bin/env bash
# Builds a release into dist/; .goreleaser.yaml says what is in it. Nothing is uploaded, committed or tagged.
#
#   scripts/release.sh --require v1.2.3      lets the modules of this repository require each other in this version.
#                                            Commit that with a section "## [1.2.3] - DATE" of CHANGELOG.md, and give
#                                            the commit the tags v1.2.3, pgxtx/v1.2.3, internal/test/v1.2.3, cmd/v1.2.3
#   scripts/release.sh v1.2.3                of the commit that is checked out, which has the tags and no changes.
#                                            Then push the tags and publish dist/
#   scripts/release.sh --snapshot            of any commit, to try
set -euo pipefail
cd "$(dirname "$0")/.."

goreleaser=(go run github.com/goreleaser/goreleaser/v2@v2.16.0 release --clean --skip=publish,announce)
version=${1:?say which version, as v1.2.3, or --snapshot}
case $version in
  --snapshot) exec "${goreleaser[@]}" "$@" ;;
  --require)
    sed -i -E "s#(github\.com/rowfeed/rowfeed[a-z/]*) v[0-9]\S*#\1 ${2:?say which version, as v1.2.3}#" \
      go.work $(git ls-files '*go.mod')
    exit
    ;;
esac
refuse() {
  echo "release: $1" >&2
  exit 1
}
grep -q "^## \[${version#v}\] - " CHANGELOG.md || refuse "CHANGELOG.md has no section ${version#v}"
for module in '' pgxtx/ internal/test/ cmd/; do
  git tag --points-at HEAD | grep -qx "$module$version" || refuse "this commit has no tag $module$version"
done
if git grep -hE 'github\.com/rowfeed/rowfeed[a-z/]* v[0-9]' -- '*go.mod' | grep -v " $version"; then
  refuse "a go.mod requires another version: run scripts/release.sh --require $version and commit"
fi
GORELEASER_CURRENT_TAG=$version exec "${goreleaser[@]}"
