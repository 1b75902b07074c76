#!/bin/sh
# Makes python/.venv with pinned tools, builds the wheel and installs it there. PROFILE=dev builds faster.
set -eu
cd "$(dirname "$0")"
PYTHON="${PYTHON:-python3}"
PROFILE="${PROFILE:-release}"
[ -x .venv/bin/python ] || "$PYTHON" -m venv .venv
if ! cmp -s requirements-dev.txt .venv/requirements-dev.txt; then
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
  cp requirements-dev.txt .venv/requirements-dev.txt
fi
rm -rf .venv/wheels
.venv/bin/maturin build --quiet --locked --profile "$PROFILE" --interpreter .venv/bin/python --out .venv/wheels
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall .venv/wheels/*.whl
