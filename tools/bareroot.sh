#!/bin/sh
# Makes the root directory of a Debian machine that has nothing but what the README asks for before its
# first command. Prints the directory: root, versions (a package and its version a line).
#
#   tools/bareroot.sh bookworm|trixie
#
# It is kept in $SLUICE_CACHE/bareroot under the hash of this recipe, and made anew when the recipe
# changes.
set -eu
. "$(dirname "$0")/debian.sh"

variant=minbase
plain=yes # what it installs later comes whole
debian_root bareroot "ca-certificates git make" "$@"
