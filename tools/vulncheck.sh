#!/bin/sh
# Compares what the programs call with the Go vulnerability database. Fails for a vulnerability that they reach.
#
# VULNDB is another database than https://vuln.go.dev: a URL, also file://.
set -u
cd "$(dirname "$0")/.." || exit 1
govulncheck=golang.org/x/vuln/cmd/govulncheck@v1.9.0
db=${VULNDB:-https://vuln.go.dev}

bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
GOBIN=$bin go install $govulncheck || { echo "vulncheck: $govulncheck cannot be built; nothing was checked" >&2; exit 1; }
"$bin/govulncheck" -db "$db" ./...
rc=$?
case $rc in
0) ;;
3) echo "vulncheck: the vulnerabilities above are reached; update the modules, or Go" >&2 ;;
*) echo "vulncheck: nothing was checked; is $db in reach? VULNDB names another database (file:///DIRECTORY)" >&2 ;;
esac
exit $rc
