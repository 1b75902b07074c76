#!/bin/sh
# Writes include/nexthop.h from ffi/src. `--check` writes nothing and fails when the file is out of date.
set -eu
cd "$(dirname "$0")/.."
exec cargo run --quiet --locked -p nexthop-header -- "$@"
