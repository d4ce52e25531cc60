#!/bin/sh
# The checks of make lint. All run, whatever the first ones say. A tree that has passed passes again
# without them: $SLUICE_CACHE/lint has its hash.
set -u
cd "$(dirname "$0")/.." || exit 1
. tools/passed.sh
staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.6.0
rc=0

hash=$(tree_hash '*.go' '*.sh' '*.c' '*.h' ARCHITECTURE.md go.mod go.sum staticcheck.conf deploy/prometheus)
! has_passed lint "$hash" || exit 0

unformatted=$(find . -name '*.go' -not -path './.*/*' -not -path './build/*' -exec gofmt -l {} +)
if [ -n "$unformatted" ]; then
  echo "not formatted; run gofmt -w on:"
  echo "$unformatted"
  rc=1
fi
go vet ./... || rc=1
go run $staticcheck ./... || rc=1
# What runs in virtual machines alone.
guest=$(grep -rl --include='*.go' '^//go:build .*guest' . | xargs -n 1 dirname | sort -u)
# shellcheck disable=SC2086 # a list of words
go vet -tags guest $guest || rc=1
go vet -tags bench ./test/vm || rc=1
# shellcheck disable=SC2086
go run $staticcheck -tags guest $guest || rc=1
go run ./tools/layers || rc=1
promtool check rules deploy/prometheus/sluice.rules.yaml || rc=1
promtool test rules deploy/prometheus/sluice.test.yaml || rc=1
[ $rc != 0 ] || note_passed lint "$hash"
exit $rc
