#!/bin/sh
# Makes the root disk of a Debian release for the virtual machines of test/vm: an
# ext4 image with that release's OVN, Open vSwitch and FRR. Prints the directory:
# root.ext4, versions (a package and its version a line).
#
#   tools/image.sh bookworm|trixie
#
# It is kept in $SLUICE_CACHE/image under the hash of this recipe, and
# made anew when the recipe changes. It has no kernel: see tools/kernel.sh.
set -eu
. "$(dirname "$0")/debian.sh"

packages="openvswitch-switch ovn-central ovn-host frr gobgpd
  iproute2 iputils-ping util-linux mount procps ethtool tcpdump socat curl"

recipe=$(sha256sum "$0" | cut -c 1-12)
debian_begin image "$recipe" "$@"
for other in "$dir"/*; do
  case $other in */lock | */apt) ;; *) rm -rf "$other" ;; esac
done
mkdir "$new"

# Without what nobody reads in a virtual machine.
# shellcheck disable=SC2046,SC2086 # lists of words
mmdebstrap --quiet --mode=root --variant=essential --architectures=amd64 \
  --include="$(echo $packages | tr ' ' ',')" --aptopt='APT::Install-Recommends "false"' \
  --aptopt='Acquire::Retries "3"' --aptopt='Acquire::http::Timeout "60"' \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/include/*' \
  "$suite" "$new/root" "deb $mirror $suite main" >&2
mkdir -p "$new/root/guest"
dpkg-query --admindir="$new/root/var/lib/dpkg" -W >"$new/versions"

# Room for what a lab writes; blocks that nothing was written to take no space.
mke2fs -q -t ext4 -E root_owner=0:0,lazy_itable_init=1 -O ^has_journal -m 0 -d "$new/root" "$new/root.ext4" 2G >&2
rm -rf "$new/root"
debian_keep
