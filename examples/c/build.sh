#!/bin/sh
# Builds the examples into TARGET/examples/c; CC names the compiler.
set -eu
cd "$(dirname "$0")/../.."
target=$(cargo metadata --format-version 1 --no-deps --locked | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
cargo build --quiet --locked --release -p nexthop-ffi
out=$target/examples/c
mkdir -p "$out"
for example in script retry event_loop event_log experiment; do
  ${CC:-cc} -std=c11 -O2 -Wall -Wextra -Iinclude "examples/c/$example.c" -o "$out/$example" "$target/release/libnexthop.a" -lpthread -ldl -lm
done
