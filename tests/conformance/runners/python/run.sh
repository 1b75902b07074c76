#!/bin/sh
# Plays a script over the Python face: the installed package, or the folder's own when a library lies in it.
set -eu
python="${NEXTHOP_PYTHON:-$NEXTHOP_ROOT/python/.venv/bin/python}"
[ -x "$python" ] || python=python3
if [ -e "$NEXTHOP_ROOT/python/nexthop/_nexthop.abi3.so" ]; then
  PYTHONPATH="$NEXTHOP_ROOT/python"
  export PYTHONPATH
fi
exec "$python" "$NEXTHOP_ROOT/tests/conformance/runners/python/runner.py"
