#!/usr/bin/env bash
# Builds a release into dist/; .goreleaser.yaml says what is in it. Nothing is uploaded or tagged.
#
#   git tag v1.2.3 && git tag cmd/v1.2.3     the versions of the library's module and of the binary's
#   scripts/release.sh v1.2.3                of the commit that is checked out, which has these tags and no changes
#   scripts/release.sh --snapshot            of any commit, to try
set -euo pipefail
cd "$(dirname "$0")/.."

goreleaser=(go run github.com/goreleaser/goreleaser/v2@v2.16.0 release --clean --skip=publish,announce)
version=${1:?say which version, as v1.2.3, or --snapshot}
if [[ $version == --snapshot ]]; then exec "${goreleaser[@]}" "$@"; fi
grep -q "^## \[${version#v}\] - " CHANGELOG.md || { echo "release: CHANGELOG.md has no section ${version#v}" >&2; exit 1; }
for tag in "$version" "cmd/$version"; do
  git tag --points-at HEAD | grep -qx "$tag" || { echo "release: this commit has no tag $tag" >&2; exit 1; }
done
GORELEASER_CURRENT_TAG=$version exec "${goreleaser[@]}"
