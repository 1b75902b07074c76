#!/usr/bin/env bash
# Builds the yardstick and measures; ROUNDS (60) rounds, one JSON line per case. build.sh comes first.
set -euo pipefail
cd "$(dirname "$0")"
cargo build --quiet --release --manifest-path reference/Cargo.toml --target-dir "${REFERENCE_TARGET:-reference/target}"
cp "${REFERENCE_TARGET:-reference/target}"/release/libnexthop_node_reference.so reference/reference.node 2>/dev/null ||
  cp "${REFERENCE_TARGET:-reference/target}"/release/libnexthop_node_reference.dylib reference/reference.node
exec node bench.mjs
