#!/bin/sh
# Unpacks the newest cloud kernel of a Debian release, for the virtual machines
# of test/vm, and prints the directory: boot/vmlinuz-VERSION, lib/modules/VERSION.
#
#   tools/kernel.sh bookworm|trixie
#
# It is kept in $SLUICE_CACHE/kernel and downloaded once; remove the
# directory to have a newer one. Nothing is installed.
set -eu
. "$(dirname "$0")/debian.sh"

debian_begin kernel kernel "$@"
package=$(debian cache depends --no-recommends --no-suggests linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p')
[ -n "$package" ] || { echo "Debian $suite has no cloud kernel at $mirror" >&2; exit 1; }
# Without what it depends on: a guest has its own init.
(cd "$archives" && debian get download "$package" >&2)
debian_unpack

# Trixie's kernel is one of a merged /usr.
[ -d "$new/lib/modules" ] || { mkdir -p "$new/lib"; mv "$new/usr/lib/modules" "$new/lib/modules"; }
find "$new/lib/modules" -name '*.ko.xz' -exec xz -d {} +
depmod -b "$new" "$(ls "$new/lib/modules")"
debian_keep
