#!/bin/sh
# Installs what building and testing needs on Debian, if something is missing.
#
#   tools/deps.sh [build|lab|test|nightly]     (default: test; each includes the one before)
#
# Packages are downloaded into ${SLUICE_CACHE:-.cache}/apt, the kernels that tests
# boot into ${SLUICE_CACHE:-.cache}/kernel, and root disks for them are made in
# ${SLUICE_CACHE:-.cache}/image, as is a root directory with cloud-init in
# ${SLUICE_CACHE:-.cache}/cloud-init. Services that come with the packages are not
# started: the tests run their own processes.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
cache=${SLUICE_CACHE:-$root/.cache}
case $cache in /*) ;; *) cache=$PWD/$cache ;; esac

build="git make gcc libc6-dev clang-19 llvm-19 libbpf-dev bpftool ca-certificates"
lab="openvswitch-switch openvswitch-common ovn-central ovn-host ovn-common frr gobgpd
  iproute2 iputils-ping util-linux procps ethtool tcpdump socat curl jq tshark iperf3 haproxy"
checks="prometheus" # promtool
vm="qemu-system-x86 busybox-static kmod xz-utils mmdebstrap e2fsprogs"
services="openvswitch-switch ovs-vswitchd ovsdb-server ovn-central ovn-host ovn-controller
  ovn-northd ovn-ovsdb-server-nb ovn-ovsdb-server-sb frr gobgpd haproxy prometheus"

case ${1:-test} in
build) want=$build ;;
lab) want="$build $lab" ;;
test | nightly) want="$build $lab $vm $checks" ;;
*) echo "usage: $0 [build|lab|test|nightly]" >&2; exit 2 ;;
esac

command -v go >/dev/null || { echo "Go is missing; install the version that go.mod names from https://go.dev/dl" >&2; exit 1; }

machines() {
  case $1 in test | nightly) ;; *) return ;; esac
  for suite in bookworm trixie; do
    "$root/tools/kernel.sh" $suite >/dev/null
    "$root/tools/image.sh" $suite >/dev/null
  done
  "$root/tools/cloudinit.sh" trixie >/dev/null
}

missing=
for p in $want; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing="$missing $p"
done
if [ -z "$missing" ]; then
  machines "${1:-test}"
  exit
fi

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
export DEBIAN_FRONTEND=noninteractive
apt() {
  apt-get -q -y -o Dir::Cache::archives="$cache/apt" -o APT::Sandbox::User=root \
    -o APT::Keep-Downloaded-Packages=true -o DPkg::Lock::Timeout=600 "$@"
}
echo "installing:$missing"
# shellcheck disable=SC2086 # a list of words
apt install --no-install-recommends $missing || { apt update && apt install --no-install-recommends $missing; }

for s in $services; do
  case " $before " in *" $s "*) continue ;; esac
  if systemd && systemctl -q cat "$s" >/dev/null 2>&1; then
    systemctl -q disable --now "$s" 2>/dev/null || echo "note: $s could not be stopped; a lab may find its ports taken" >&2
  fi
done
machines "${1:-test}"
