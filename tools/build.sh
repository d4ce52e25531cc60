#!/bin/sh
# Builds programs of cmd/ into bin/. `make build` and the tests call it, so that all use one build.
#
#   tools/build.sh PROGRAM...
#
# VERSION overrides the version that the programs print.
set -eu
cd "$(dirname "$0")/.."
version=${VERSION:-$(git -c safe.directory='*' describe --tags --always --dirty 2>/dev/null || echo unknown)}

mkdir -p bin build
exec 9>build/build.lock
flock 9 # tests of two packages may ask at the same time
for p; do
  # The go command leaves a program alone that is current.
  CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-X main.version=$version" -o "bin/$p" "./cmd/$p"
done
