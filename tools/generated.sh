#!/bin/sh
# Fails when a generated file is not what its generator writes now. The generators run in a copy,
# $SLUICE_CACHE/generated/tree: the working tree is not touched, and one place lets the go command
# find what it has compiled there before. A tree that has passed passes again without them.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
. tools/passed.sh

hash=$(tree_hash .)
! has_passed generated "$hash" || exit 0

copy=$cache/generated.tree
mkdir -p "$copy"
exec 9>"$cache/generated.lock"
flock 9
# Files keep their times, so that only what differs is compiled again.
list=$(mktemp)
trap 'rm -f "$list" "$sums"' EXIT
git -c safe.directory='*' ls-files -co --exclude-standard | while read -r f; do [ ! -e "$f" ] || echo "$f"; done | sort >"$list"
(cd "$copy" && find . -type f -printf '%P\n') | sort | comm -13 "$list" - | (cd "$copy" && xargs -r -d '\n' rm -f)
tar -cf - -T "$list" | tar -C "$copy" -xf -

# The objects are as clang made them if neither they nor what they are made of have changed.
objects=$(tree_hash bpf '*generate.go' '*_bpfel.*' go.mod)
skip=
! has_passed objects "$objects" || skip='-skip=bpf2go|compile '
# shellcheck disable=SC2086 # no argument or one
(cd "$copy" && go generate ${skip:+"$skip"} ./...)

if ! (cd "$copy" && xargs -d '\n' sha256sum) <"$list" | sha256sum --quiet -c - >&2; then
  echo "generated files are not current; run: make generate" >&2
  exit 1
fi
new=$( (cd "$copy" && find . -type f -printf '%P\n') | sort | comm -13 "$list" -)
if [ -n "$new" ]; then
  echo "generated files are not committed; run make generate, and git add: $new" >&2
  exit 1
fi
note_passed objects "$objects"
note_passed generated "$hash"
