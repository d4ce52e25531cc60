#!/bin/sh
# The checks of make lint. All run, whatever the first ones say.
set -u
cd "$(dirname "$0")/.." || exit 1
staticcheck=honnef.co/go/tools/cmd/staticcheck@v0.6.0
rc=0

unformatted=$(find . -name '*.go' -not -path './.*/*' -not -path './build/*' -exec gofmt -l {} +)
if [ -n "$unformatted" ]; then
  echo "not formatted; run gofmt -w on:"
  echo "$unformatted"
  rc=1
fi
go vet ./... || rc=1
go run $staticcheck ./... || rc=1
# What runs in virtual machines alone.
go vet -tags guest ./test/... || rc=1
go run $staticcheck -tags guest ./test/... || rc=1
go run ./tools/layers || rc=1
promtool check rules deploy/prometheus/sluice.rules.yaml || rc=1
promtool test rules deploy/prometheus/sluice.test.yaml || rc=1
exit $rc
