#!/bin/sh
# Fails when a generated file is not what its generator writes now. The
# generators run in a copy; the working tree is not touched.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
trap 'exit 130' INT TERM

tar -C "$root" --exclude=./.git --exclude=./bin --exclude=./build --exclude=./.cache -cf - . | tar -C "$copy" -xf -
(cd "$copy" && go generate ./...)

if ! diff -rq --exclude=.git --exclude=bin --exclude=build --exclude=.cache "$root" "$copy"; then
  echo "generated files are not current; run: make generate" >&2
  exit 1
fi
