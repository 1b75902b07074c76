#!/bin/sh
# Vets and tests the Go package, then once more under the race detector. build.sh must have run.
set -eu
cd "$(dirname "$0")"
unformatted=$(gofmt -l . ../examples/go)
if [ -n "$unformatted" ]; then
  printf 'not gofmt-ed:\n%s\n' "$unformatted" >&2
  exit 1
fi
go vet ./...
(cd ../examples/go && go vet ./...)
go test "$@" ./...
go test -race "$@" .
