#!/bin/sh
# Everything that is checked of the Python face, against the installed wheel: run build.sh first.
set -eu
cd "$(dirname "$0")"
VENV="$PWD/.venv/bin"
# Away from the source tree, so that the wheel is what is imported.
"$VENV/python" -I -c 'import nexthop, pathlib; assert ".venv" in pathlib.Path(nexthop.__file__).parts, nexthop.__file__'
"$VENV/mypy" --strict nexthop tests/typing bench ../examples/python ../examples/ai-gateway
"$VENV/python" -I -m mypy.stubtest nexthop --allowlist tests/typing/allowlist.txt
exec "$VENV/python" -I -m pytest "$@"
