#!/bin/sh
# tests/translated/run.sh [NEXTHOP]: every translation of tests/vectors/istio is accepted by a real Envoy. NEXTHOP is the program
# to translate with (target/debug/nexthop unless given). Without Envoy it says so and is done, see scripts/envoy.
set -eu
cd "$(dirname "$0")"
ENVOY=$(../../scripts/envoy translated)
[ -n "$ENVOY" ] || exit 0
exec python3 check.py "$ENVOY" "${1:-../../target/debug/nexthop}"
