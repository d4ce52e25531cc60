#!/bin/sh
# Makes a root directory of a Debian release with its OpenStack clients, for tests and labs that
# run them against the controller. Prints the directory: root, versions (a package and its
# version a line).
#
#   tools/openstack.sh bookworm|trixie
#
# It is kept in $SLUICE_CACHE/openstack under the hash of this recipe, and
# made anew when the recipe changes.
set -eu
. "$(dirname "$0")/debian.sh"

debian_root openstack "python3-octaviaclient python3-openstackclient" "$@"
