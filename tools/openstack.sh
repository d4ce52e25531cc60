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

packages="python3-octaviaclient python3-openstackclient"

recipe=$(sha256sum "$0" | cut -c 1-12)
debian_begin openstack "$recipe" "$@"
for other in "$dir"/*; do
  case $other in */lock | */apt) ;; *) rm -rf "$other" ;; esac
done
mkdir "$new"

# shellcheck disable=SC2046,SC2086 # lists of words
mmdebstrap --quiet --mode=root --variant=essential --architectures=amd64 \
  --include="$(echo $packages | tr ' ' ',')" --aptopt='APT::Install-Recommends "false"' \
  --aptopt='Acquire::Retries "3"' --aptopt='Acquire::http::Timeout "60"' \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/include/*' \
  "$suite" "$new/root" "deb $mirror $suite main" >&2
dpkg-query --admindir="$new/root/var/lib/dpkg" -W >"$new/versions"
debian_keep
