#!/usr/bin/env bash
# Measures every face named (rust always: the limit M comes from it) and prints one table. ROUNDS, 60 by default.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(cargo metadata --format-version 1 --no-deps --locked | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
cargo build --locked --quiet --release -p nexthop-bench
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
say() { printf '%s\r' "measuring $1 ..." >&2; }
say rust
"$target/release/rust" > "$lines"
for face in "${@:-c python node java go}"; do
  for name in $face; do
    say "$name"
    case $name in
      rust) ;;
      c)
        ln -sf libnexthop.so "$target/release/libnexthop.so.1"
        cc -O2 -std=c11 -Wall -Wextra -Iinclude benches/c/bench.c -o "$target/release/c-bench" \
          -L"$target/release" -lnexthop -Wl,-rpath,"$target/release"
        "$target/release/c-bench" >> "$lines" ;;
      python) scripts/with python python/.venv/bin/python -I python/bench/bench.py >> "$lines" ;;
      node) scripts/with node node/bench/bench.sh >> "$lines" ;;
      java) scripts/with java java/bench.sh >> "$lines" ;;
      go) (cd go && ../scripts/with go go run ./bench) >> "$lines" || true ;;
      *) echo "benches/run.sh: unknown face $name" >&2; exit 2 ;;
    esac
  done
done
"$target/release/report" < "$lines"
say selection
"$target/release/selection"
