# Packages of a Debian release, unpacked into the cache beside the machine's own.
# Sourced by the scripts that need some, which call, in this order:
#
#   debian_begin KIND NAME "$@"   the release is the script's argument; ends the script
#                                 with the directory's path if it is there already
#   debian get|cache ARGUMENT...  apt-get and apt-cache of that release, for which
#                                 nothing is installed; downloads go to $archives
#   debian_unpack                 unpacks $archives into $new
#   debian_keep                   $new is complete; prints the path it has from now on
#
# or, for a root directory with packages, in place of all of these
#
#   debian_root KIND PACKAGES "$@"   makes root, and versions: a package and its version a
#                                    line. It is made anew when the script that asks, or
#                                    this one, changes; an older one goes. $variant is
#                                    mmdebstrap's, essential where it is not set. With
#                                    $plain the root forgets which files are left out here
#
# The directory is $SLUICE_CACHE/KIND/RELEASE/NAME. It is made once;
# remove it to have newer packages. Nothing is installed.
# shellcheck shell=sh
set -eu

debian_begin() {
  suite=${3:-}
  case $suite in
  bookworm | trixie) ;;
  *) echo "usage: $0 bookworm|trixie" >&2; exit 2 ;;
  esac
  root=$(cd "$(dirname "$0")/.." && pwd)
  cache=${SLUICE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}
  case $cache in /*) ;; *) cache=$PWD/$cache ;; esac
  dir=$cache/$1/$suite
  kept=$dir/$2
  new=$dir/new
  archives=$dir/apt/cache/archives

  mkdir -p "$dir"
  exec 9>"$dir/lock"
  flock 9
  # What a run that was ended left behind; not what something may be mounted there.
  rm -rf --one-file-system "$dir/apt" "$new"
  if [ -e "$kept/complete" ]; then
    echo "$kept"
    exit 0
  fi

  mkdir -p "$dir/apt/lists/partial" "$archives/partial"
  : >"$dir/apt/status"
  # The mirror that this machine uses, if it is known.
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Origin: Debian' 'Label: Debian' 2>/dev/null | head -n 1)
  mirror=${mirror:-http://deb.debian.org/debian}
  echo "deb [arch=amd64] $mirror $suite main" >"$dir/apt/sources.list"
  debian get update >&2
}

debian() {
  command=$1; shift
  "apt-$command" -q -o Dir::Etc::SourceList="$dir/apt/sources.list" -o Dir::Etc::SourceParts=- \
    -o Dir::State::Lists="$dir/apt/lists" -o Dir::State::Status="$dir/apt/status" -o Dir::Cache="$dir/apt/cache" \
    -o APT::Architecture=amd64 -o APT::Architectures=amd64 -o APT::Sandbox::User=root \
    -o Acquire::Languages=none -o Acquire::Retries=3 -o Acquire::http::Timeout=60 "$@"
}

debian_root() {
  kind=$1
  packages=$2
  shift 2
  debian_begin "$kind" "$(cat "$0" "$(dirname "$0")/debian.sh" | sha256sum | cut -c 1-12)" "$@"
  for other in "$dir"/*; do
    case $other in */lock | */apt) ;; *) rm -rf "$other" ;; esac
  done
  mkdir "$new"
  # shellcheck disable=SC2086 # a list of words
  mmdebstrap --quiet --mode=root --variant="${variant:-essential}" --architectures=amd64 \
    --include="$(echo $packages | tr ' ' ',')" --aptopt='APT::Install-Recommends "false"' \
    --aptopt='Acquire::Retries "3"' --aptopt='Acquire::http::Timeout "60"' \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/include/*' \
    "$suite" "$new/root" "deb $mirror $suite main" >&2
  [ -z "${plain:-}" ] || rm -f "$new/root/etc/dpkg/dpkg.cfg.d/99mmdebstrap" "$new/root/etc/apt/apt.conf.d/99mmdebstrap"
  dpkg-query --admindir="$new/root/var/lib/dpkg" -W >"$new/versions"
  debian_keep
}

debian_unpack() {
  mkdir "$new"
  for deb in "$archives"/*.deb; do
    dpkg-deb -x "$deb" "$new"
  done
}

debian_keep() {
  touch "$new/complete"
  rm -rf "$kept"
  mv "$new" "$kept"
  rm -rf "$dir/apt"
  echo "$kept"
}
