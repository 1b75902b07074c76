#!/bin/sh
# tests/parity/run.sh [--config] ARGS...: runs the parity runner (or that of documents) between the real Envoy and the Python
# face, which python/build.sh has installed. Without Envoy it says so and is done, see scripts/envoy.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
ENVOY=$("$root/scripts/envoy" parity)
[ -n "$ENVOY" ] || exit 0
module=parity
if [ "${1:-}" = --config ]; then
  module=config
  shift
fi
PYTHONPATH="$here" exec "$root/python/.venv/bin/python" -m "$module" --envoy "$ENVOY" "$@"
