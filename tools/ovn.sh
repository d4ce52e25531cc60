#!/bin/sh
# Unpacks OVN and Open vSwitch of a Debian release, with the libraries that they
# need, for labs with another version than the machine's, and prints the directory.
#
#   tools/ovn.sh trixie
#
# It is kept in ${SLUICE_CACHE:-.cache}/ovn and downloaded once; remove the
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
dir=$cache/ovn/$suite
mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial"
exec 9>"$dir/lock"
flock 9
if [ -e "$dir/programs/complete" ]; then
  rm -rf "$dir/apt"
  echo "$dir/programs"
  exit 0
fi

# The mirror that this machine uses, if it is known.
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Origin: Debian' 'Label: Debian' 2>/dev/null | head -n 1)
echo "deb [arch=amd64] ${mirror:-http://deb.debian.org/debian} $suite main" >"$dir/apt/sources.list"
# For apt nothing is installed: all that they depend on comes along.
: >"$dir/apt/status"
apt() {
  apt-get -q -o Dir::Etc::SourceList="$dir/apt/sources.list" -o Dir::Etc::SourceParts=- \
    -o Dir::State::Lists="$dir/apt/lists" -o Dir::State::Status="$dir/apt/status" -o Dir::Cache="$dir/apt/cache" \
    -o APT::Architecture=amd64 -o APT::Architectures=amd64 -o APT::Sandbox::User=root \
    -o Acquire::Languages=none -o Acquire::Retries=3 -o Acquire::http::Timeout=60 "$@" >&2
}
apt update
apt --yes --download-only --no-install-recommends install ovn-central ovn-host openvswitch-switch

new=$dir/new
rm -rf "$new" "$dir/programs"
mkdir "$new"
for deb in "$dir"/apt/cache/archives/*.deb; do
  dpkg-deb -x "$deb" "$new"
done
touch "$new/complete"
mv "$new" "$dir/programs"
rm -rf "$dir/apt"
echo "$dir/programs"
