#!/bin/sh
# Plays a script over the Node face.
exec "${NODE:-node}" "$NEXTHOP_ROOT/tests/conformance/runners/node/runner.mjs"
