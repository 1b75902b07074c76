#!/bin/sh
# Plays a script over the Python face; NEXTHOP_PYTHON names another interpreter that has the package.
exec "${NEXTHOP_PYTHON:-$NEXTHOP_ROOT/python/.venv/bin/python}" "$NEXTHOP_ROOT/tests/conformance/runners/python/runner.py"
