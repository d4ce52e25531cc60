#!/bin/sh
# Unpacks OVN and Open vSwitch of a Debian release, with the libraries that they
# need, for labs with another version than the machine's, and prints the directory.
#
#   tools/ovn.sh bookworm|trixie
#
# It is kept in $SLUICE_CACHE/ovn and downloaded once; remove the
# directory to have a newer one. Nothing is installed.
set -eu
. "$(dirname "$0")/debian.sh"

debian_begin ovn programs "$@"
debian get --yes --download-only --no-install-recommends install ovn-central ovn-host openvswitch-switch >&2
debian_unpack
debian_keep
