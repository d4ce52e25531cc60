#!/bin/sh
# Writes a release of HEAD into build/release: for each architecture the static programs, the source, and SHA256SUMS.
# Equal commits give equal files with one version of Go: sources, times and owners are those of the commit, whatever git and
# the shell of who calls it are set to.
set -eu
umask 022
cd "$(dirname "$0")/.."
git() { command git -c safe.directory='*' -c tar.umask=0022 -c core.autocrlf=false -c core.eol=lf "$@"; }

name=sluice-$(git show HEAD:VERSION)
commit=$(git rev-parse HEAD | cut -c 1-8)
time=$(git show -s --format=%ct HEAD)
[ -z "$(git status --porcelain)" ] || echo "release: the checkout has changes; the release is of $commit, without them" >&2

new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
mkdir "$new/release"
git archive --format=tar --prefix="$name/" HEAD >"$new/source.tar"
tar -C "$new" -xf "$new/source.tar"
gzip -n9 <"$new/source.tar" >"$new/release/$name.tar.gz"

for arch in amd64 arm64; do
  GOFLAGS='' GOOS=linux GOARCH=$arch GOAMD64=v1 GOARM64=v8.0 COMMIT=$commit "$new/$name/tools/build.sh" sluiced sluicectl sluice-controller
  at=$name-linux-$arch
  mkdir "$new/$at"
  mv "$new/$name/bin/"* "$new/$at"
  cp "$new/$name/LICENSE" "$new/$name/bpf/"LICENSE.* "$new/$at"
  tar -C "$new" -c --format=ustar --sort=name --owner=0 --group=0 --numeric-owner --mode=go-w --mtime="@$time" "$at" | gzip -n9 >"$new/release/$at.tar.gz"
done
(cd "$new/release" && sha256sum -- *.tar.gz >SHA256SUMS)
mkdir -p build
rm -rf build/release
mv "$new/release" build/release
cat build/release/SHA256SUMS
