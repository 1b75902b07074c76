#!/usr/bin/env bash
# Type checks and tests; build.sh comes first.
set -euo pipefail
cd "$(dirname "$0")"
npx --no-install tsc -p test/types/tsconfig.json
exec node --test-timeout=120000 --test test/*.test.mjs test/*.test.cjs
