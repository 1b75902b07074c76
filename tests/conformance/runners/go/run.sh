#!/bin/sh
# Builds the player over the Go face and plays a script. The archive's checksum makes the linker look again: Go's
# cache does not know that file.
set -eu
cd "$NEXTHOP_ROOT/tests/conformance/runners/go"
archive=$(cksum < "$NEXTHOP_ROOT/go/internal/native/libnexthop.a" | tr ' ' -)
GOFLAGS=-mod=mod go build -ldflags "-X main.archive=$archive" -o "$NEXTHOP_TARGET/nexthop-conformance-go" . >&2
exec "$NEXTHOP_TARGET/nexthop-conformance-go"
