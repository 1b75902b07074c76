#!/bin/sh
# Builds the player over the Go face and plays a script.
set -eu
cd "$NEXTHOP_ROOT/tests/conformance/runners/go"
GOFLAGS=-mod=mod go build -o "$NEXTHOP_TARGET/nexthop-conformance-go" . >&2
exec "$NEXTHOP_TARGET/nexthop-conformance-go"
