#!/bin/sh
# Makes a root directory of a Debian release with its cloud-init, for tests that run it
# as a virtual machine does. Prints the directory: root, versions (a package and its
# version a line).
#
#   tools/cloudinit.sh bookworm|trixie
#
# It is kept in $SLUICE_CACHE/cloud-init under the hash of this recipe, and
# made anew when the recipe changes. cloud-init is not installed on the machine itself:
# there it would take part in the next boot.
set -eu
. "$(dirname "$0")/debian.sh"

debian_root cloud-init "cloud-init iproute2 mount util-linux" "$@"
