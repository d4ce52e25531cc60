#!/bin/sh
# Installs what building and testing needs on Debian, if something is missing.
#
#   tools/deps.sh [lab|bench|test]     (default: test; each includes the one before)
#   tools/deps.sh --missing lab|bench|test     prints what it would install
#
# Packages are downloaded into $SLUICE_CACHE/apt. Services that come with them are not started: the
# tests run their own processes. Kernels and root disks for virtual machines are made by the tests
# that boot them: tools/kernel.sh, tools/image.sh.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
cache=${SLUICE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/sluice}
case $cache in /*) ;; *) cache=$PWD/$cache ;; esac
. "$root/tools/steps.sh"
only=
if [ "${1:-}" = --missing ]; then
  only=yes
  shift
fi

lab="git make ca-certificates openvswitch-switch openvswitch-common ovn-central ovn-host ovn-common frr
  iproute2 iputils-ping util-linux procps ethtool tcpdump socat curl mmdebstrap"
bench="gobgpd haproxy"
tests="gcc libc6-dev bpftool" # gcc: the race detector
generators="clang-19 llvm-19 libbpf-dev"
checks="prometheus" # promtool
vm="qemu-system-x86 busybox-static kmod xz-utils e2fsprogs"
services="openvswitch-switch ovs-vswitchd ovsdb-server ovn-central ovn-host ovn-controller
  ovn-northd ovn-ovsdb-server-nb ovn-ovsdb-server-sb frr gobgpd haproxy prometheus"

case ${1:-test} in
lab) want=$lab ;;
bench) want="$lab $bench" ;;
test) want="$lab $bench $tests $generators $checks $vm" ;;
*) echo "usage: $0 [lab|bench|test]" >&2; exit 2 ;;
esac

command -v go >/dev/null || { echo "Go is missing; install the version that go.mod names from https://go.dev/dl" >&2; exit 1; }

missing=
for p in $want; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing="$missing $p"
done
if [ -n "$only" ]; then
  echo "${missing# }"
  exit 0
fi
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
  echo "missing packages; as root: apt-get install$missing" >&2
  exit 1
fi

# Systemd is there only if it runs (a container has systemctl and no systemd).
systemd() { [ -d /run/systemd/system ]; }
active() { systemd && systemctl -q is-active "$1" 2>/dev/null; }

before=
for s in $services; do ! active "$s" || before="$before $s"; done

# invoke-rc.d(8) asks this file before it starts a service. One that is there
# already belongs to the administrator and stays.
policy=/usr/sbin/policy-rc.d
if [ ! -e $policy ]; then
  printf '#!/bin/sh\nexit 101\n' >$policy
  chmod 755 $policy
  trap 'rm -f $policy' EXIT
  trap 'exit 130' INT TERM
fi

mkdir -p "$cache/apt/partial"
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 # what apt says is read
apt() {
  apt-get -q -y -o Dir::Cache::archives="$cache/apt" -o APT::Sandbox::User=root \
    -o APT::Keep-Downloaded-Packages=true -o DPkg::Lock::Timeout=600 "$@"
}
install() {
  # shellcheck disable=SC2086 # a list of words
  apt install --no-install-recommends "$@" $missing
}
# A machine that is new has no lists of packages, or old ones.
known() { install --simulate >/dev/null 2>&1; }
renew() { step "Debian's lists of packages" "$cache/apt/update.log" apt update; }
known || renew
# What has to be fetched, and the room that it takes.
install --assume-no 2>/dev/null | sed -n 's/^Need to get \(.*\) of archives.*/to download: \1/p; s/^After this operation, \(.*\) of additional.*/on disk: \1/p' || true
get() { step "Debian's packages are downloaded and installed" "$cache/apt/install.log" install; }
get || { echo "once more, with new lists"; renew && get; }

for s in $services; do
  case " $before " in *" $s "*) continue ;; esac
  if systemd && systemctl -q cat "$s" >/dev/null 2>&1; then
    systemctl -q disable --now "$s" 2>/dev/null || echo "note: $s could not be stopped; a lab may find its ports taken" >&2
  fi
done
