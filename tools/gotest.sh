#!/bin/sh
# Runs the tests with the race detector and ends with go test's own lines, one a
# package with its time.
#
#   tools/gotest.sh [go test flags] [package]
#
# Packages below test/ use the machine (links, databases, CPU time), so they run after
# all others: two at a time, and those that count packets or boot machines one after
# the other. They build and run what they test, of which the go command knows nothing:
# it must not take their results from its cache.
set -u
cd "$(dirname "$0")/.." || exit 1

mkdir -p build
log=build/test.log
: >"$log"
rm -f build/vm.txt build/upgrade.txt
rc=0

run() {
  # The status of go test, not that of tee.
  # vet is a part of the lint, and symbols are the debugger's.
  { { go test -race -vet=off -ldflags=-w "$@" 2>&1; echo $? >build/test.rc; } | tee -a "$log"; }
  [ "$(cat build/test.rc)" = 0 ] || rc=1
  rm -f build/test.rc
}

packages=
case ${*:-} in *./*) ;; *) packages=$(go list ./...) || exit 1 ;; esac
plain=$(printf '%s\n' "$packages" | grep -v '/sluice/test/')
labs=$(printf '%s\n' "$packages" | grep '/sluice/test/')
whole=$(printf '%s\n' "$labs" | grep -E '/test/(evpn|metadata|vm)$')
halves=$(printf '%s\n' "$labs" | grep -vE '/test/(evpn|metadata|vm)$')

start=$(date +%s)
# shellcheck disable=SC2086 # a list of words
[ -z "$plain" ] || run -timeout 20m "$@" $plain
if [ -n "$halves" ]; then
  # shellcheck disable=SC2086
  run -p 2 -count=1 -timeout 60m "$@" $halves
fi
if [ -n "$whole" ]; then
  # shellcheck disable=SC2086
  run -p 1 -count=1 -timeout 60m "$@" $whole
fi
[ -n "$packages" ] || run -count=1 -timeout 60m "$@"

echo
echo "== summary, $(($(date +%s) - start)) s =="
grep -E '^(--- FAIL|[[:space:]]+--- FAIL|panic:|WARNING: DATA RACE)' "$log" | sort -u
grep -E '^(ok|FAIL|\?)[[:space:]]' "$log" | grep -v 'no test files' | awk '{print}'
if [ -s build/vm.txt ]; then
  echo
  echo "== virtual machines =="
  sort build/vm.txt
fi
if [ -s build/upgrade.txt ]; then
  echo
  echo "== upgrade of a running sluiced =="
  cat build/upgrade.txt
fi
if [ $rc = 0 ]; then echo "PASS"; else echo "FAIL (whole output: $log)"; fi
exit $rc
