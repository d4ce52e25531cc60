#!/bin/sh
# What a target of the Makefile is about to do, take, keep and change.
#
#   tools/announce.sh demo|test|quick
set -eu
cd "$(dirname "$0")/.."
cache=${SLUICE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}

case ${1:-} in
demo) packages=lab what="brings up two small OVN clouds with sluiced on every node, and shows them talking" takes="two to three minutes; six to nine the first time" ;;
test) packages=test what="all that has to pass before a change is taken" takes="25 minutes on two quiet cores, up to 60 when all paths have changed; an hour the first time" ;;
quick) packages=test what="what a change usually breaks" takes="one to three minutes; ten more the first time" ;;
*) echo "usage: $0 demo|test|quick" >&2; exit 2 ;;
esac
echo "make $1: $what"
lab=${SLUICE_LAB:-sluice}
[ "$lab" != sluice ] || lab=
missing=$(tools/deps.sh --missing $packages)
size=$(du -sh "$cache" 2>/dev/null | cut -f 1 || true)
echo "  takes     $takes"
echo "  installs  ${missing:-no Debian packages: all are there}"
echo "  keeps     downloads and what is built of them in $cache${size:+ ($size now)}, and the go command's caches"
echo "  changes   bin/, build/, network namespaces and mounts of its own, files in /run/sluice-lab; services that come with packages are not started"
[ "$1" != demo ] || echo "  removed   by make demo-down${lab:+ SLUICE_LAB=$lab}: all of it but packages, caches, bin/ and build/"
