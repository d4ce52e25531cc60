#!/bin/sh
# Unpacks the newest cloud kernel of a Debian release, for the virtual machines
# of test/vm, and prints the directory: boot/vmlinuz-VERSION, lib/modules/VERSION.
#
#   tools/kernel.sh bookworm|trixie
#
# It is kept in ${SLUICE_CACHE:-.cache}/kernel and downloaded once; remove the
# directory to have a newer one. Nothing is installed.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
cache=${SLUICE_CACHE:-$root/.cache}
case $cache in /*) ;; *) cache=$PWD/$cache ;; esac

suite=${1:-}
case $suite in
bookworm | trixie) ;;
*) echo "usage: $0 bookworm|trixie" >&2; exit 2 ;;
esac
dir=$cache/kernel/$suite
mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial"
exec 9>"$dir/lock"
flock 9
if [ -e "$dir/kernel/complete" ]; then
  echo "$dir/kernel"
  exit 0
fi

# The mirror that this machine uses, if it is known.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Origin: Debian' 'Label: Debian' 2>/dev/null | head -n 1)
echo "deb [arch=amd64] ${mirror:-http://deb.debian.org/debian} $suite main" >"$dir/apt/sources.list"
apt() {
  cmd=$1; shift
  "apt-$cmd" -q -o Dir::Etc::SourceList="$dir/apt/sources.list" -o Dir::Etc::SourceParts=- \
    -o Dir::State::Lists="$dir/apt/lists" -o Dir::State::Status=/dev/null -o Dir::Cache="$dir/apt/cache" \
    -o APT::Architecture=amd64 -o APT::Architectures=amd64 -o APT::Sandbox::User=root \
    -o Acquire::Languages=none -o Acquire::Retries=3 -o Acquire::http::Timeout=60 "$@"
}
apt get update >&2
package=$(apt cache depends --no-recommends --no-suggests linux-image-cloud-amd64 | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p')
[ -n "$package" ] || { echo "Debian $suite has no cloud kernel at ${mirror:-deb.debian.org}" >&2; exit 1; }

new=$dir/new
rm -rf "$new" "$dir/kernel"
mkdir "$new"
(cd "$new" && apt get download "$package" >&2)
dpkg-deb -x "$new"/*.deb "$new"
rm "$new"/*.deb
# Trixie's kernel is one of a merged /usr.
[ -d "$new/lib/modules" ] || { mkdir -p "$new/lib"; mv "$new/usr/lib/modules" "$new/lib/modules"; }
find "$new/lib/modules" -name '*.ko.xz' -exec xz -d {} +
depmod -b "$new" "$(ls "$new/lib/modules")"
touch "$new/complete"
mv "$new" "$dir/kernel"
rm -rf "$dir/apt"
echo "$dir/kernel"
