#!/bin/sh
# Builds programs of cmd/ into bin/. `make build` and the tests call it, so that all use one build.
#
#   tools/build.sh PROGRAM...
#
# COMMIT overrides the commit that the programs print; without it git is asked, in a checkout. The source of an archive
# knows its own (version.go), also below a repository of something else.
set -eu
cd "$(dirname "$0")/.."
commit=${COMMIT-$([ ! -e .git ] || git -c safe.directory='*' describe --always --abbrev=8 --exclude='*' --dirty 2>/dev/null || true)}

mkdir -p bin build
exec 9>build/build.lock
flock 9 # tests of two packages may ask at the same time
. tools/steps.sh
for p; do
  # The go command leaves a program alone that is current.
  CGO_ENABLED=0 step "$p is built (for the first time: modules are downloaded, two minutes)" "build/build-$p.log" go build -trimpath -buildvcs=false -ldflags "-X github.com/ovn-sluice/sluice.commit=$commit" -o "bin/$p" "./cmd/$p"
done
